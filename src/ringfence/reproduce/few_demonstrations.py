"""From few demonstrations: does an estimate of the experts serve better than what they showed?

The point of `multitask`, its demonstrators and its game; learners are planned as exactly as
demonstrators are, so a game takes a second and two games differ in the experts alone:

plain            the demonstrations
replay           with the steps of each task's clone (Swamy et al. 2022), as long as it has not been
                 farther than a radius from all that was demonstrated. In a class that forbids
                 nothing where an expert was, only places count, so the demonstrations stay whole
next to visited  with all places next to a demonstrated one: the same trust without a clone

What bootstrapping over tasks is worth is counted beside them: tasks are drawn with replacement, the
player answers to theirs, and each cell is forbidden by a share of these answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter
from scipy.spatial import KDTree

from ringfence import game as games
from ringfence.constraints.family import make_family
from ringfence.game import Record
from ringfence.objects import (
    Array,
    Behaviour,
    Constraint,
    Problem,
    Solution,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.players.player import ConstraintPlayer, Ground
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed
from ringfence.reproduce.limit_worlds import EDGE, STRIDE
from ringfence.reproduce.point_demonstrators import EDGE_IS_OUT, PITCH, axis
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.shared_point import Mask, cells_of, features, figures, forbidden
from ringfence.reproduce.solves import constraint_of
from ringfence.reproduce.study import Study, Summary
from ringfence.runs.config import Config, make_player, make_world
from ringfence.runs.demonstrated import usual_moves
from ringfence.runs.driver import rules
from ringfence.runs.summary import SCHEMA
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.collecting import evaluate, no_augmentation

Places = NDArray[np.int64]

#: Radii of trust, in steps of the point at full speed.
RADII = (0.25, 0.5, 1.0)
#: Episodes of a task: of its learner, of its clone, and fresh ones of its demonstrator.
LEARNERS, ROLLED, FRESH = 133, 128, 25
#: Seed paths, beside the run's.
SHOWN, FRESHLY, LEARNED, CLONED, DRAWN = 81, 82, 83, 84, 85
#: What a step beyond a constraint costs a planner: more than any way round.
BEYOND = 1e3
#: Between kinds of cells, by the share of resamples that forbid them.
SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class Floor:
    """What all games of a variant have in common."""

    config: Config
    world: Any
    truth: Constraint

    @property
    def slip(self) -> int:
        """How far a step may miss along each axis, in PITCH."""
        return round(float(self.world.tasks[0].kwargs.get("slip", 0.0)) / PITCH)


# The best ways -----------------------------------------------------------------------------------


def nodes() -> Array:
    """Where a plan may be, [n, n, 2], m."""
    return np.stack(np.meshgrid(axis(), axis(), indexing="ij"), axis=-1)


def nearest(points: Array) -> Places:
    """The nearest node's indices of points [.., 2]."""
    at = np.rint((points + EDGE) / PITCH - 0.5).astype(np.int64)
    return np.asarray(np.clip(at, 0, len(axis()) - 1))


def beyond(c: Constraint, edge: float = 0.0) -> Mask:
    """The nodes [n, n] that cost something; with an edge, whose raw value is above -edge."""
    every = nodes().reshape(-1, 2)
    off = c.raw(every) > -edge if edge else c.cost(every) > 0
    return np.asarray(off).reshape(nodes().shape[:2])


