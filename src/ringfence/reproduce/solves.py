"""Trainings on their own: each a resumable solve, found again by what determines it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints.activated import Activated
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.deploy.policies import load_policy
from ringfence.disk import read_json
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Trajectory
from ringfence.reproduce import experiment as experiments
from ringfence.reproduce.experiment import Experiment, Settings, Variant
from ringfence.reproduce.study import Say, Study, Summary, alone, key_of, place, telling
from ringfence.reproduce.trainings import ACTIONS, UNCONSTRAINED, course_figures
from ringfence.runs import counting, problem, solving
from ringfence.runs.backend import Backend
from ringfence.runs.config import make_world, tagged
from ringfence.runs.summary import SCHEMA
from ringfence.solvers.collecting import evaluate, no_augmentation
from ringfence.worlds.continuous import demonstrated_states
from ringfence.worlds.world import World

#: The seed path of the episodes at whose states trainings start, beside the expert's own seed.
DEMONSTRATE = 30
STANDING_STILL = "standing still"
#: The solver of trainings, where a file doesn't say.
LEARNER = "ppo"
#: Of a policy that is judged and was not trained here.
EPISODES = 32


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """A training's summary, with figures of its course and judged under other constraints."""
    training = variant.get("training")
    world = world_of(variant)
    if training.get("policy") == STANDING_STILL:
        about = {"schema": SCHEMA, "command": "", "world": world.name, "seed": seed}
        about |= {"kind": variant.get("world")["kind"]}
        return {**about, "judged": judge(world, still(world), training, ACTIONS[1:])}, 0.0
    run = trained(study.experiment, variant, seed, study.say, study.workers)
    summary = read_json(run / "summary.json")
    curves = counting.read_curves(run / "curves.csv")
    course = judged = None
    if training["constraint"] != UNCONSTRAINED:
        course = course_figures(curves["cost"], curves["lam"], training["delta"])
    elif "judged_under" in training:
        path = run / "judged.json"
        if not path.is_file():
            study.say(f"episodes to judge under {' and '.join(training['judged_under'])}")
            policy = load_policy(run).arrays
            path.write_text(json.dumps(judge(world, policy, training)))
        judged = read_json(path)
    seconds = float(read_json(run / "timing.json")["seconds"])
    return {**summary, "course": course, "judged": judged}, seconds


def referred(experiment: Experiment, name: str) -> tuple[Experiment, Variant]:
    """The training of this name: of this experiment, or "experiment/variant" of another."""
    of, _, variant = name.rpartition("/")
    home = experiments.read(of) if of else experiment
    found = {**home.variants, **home.experts}
    if variant not in found:
        raise InvalidInput(f"{experiment.name}: there is no training {name!r}")
    return home, found[variant]


def document(experiment: Experiment, variant: Variant, seed: int) -> Settings:
    """All that determines a training."""
    training, where = variant.get("training"), f"{experiment.name}/{variant.name}"
    found: Settings = {
        "world": asdict(tagged(where, "world", variant.get("world"))),
        "solver": asdict(tagged(where, "solver", {"kind": LEARNER, **variant.get("solver")})),
        **{key: training[key] for key in ("constraint", "activation", "delta") if key in training},
        "seed": seed,
    }
    if "after" in training:
        found["after"] = document(*referred(experiment, training["after"]), seed)
    if "starts" in training:
        found["starts"] = document(*referred(experiment, training["starts"]), 0)
        found["start_episodes"] = training["start_episodes"]
    return found


def folder_of(experiment: Experiment, variant: Variant, seed: int) -> Path:
    """Where the training is, or will be."""
    label = f"{variant.name}-seed-{seed}"
    return place("trainings", label, document(experiment, variant, seed))


def trained(
    experiment: Experiment, variant: Variant, seed: int, say: Say, workers: int | Backend = 1
) -> Path:
    """The finished run of a training, from wherever it was: here, or where an engine has room."""
    with alone(key_of(document(experiment, variant, seed))):
        run = folder_of(experiment, variant, seed)
        if not (run / problem.FILE).is_file():
            create(run, experiment, variant, seed, say, workers)
        engine = None if isinstance(workers, int) else workers
        solving.drive(run, telling(say), engine=engine)
    return run


