"""A small game on every kind of world, each over in a second or two.

Trainings have one set of shapes in common, so that JAX compiles them once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.objects import Demonstrations, TaskDemos
from ringfence.reproduce import experiment, point_demonstrators
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.solves import constraint_of
from ringfence.runs import driver
from ringfence.runs.config import Config, configure, make_world, merged
from ringfence.runs.training import make_demonstrations
from ringfence.worlds.tables import TableWorld, table_world
from ringfence.worlds.world import World

Document = dict[str, Any]

MAP = ("S.#0", "..#.", "..#.", "...1")
#: The Ant's: a wall between start and one goal, and a way below it.
FLOOR = ("S#0", "...", "..1")
STEPS = 30  # of an episode of an environment

PPO: Document = {
    "kind": "ppo",
    "env_steps": 2 * 16 * 16,
    "copies": 16,
    "steps": 16,
    "minibatches": 2,
    "passes": 1,
    "hidden": [16],
    "evaluation_episodes": 2,
    "test_episodes": 4,
    "checkpoint_every": 1,
}
LEARNING: Document = {
    "game": {"constraint": "speed <= ?", "iterations": 2, "extra": 0},
    "opening": {"steps": 20, "probe": False},
    "solver": PPO,
    "analysis": {"resamples": 20},
}
NETWORK: Document = {
    "hidden": [32, 32],
    "learning_rate": 1e-2,
    "final_rate": 0.0,
    "steps": 400,
    "batch": 64,
    "spread": 1.0,
}
GYM: Document = {
    "kind": "gym",
    "env": "own_cart:make_cart",
    "steps": STEPS,
    "features": [{"name": "speed", "unit": "m/s"}],
    "truth": "speed <= 0.5",
}


def strip() -> TableWorld:
    """Six states in two rows of three; the goals are the right ends, the state between start and
    the upper one is forbidden."""
    P = np.zeros((6, 4, 6))
    for s in range(6):
        row, col = divmod(s, 3)
        ways = [(row, max(col - 1, 0)), (row, min(col + 1, 2)), (0, col), (1, col)]
        for a, (r, c) in enumerate(ways):
            P[s, a, 3 * r + c] = 1.0
    rewards = {name: np.eye(6)[goal] for name, goal in (("upper", 2), ("lower", 5))}
    return table_world(P, rewards, horizon=8, name="strip", forbidden=(1,))


def worlds() -> dict[str, Document]:
    """The configuration of each kind's small game, as a document."""
    return {
        "grid": {"world": {"kind": "grid", "name": "small", "map": list(MAP), "horizon": 14}},
        "tables": {"world": asdict(strip().settings), "game": {"iterations": 3}},  # type: ignore[call-overload]
        "gym": {"world": GYM, **LEARNING},
        "ant": {"world": {"kind": "ant", "steps": STEPS, "truth": "speed <= 0.5"}, **LEARNING},
        "ant-bullet": {"world": {"kind": "ant-bullet", "truth": "speed <= 0.5"}, **LEARNING},
        "ant-maze": {
            "seed": 3,
            "world": {"kind": "ant-maze", "name": "floor", "map": list(FLOOR), "horizon": 400},
            "game": {"iterations": 2, "extra": 0},
            "player": {"network": NETWORK},
            "solver": {"episodes": 2},
        },
    }


def document(kind: str, **tables: Any) -> Document:
    """With entries of its own, by table: small("gym", game={"iterations": 1})."""
    return merged({"command": "ringfence learn", "seed": 0, **worlds()[kind]}, tables)


def config_of(kind: str, **tables: Any) -> Config:
    return configure(document(kind, **tables))


@cache
def demos_of(kind: str) -> Demonstrations:
    """By the world's own experts, or, where these are trained, by a random policy."""
    config = config_of(kind)
    world = make_world(config.world)
    if world.experts != "trained":
        few = {"paths": 3, "heldout": 2} if world.experts == "optimal" else {"paths": 2}
        more = {"seed": 3, "heldout": 1} if world.experts == "walking" else {}
        return make_demonstrations(config.world, world, {**few, **more}, None, Path())
    return of_random_policy(world)