def ways(
    goal: Array, off: Mask, starts: Places, steps: int, slip: int, rng: np.random.Generator
) -> tuple[Places, Places]:
    """The largest sum of rewards that keeps off nodes `off` [n, n], where that is possible: from
    starts [m, 2] the nodes [m, steps + 1, 2] and the moves [m, steps, 2] that were aimed at, in
    PITCH. Each step misses by -slip, 0 or slip along each axis."""
    reach = round(STRIDE / PITCH)
    moves = np.argwhere(np.ones((2 * reach + 1, 2 * reach + 1))) - reach
    reward = -np.linalg.norm(nodes() - goal, axis=-1) - BEYOND * off
    V, aims = np.zeros_like(reward), list[Array]()
    for _ in range(steps):
        aims.append(slipped(reward + V, slip))
        V = maximum_filter(aims[-1], 2 * reach + 1, mode="constant", cval=-np.inf)
    path, made = [starts], list[Places]()
    for aim in reversed(aims):
        wide = np.pad(aim, reach, constant_values=-np.inf)
        i, j = (path[-1][:, None] + moves + reach).transpose(2, 0, 1)
        made.append(moves[wide[i, j].argmax(axis=1)])
        missed = slip * rng.integers(-1, 2, size=starts.shape) if slip else 0
        path.append(np.clip(path[-1] + made[-1] + missed, 0, len(reward) - 1))
    return np.stack(path, axis=1), np.stack(made, axis=1)


def slipped(worth: Array, slip: int) -> Array:
    """The expected worth [n, n] of aiming at a node, from that of being at one."""
    if not slip:
        return worth
    wide = np.pad(worth, slip, mode="edge")
    by, n = (0, slip, 2 * slip), len(worth)
    return np.asarray(np.mean([wide[i : i + n, j : j + n] for i in by for j in by], axis=0))


def walked(
    floor: Floor, k: int, off: Mask, which: NDArray[np.int64], rng: np.random.Generator
) -> list[Trajectory]:
    """Episodes of the best that keeps off nodes, in task k, from its starts of these numbers."""
    task = floor.world.tasks[k]
    goal, starts = np.array(task.kwargs["goal"]), nearest(np.array(task.kwargs["starts"]))
    at, moves = ways(goal, off, starts[which % len(starts)], task.horizon, floor.slip, rng)
    pairs = zip(axis()[at], moves * PITCH / STRIDE, strict=True)
    return [episode(goal, xy, actions) for xy, actions in pairs]


def episode(goal: Array, xy: Array, actions: Array) -> Trajectory:
    """As the environment would record it, from places [steps + 1, 2]."""
    observations = np.hstack([xy, np.broadcast_to(goal, xy.shape)])
    rewards = -np.linalg.norm(xy[1:] - goal, axis=1)
    return Trajectory(observations, actions, rewards, xy[1:], False)


def shown(floor: Floor, count: int, path: tuple[int, ...]) -> list[TaskDemos]:
    """So many demonstrations of each task, from starts that are drawn."""
    off, rng, found = beyond(floor.truth, EDGE_IS_OUT), np.random.default_rng(path), []
    for k, task in enumerate(floor.world.tasks):
        which = rng.integers(len(task.kwargs["starts"]), size=count)
        found.append(TaskDemos(task.name, tuple(walked(floor, k, off, which, rng)), ()))
    return found


# Estimates ---------------------------------------------------------------------------------------


def estimates(
    floor: Floor, demos: Sequence[TaskDemos], seed: int
) -> dict[str, list[tuple[Behaviour, Array]]]:
    """By name the experts [K], each with the features [n, 2] that the estimate adds."""
    cloned = [clone_walks(floor, k, d, seed) for k, d in enumerate(demos)]
    found = {"plain": [with_places(d, np.zeros((0, 2))) for d in demos]}
    for radius in RADII:
        pairs = zip(demos, cloned, strict=True)
        added = [with_places(d, trusted(d, walks, radius)) for d, walks in pairs]
        found[f"replay within {radius:g}"] = added
    return {**found, "next to visited": [with_places(d, beside(d)) for d in demos]}


def clone_walks(floor: Floor, k: int, d: TaskDemos, seed: int) -> list[Trajectory]:
    """Episodes of a task's clone, without noise of its own."""
    task, o = floor.world.tasks[k], floor.config.opening
    settings = CloningConfig(o.steps, o.batch, o.learning_rate, floor.config.solver.hidden)
    policy = clone(d.train, task, (seed, CLONED, k), settings)
    return evaluate(task, policy, no_augmentation, ROLLED, (seed, CLONED, k), deterministic=True)