def create(
    run: Path,
    experiment: Experiment,
    variant: Variant,
    seed: int,
    say: Say,
    workers: int | Backend = 1,
) -> None:
    training, where = variant.get("training"), f"{experiment.name}/{variant.name}"
    start = states = None
    if "after" in training:
        before = trained(*referred(experiment, training["after"]), seed, say, workers)
        start = load_policy(before).arrays
    if "starts" in training:
        states = states_of(experiment, training["starts"], training["start_episodes"], say)
    asked = problem.Single(
        f"ringfence reproduce {experiment.name} --variant {variant.name}",
        seed,
        tagged(where, "world", variant.get("world")),
        problem.TaskTable(),
        problem.ProblemTable(float(training["delta"]), episodes=EPISODES),
        tagged(where, "solver", {"kind": LEARNER, **variant.get("solver")}),
    )
    c = constraint_of(training["constraint"], training, world_of(variant))
    solving.create(run, asked, c, start=start, states=states)


def constraint_of(text: str, training: Mapping[str, Any], world: World) -> Constraint:
    """A constraint in words, counted as the training says."""
    c, _ = problem.read_constraint(text, world)
    counted: Any = training.get("activation")
    return Activated(c, counted) if counted and text != UNCONSTRAINED else c


def world_of(variant: Variant) -> World:
    return make_world(tagged(variant.name, "world", variant.get("world")))


def states_of(experiment: Experiment, name: str, episodes: int, say: Say) -> Array:
    """All states of fresh stochastic episodes of the training's seed 0, [n, s]."""
    home, expert = referred(experiment, name)
    say(f"the demonstrator: {name}, seed 0")
    run = trained(home, expert, 0, say)
    task: Any = world_of(expert).tasks[0]
    raw = parse_inequality(expert.get("training")["constraint"], task.features).raw
    shown = evaluate(task, load_policy(run).arrays, raw, episodes, (0, DEMONSTRATE))
    return demonstrated_states(task, shown)


# Policies under constraints that they were not trained under -----------------------------------


def still(world: World) -> dict[str, Any]:
    """A policy whose every action is 0."""
    task: Any = world.tasks[0]
    inputs, actions = task.observation_dim + 1, len(task.action_low)
    return {
        "actor/w0": np.zeros((inputs, actions), np.float32),
        "actor/b0": np.zeros(actions, np.float32),
        "actor/log_std": np.zeros(actions, np.float32),
        "norm/mean": np.zeros(inputs),
        "norm/std": np.ones(inputs),
    }


def judge(
    world: World,
    policy: Mapping[str, Any],
    training: Mapping[str, Any],
    kinds: Sequence[str] = ACTIONS,
) -> Summary:
    """actions -> constraint -> figures of some episodes."""
    task: Any = world.tasks[0]
    judged: Summary = {}
    for k, actions in enumerate(ACTIONS):
        if actions in kinds:
            fixed = actions == "deterministic"
            # Not trained under a constraint: there is nothing to see of it.
            episodes = evaluate(
                task, policy, no_augmentation, EPISODES, (0, k), deterministic=fixed
            )
            judged[actions] = {
                text: figures_of(episodes, parse_inequality(text, task.features))
                for text in training["judged_under"]
            }
    return judged


def figures_of(episodes: Sequence[Trajectory], c: LinearConstraint) -> dict[str, float]:
    """Means over episodes."""
    names = [f.name for f in c.features]
    speed = {}
    if "speed" in names:
        paces = [t.features[:, names.index("speed")].mean() for t in episodes]
        speed = {"speed": float(np.mean(paces))}
    return {
        "episodes": len(episodes),
        "reward": float(np.mean([t.rewards.sum() for t in episodes])),
        "length": float(np.mean([len(t) for t in episodes])),
        **speed,
        "true_cost": float(np.mean([c.cost(t.features).sum() for t in episodes])),
        "true_raw": float(np.mean([c.raw(t.features).sum() for t in episodes])),
    }
