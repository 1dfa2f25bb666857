"""Demonstrations of continuous worlds whose truth is known: train an expert, roll it out.

The expert is constrained RL under the truth, with the limit on an episode's true cost that it is
said to have. It is trained in a folder of its own, from which a killed training goes on. This is
the only place on the way to the game that reads the truth, and it does so in the demonstrators'
stead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.demos.dataset import Demonstrations, TaskDemos
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Problem, Trajectory
from ringfence.runs.control_config import ControlWorld
from ringfence.runs.control_solver import ControlSolver
from ringfence.runs.control_world import make_tasks, world_versions
from ringfence.runs.files import json_bytes, remove_partials
from ringfence.runs.folder import OnEvent, only_driver, teller
from ringfence.solvers.ppo import evaluate, seen_of
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.worlds.sim.rollouts import ContinuousTask

#: The third number of the demonstrations' seed path, after the seed and the task.
TRAIN, HELDOUT = 60, 61
#: Episodes rolled out in search of a saturated one: at most, and as long as none was found.
MOST_TRIES, FIRST_TRIES = 100, 30


@dataclass(frozen=True)
class ExpertSettings:
    """How a demonstrator came about.

    delta: the limit on an episode's true cost; noise: the standard deviation of Gaussian noise
    on every action, in units of the action box; keep_saturated: keep only episodes whose mean
    true raw value lies at most this far below 0, as the published code does (None: keep all).
    """

    delta: float
    noise: float = 0.0
    paths: int = 20
    heldout: int = 10
    keep_saturated: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.paths < 1 or self.heldout < 1:
            raise InvalidInput("at least one training and one held-out demonstration are needed")
        for name in ("delta", "noise"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InvalidInput(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.keep_saturated is not None and not self.keep_saturated > 0:
            raise InvalidInput(f"--keep-saturated must be above 0, got {self.keep_saturated}")


def truth_of(world: ControlWorld, task: ContinuousTask) -> LinearConstraint:
    if not world.truth:
        raise InvalidInput(
            'demonstrators need a constraint to keep: give --truth, such as --truth "speed <= 0.75"'
        )
    return parse_inequality(world.truth, task.features)


def train_experts(
    world: ControlWorld, settings: ExpertSettings, ppo: PPOConfig, folder: Path, on_event: OnEvent
) -> list[dict[str, NDArray[Any]]]:
    """One policy per task, trained in `folder` as far as they are not there."""
    tasks = make_tasks(world)
    problems = [
        Problem(task, truth_of(world, task), settings.delta, None, (settings.seed, 0, k))
        for k, task in enumerate(tasks)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with only_driver(folder):
        remove_partials(folder)
        tell = teller(folder, on_event)
        tell({"event": "start", "tasks": len(tasks), "iterations": 0,
              "steps": ppo.env_steps * len(tasks)})  # fmt: skip

        def on_record(problem: Problem, record: Record) -> None:
            tell({"event": "update", "i": 0, "k": problem.seed[2], **asdict(record)})

        def on_solved(problem: Problem, name: str, known: bool) -> None:
            tell({"event": "solved", "i": 0, "k": problem.seed[2], "known": known, "name": name})

        solver = ControlSolver(folder, world, ppo, {}, {}, on_record, on_solved)
        return [dict(solution.policy) for solution in solver(problems)]


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """The policy of a finished `ringfence solve` run."""
    path = folder / "policy" / "policy.safetensors"
    if not path.is_file():
        raise InvalidInput(f"{folder}: no policy/policy.safetensors; give a finished solve run")
    try:
        return dict(safetensors.numpy.load_file(path))
    except (SafetensorError, OSError) as problem:
        raise InvalidInput(f"{path}: can't be read ({problem})") from None


def with_noise(policy: Mapping[str, NDArray[Any]], noise: float) -> dict[str, NDArray[Any]]:
    """The policy with independent Gaussian noise added to its own: the variances add."""
    log_std = np.asarray(policy["actor/log_std"], np.float64)
    wide = 0.5 * np.log(np.exp(2 * log_std) + noise**2)
    return {**policy, "actor/log_std": wide.astype(np.float32)}


def roll_out(
    world: ControlWorld,
    settings: ExpertSettings,
    policies: Sequence[Mapping[str, NDArray[Any]]],
    say: Callable[[str], None] = lambda text: None,
    augment: bool = True,
) -> Demonstrations:
    """Training and held-out episodes of the experts, with where they come from.

    say: told how the search for saturated episodes goes, which can take minutes; augment: were
    they trained to see the truth's value.
    """
    tasks = make_tasks(world)
    if len(policies) != len(tasks):
        names = ", ".join(task.name for task in tasks)
        raise InvalidInput(f"{len(policies)} policies for {len(tasks)} tasks ({names}): one each")
    demos, tried = [], []
    for k, (task, policy) in enumerate(zip(tasks, policies, strict=True)):
        noisy = with_noise(policy, settings.noise) if settings.noise else dict(policy)
        check_policy(task, noisy)
        parts = []
        for stream, count in ((TRAIN, settings.paths), (HELDOUT, settings.heldout)):
            seed = (settings.seed, k, stream)
            truth, keep = truth_of(world, task), settings.keep_saturated
            raw = seen_of(truth, augment)
            if keep is None:
                kept, rolled = evaluate(task, noisy, raw, count, seed), count
            else:
                roll = partial(evaluate, task, noisy, raw)
                kept, rolled = saturated_episodes(task.name, roll, truth, keep, count, seed, say)
            parts.append(tuple(kept))
            tried.append(rolled)
        demos.append(TaskDemos(task.name, *parts))
    provenance = {
        "world": json.loads(json_bytes(asdict(world))),
        "versions": world_versions(world),
        **asdict(settings),
        "filter": filter_name(settings),
        "episodes_rolled_out": sum(tried),
    }
    return Demonstrations(tuple(demos), tasks[0].features, provenance)


def filter_name(settings: ExpertSettings) -> str:
    """What every table says that used such demonstrations."""
    tolerance = settings.keep_saturated
    return "none" if tolerance is None else f"keep-saturated {tolerance:g}"


def saturated_episodes(
    name: str,
    roll: Callable[[int, tuple[int, ...]], list[Trajectory]],
    truth: LinearConstraint,
    tolerance: float,
    count: int,
    seed: tuple[int, ...],
    say: Callable[[str], None],
) -> tuple[list[Trajectory], int]:
    """`count` episodes that pass the filter, and how many were rolled out for them."""
    kept: list[Trajectory] = []
    batch, rolled = max(count, 16), 0
    while len(kept) < count and rolled < (MOST_TRIES if kept else FIRST_TRIES) * count:
        found = roll(batch, (*seed, rolled))
        rolled += batch
        kept += [t for t in found if is_saturated(t, truth, tolerance)]
        say(f"{name}: {len(kept)} of {rolled} episodes are saturated, {count} are wanted")
    if len(kept) < count:
        raise SolverFailed(
            f"{name}: only {len(kept)} of {rolled} episodes are saturated within {tolerance:g}, "
            f"{count} are wanted; widen --keep-saturated, leave it out, or train another expert"
        )
    return kept[:count], rolled


def is_saturated(t: Trajectory, truth: LinearConstraint, tolerance: float) -> bool:
    """The published filter: the mean true raw value lies just below the limit."""
    return -tolerance <= float(truth.raw(t.features).mean()) <= 0


def check_policy(task: ContinuousTask, policy: Mapping[str, NDArray[Any]]) -> None:
    inputs, actions = task.observation_dim + 1, len(task.action_low)
    shape = (policy["actor/w0"].shape[0], policy["actor/log_std"].shape[0])
    if shape != (inputs, actions):
        raise InvalidInput(
            f"the policy has {shape[0]} inputs and {shape[1]} actions, {task.name} needs "
            f"{inputs} and {actions}: it was trained on another world"
        )