def trusted(d: TaskDemos, walks: Sequence[Trajectory], radius: float) -> Array:
    """The clone's features [n, 2] while it has never been farther from what was demonstrated."""
    near = KDTree(np.concatenate([t.observations for t in d.train]) / STRIDE)
    kept = []
    for t in walks:
        away = near.query(t.observations / STRIDE)[0]
        kept.append(t.features[np.logical_and.accumulate(away <= radius)[1:]])
    return np.concatenate(kept)


def beside(d: TaskDemos) -> Array:
    """The nodes [n, 2] that share a side with a demonstrated one."""
    at = nearest(np.concatenate([t.features for t in d.train]))
    sides = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
    around = np.clip((at[:, None] + sides).reshape(-1, 2), 0, len(axis()) - 1)
    return np.asarray(axis()[np.unique(around, axis=0)])


def with_places(d: TaskDemos, added: Array) -> tuple[Behaviour, Array]:
    """The experts who were in these places, too, once in ROLLED episodes each."""
    pi = behaviour_of(d.train)
    more = replace(
        pi,
        features=np.concatenate([pi.features, added]),
        visits=np.concatenate([pi.visits, np.full(len(added), 1 / ROLLED)]),
    )
    return more, added


def cells_added(truth: Constraint, demos: Sequence[TaskDemos], added: Sequence[Array]) -> Row:
    """Cells of PITCH where an estimate says that experts were and none was shown: all, and those
    that the truth forbids."""
    seen, said = (
        np.unique(nearest(np.concatenate(points)), axis=0)
        for points in ([t.features for d in demos for t in d.train], added)
    )
    n = len(axis())
    new = said[~np.isin(said @ [n, 1], seen @ [n, 1])]
    off = truth.cost(axis()[new]) > 0
    return {"cells_added": len(new), "forbidden_cells_added": int(off.sum())}


# A game ------------------------------------------------------------------------------------------


def game(
    floor: Floor, demos: Sequence[TaskDemos], experts: Sequence[Behaviour], seed: int
) -> list[Record]:
    def solve_all(problems: Sequence[Problem]) -> list[Solution]:
        off = beyond(problems[0].constraint)
        rng, every = np.random.default_rng([*problems[0].seed, LEARNED]), np.arange(LEARNERS)
        done = [behaviour_of(walked(floor, k, off, every, rng)) for k in range(len(problems))]
        return [Solution({}, 0.0, pi, 0) for pi in done]

    player = player_of(floor, demos, experts, seed)
    return list(
        games.play(floor.world.tasks, experts, solve_all, player, rules(floor.config), seed)
    )


def player_of(
    floor: Floor, demos: Sequence[TaskDemos], experts: Sequence[Behaviour], seed: int
) -> ConstraintPlayer:
    """The run's player, made for these experts."""
    config, world = floor.config, floor.world
    points = np.concatenate([t.features for d in demos for t in d.train])
    ranged = config.game.raw_in == "range"
    family = make_family(config.game.constraint, (), world.features, None, None, points, ranged)
    T, N = float(world.tasks[0].horizon), config.game.iterations
    ground = Ground(family, T, experts, True, N, config.seed, usual_moves(demos))
    return make_player(config.player, ground)


def entered(demos: Sequence[TaskDemos], records: Sequence[Record]) -> NDArray[np.int64]:
    """The cells [n, 2] in which a demonstrator or a learner of the game was."""
    points = [t.features for d in demos for t in d.train]
    points += [x for r in records for x in features(r.learners)]
    return np.unique(cells_of(points), axis=0)


def judged(
    floor: Floor, demos: Sequence[TaskDemos], records: Sequence[Record], fresh: Sequence[TaskDemos]
) -> Row:
    """The game's last answer beside the truth, and what it charges fresh demonstrations."""
    c, cells = records[-1].c_next, entered(demos, records)
    charged = [c.cost(t.features) > 0 for d in fresh for t in d.train]
    return {
        **figures(forbidden(c, cells), forbidden(floor.truth, cells)),
        "charged_episodes": float(np.mean([x.any() for x in charged])),
        "charged_steps": float(np.concatenate(charged).mean()),
    }