def of_random_policy(world: World, train: int = 4, heldout: int = 2) -> Demonstrations:
    from ringfence.solvers.ppo import evaluate, no_augmentation

    made = []
    for task in world.tasks:
        acting: Any = task
        runs = evaluate(acting, policy_for(task), no_augmentation, train + heldout, (7,))
        made.append(TaskDemos(task.name, tuple(runs[:train]), tuple(runs[train:])))
    return Demonstrations(tuple(made), world.features, {})


def small(kind: str, **tables: Any) -> tuple[Config, Demonstrations]:
    return config_of(kind, **tables), demos_of(kind)


def eight_tasks(**tables: Any) -> tuple[Config, Demonstrations]:
    """A game of eight tasks on a continuous world: carts that are paid differently."""
    names = [f"cart {n}" for n in range(8)]
    tasks = [{"name": name, "kwargs": {"pay": 1.0 + n}} for n, name in enumerate(names)]
    world = {"tasks": tasks}
    given, game = demos_of("gym"), {"method": "mt-icl", "iterations": 2}
    player = {"kind": "payoff", "expert_budget": 0.5}
    config = config_of("gym", world=world, game=game, player=player, **tables)
    return config, replace(given, tasks=tuple(replace(given.tasks[0], task=n) for n in names))


def play(run: Path, kind: str, workers: int = 1, **tables: Any) -> dict[str, Any]:
    """A small game, played to its end."""
    driver.create(run, *small(kind, **tables))
    return driver.drive(run, workers)


#: What says how a run came about, and what is written anew from the rest.
CIRCUMSTANCES = ("metrics.jsonl", "timing.json", ".lock", "report.html")


def result(run: Path) -> dict[str, bytes]:
    """The bytes that must not depend on how a run came to its end: all but its circumstances, and
    the demonstrations (of which config.toml has the hash)."""
    files = [p for p in sorted(run.rglob("*")) if p.is_file() and p.name not in CIRCUMSTANCES]
    names = [p.relative_to(run) for p in files]
    return {str(n): (run / n).read_bytes() for n in names if n.parts[0] != "demos"}


def once(root: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made once for all processes of a test session."""
    place = root / name
    root.mkdir(exist_ok=True)
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            partial = root / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            os.replace(partial, place)
    return place


needs_bullet = pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed")
KINDS = ("grid", "tables", "gym", "ant", "ant-bullet", "ant-maze")
LEARNED = ("gym", "ant", "ant-bullet")  # with policies that are trained


def of_kinds(*kinds: str) -> pytest.MarkDecorator:
    """The test for each of these kinds of world; PyBullet's where it is installed."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(kind, marks=(pytest.mark.bullet, needs_bullet))
            if kind == "ant-bullet"
            else kind
            for kind in kinds
        ],
    )


every_world = of_kinds(*KINDS)


def two_goals(policies: str) -> tuple[Config, Demonstrations]:
    """A game on two goals of a point, trained so briefly that nothing is learned; policies: one for
    each task, or "one"."""
    variant = experiment.read("multitask").variants["table-2"]
    config = configuration(experiment.read("multitask"), variant, 0)
    small = replace(
        config.solver, env_steps=512, copies=8, steps=32, minibatches=2, passes=1, hidden=(16,),
        evaluation_episodes=4,
    )  # fmt: skip
    game = replace(config.game, iterations=2, extra=0, policies=policies)
    opening = replace(config.opening, steps=20, probe=False)  # so short a training earns nothing
    config = replace(config, solver=small, game=game, opening=opening)
    world = make_world(config.world)
    truth = constraint_of(variant.get("training")["constraint"], variant.get("training"), world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(point_demonstrators, "EPISODES", 6)
        return config, point_demonstrators.demonstrations(world, truth, 0, 0.3)