# Resampled tasks ---------------------------------------------------------------------------------


def resampled(
    floor: Floor,
    demos: Sequence[TaskDemos],
    experts: Sequence[Behaviour],
    records: Sequence[Record],
    seed: int,
) -> Rows:
    """Cells by the share of answers that forbid them, where tasks are drawn with replacement: how
    many, and how many of them the truth forbids."""
    cells, K = entered(demos, records), len(experts)
    count, rng = floor.config.analysis.resamples, np.random.default_rng([seed, DRAWN])
    share = np.zeros(len(cells))
    for _ in range(count):
        drawn = rng.integers(K, size=K)
        some = [experts[k] for k in drawn]
        history = [[r.shown[k] for k in drawn] for r in records]
        c = player_of(floor, demos, some, seed).update(some, history)
        share += forbidden(c, cells) / count
    true, kind = forbidden(floor.truth, cells), np.digitize(share.round(9), SHARES, right=True)
    return [
        {
            "share": "never" if n == 0 else f"{SHARES[n - 1]:.0%} to {high:.0%}",
            "cells": int((kind == n).sum()),
            "truly_forbidden": int((true & (kind == n)).sum()),
        }
        for n, high in enumerate(SHARES)
        if count
    ]


# A seed, and the tables --------------------------------------------------------------------------


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    began = time.monotonic()
    config, training = configuration(study.experiment, variant, seed), variant.get("training")
    world: Any = make_world(config.world)
    truth = constraint_of(training["constraint"], training, world)
    floor, count = Floor(config, world, truth), variant.get("demonstrations")["paths"]
    demos, fresh = shown(floor, count, (seed, SHOWN)), shown(floor, FRESH, (seed, FRESHLY))
    found: dict[str, Row] = {}
    shares: Rows = []
    for name, pairs in estimates(floor, demos, seed).items():
        experts, added = zip(*pairs, strict=True)
        records = game(floor, demos, experts, seed)
        found[name] = judged(floor, demos, records, fresh) | cells_added(truth, demos, added)
        study.say(f"  {count} demonstrations, {name}: {found[name]}")
        if name == "plain":
            shares = resampled(floor, demos, experts, records, seed)
    summary = {
        "schema": SCHEMA,
        "command": config.command,
        "world": world.name,
        "class": config.game.constraint,
        "seed": seed,
        "truth": truth.describe(),
        "demonstrations": count,
        "estimates": found,
        "resampled": shares,
    }
    return summary, time.monotonic() - began


def few_estimates(study: Study) -> Found:
    """A row per number of demonstrations, estimate and seed."""
    rows: Rows = []
    for variant in study.variants:
        row: Row = {"variant": variant.part, **about(variant)}
        for seed, summary in each_seed(study, variant).items():
            if summary is None:
                rows.append({**row, "estimate": "plain", "seed": seed, "status": NOT_RUN})
                continue
            every: Mapping[str, Row] = summary["estimates"]
            rows += [{**row, "estimate": name, "seed": seed, **x} for name, x in every.items()]
    keys = ("variant", "class", "demonstrations", "estimate")
    return Found(with_means(rows, keys))


def few_resampled(study: Study) -> Found:
    """A row per number of demonstrations and share of resamples, over all seeds."""
    rows: Rows = []
    for variant in study.variants:
        played = [s["resampled"] for s in study.summaries(variant).values()]
        for same in zip(*played, strict=True):
            cells, true = (sum(x[key] for x in same) for key in ("cells", "truly_forbidden"))
            right = true / cells if cells else None
            row = {"variant": variant.part, **about(variant), "share": same[0]["share"]}
            rows.append({**row, "cells": cells, "truly_forbidden": true, "right": right})
    return Found(rows)


def about(variant: Variant) -> Row:
    return {
        "class": variant.get("game")["constraint"],
        "demonstrations": variant.get("demonstrations")["paths"],
    }
