"""The paper's maze in exact form, and what goes past the paper: rows of numbers.

Everything is exact or seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.experts.optimal import (
    ExpertConfig,
    expert_behaviours,
    make_demonstrations,
)
from ringfence.objects import behaviour_of
from ringfence.reproduce.exact_tasks import (
    Attempts,
    Mask,
    forbidden,
    groups,
    last_map,
    learn,
    map_text,
    overlap,
    put_together,
    sampled,
)
from ringfence.reproduce.rows import MEAN, Found, Row, Rows, mean_of
from ringfence.reproduce.study import Study, kept
from ringfence.runs.demonstrated import exact_groups
from ringfence.runs.summary import versions
from ringfence.worlds.grid import Cell, GridWorld, maze, random_map, read_map

#: Of demonstrators who are asked for one demonstration more, and of the maze's sampled ones.
PATHS = 10
ALL = "all"

PLAYERS = {
    "regression, restricted": ("regression", True),
    "regression, unrestricted (the paper)": ("regression", False),
    "ftrl, restricted": ("ftrl", True),
}


def exact_games(study: Study) -> Found:
    """With exact occupancies: each player's course over the iterations (the paper's curves)."""
    world = maze()
    experts = expert_behaviours(world)
    rows: Rows = []
    for name, (player, restricted) in PLAYERS.items():
        for record in learn(world, world.tasks, experts, restricted, player):
            pairs = list(zip(record.learners, experts, strict=True))
            rows.append(
                {
                    "player": name,
                    "i": record.i,
                    "iou": overlap(forbidden(record.c_next), world.truth.walls),
                    "true_cost": float(np.mean([world.truth.true_cost(pi) for pi, _ in pairs])),
                    "worst_reward_gap": min(pi.reward - pi_E.reward for pi, pi_E in pairs),
                }
            )
    return Found(rows)


def path_curve(study: Study) -> Found:
    """IoU over the number of sampled paths per start, and whose fault the wrong cells are."""
    world, rows = maze(), []
    for paths in study.options["paths"]:
        of = [
            path_row(world, paths, seed)
            for seed in range(study.seeds or study.experiment.file.seeds)
        ]
        counts = {name: sum(row[name] for row in of) for name in ("wrong", "wrong_and_visited")}
        rows += [*of, {**mean_of(of), "paths": paths, "seed": MEAN, **counts}]
    return Found(rows)


def path_row(world: GridWorld, paths: int, seed: int) -> Row:
    demos, evidence = sampled(world, paths, seed)
    experts = [behaviour_of(d.train) for d in demos.tasks]
    c, walls = last_map(learn(world, world.tasks, experts)), world.truth.walls
    plain = last_map(learn(world, world.tasks, experts, restricted=False))
    wrong, seen = c != walls, evidence.allowed.reshape(world.shape)
    return {
        "paths": paths,
        "seed": seed,
        "iou": overlap(c, walls),
        "iou_regression": overlap(plain, walls),
        "wrong": int(wrong.sum()),
        "wrong_and_visited": int((wrong & seen).sum()),
    }


def one_task_alone(study: Study) -> Found:
    """What one task's data give, ten constraints put together afterwards, and the game on all."""
    world = maze()
    attempts = Attempts(world, world.starts)
    rows = [
        {
            "constraint": name,
            "iou": overlap(c, world.truth.walls),
            "impossible": attempts.impossible(c),
            "map": map_text(c),
        }
        for name, c in maps(world).items()
    ]
    return Found(rows)


def maps(world: GridWorld) -> dict[str, Mask]:
    """The forbidden cells by what they were learned from."""
    experts = expert_behaviours(world)
    single = [last_map(learn(world, [t], [e])) for t, e in zip(world.tasks, experts, strict=True)]
    multi = [forbidden(record.c_next) for record in learn(world, world.tasks, experts)]
    return put_together(single, multi)


def entropy(study: Study) -> Found:
    """The paper's argument on ill-posedness, for one task.

    A learner with more entropy goes everywhere, so the constraint forbids all that was not taken.
    """
    world = maze()
    attempts = Attempts(world, world.starts)
    expert = expert_behaviours(world)[0]
    not_taken, rows = world.shape[0] * world.shape[1] - len(expert.features), []
    for temperature in study.options["temperatures"]:
        c = last_map(learn(world, world.tasks[:1], [expert], temperature=temperature))
        rows.append(
            {
                "temperature": temperature,
                "forbidden": int(c.sum()),
                "not_taken": not_taken,
                "iou": overlap(c, world.truth.walls),
                "impossible": attempts.impossible(c),
            }
        )
    return Found(rows)


# Tasks left out --------------------------------------------------------------------------------

COUNTS = [f"{w}{c}" for w in ("covered", "uncovered") for c in ("", "_success", "_safe")]


def left_out(study: Study) -> Found:
    """All ways to leave goals out: those goals, and all goals from new starts.

    A row per way, and one for all ways.
    """
    options = study.options
    starts = [(int(row), int(col)) for row, col in options["new_starts"]]
    rows: Rows = []
    for experts, paths in (("exact", None), ("sampled", options["paths"])):
        study.say(f"all ways to leave {options['goals']} goals out, {experts} experts")
        document = {**options, "paths": paths, "versions": versions(maze())}
        make = partial(all_ways, options["goals"], starts, paths)
        ways = kept("left-out", document, make)
        for unknown in ("avoid", "allow"):
            of = [way for way in ways if way["unknown"] == unknown]
            total = {name: sum(way[name] for way in of) for name in COUNTS}
            rows += [{"experts": experts, **way} for way in of]
            rows.append({"experts": experts, "unknown": unknown, "left_out": ALL, **total})
    return Found(rows)


def all_ways(count: int, new_starts: Sequence[Cell], paths: int | None) -> Rows:
    """paths: sampled paths per start, or None for exact occupancies."""
    world = maze()
    ways = combinations(range(len(world.tasks)), count)
    attempts = Attempts(world, (*world.starts, *new_starts))
    return [
        row for n, way in enumerate(ways) for row in one_way(attempts, way, new_starts, paths, n)
    ]


def one_way(
    attempts: Attempts, way: Sequence[int], new_starts: Sequence[Cell], paths: int | None, seed: int
) -> Rows:
    world = attempts.world
    kept_tasks = [k for k in range(len(world.tasks)) if k not in way]
    c, evidence = learn_subset(world, kept_tasks, paths, 2 * seed)
    pairs = [(world.goals[k], s) for k in way for s in world.starts]
    pairs += [(goal, s) for goal in world.goals for s in new_starts]
    covered = [attempts.covered(evidence, pair) for pair in pairs]
    shown = evidence.allowed.reshape(world.shape)
    rows = []
    for unknown, cells in (("avoid", c | ~shown), ("allow", c)):
        row: Row = {"left_out": " ".join(map(str, way)), "unknown": unknown}
        done = [attempts(pair, cells) for pair in pairs]
        for name, called in (("covered", True), ("uncovered", False)):
            of = [d for d, said in zip(done, covered, strict=True) if said == called]
            row[name] = len(of)
            row[f"{name}_success"] = sum(d is not None for d in of)
            row[f"{name}_safe"] = sum(d is None or d.true_cost == 0 for d in of)
        rows.append(row)
    return rows


def learn_subset(
    world: GridWorld, tasks: Sequence[int], paths: int | None, seed: int
) -> tuple[Mask, Evidence]:
    chosen = [world.tasks[k] for k in tasks]
    if paths is None:
        everyone = expert_behaviours(world)
        found = learn(world, chosen, [everyone[k] for k in tasks])
        return last_map(found), evidences.label(exact_groups(world, chosen))
    demos = make_demonstrations(world, ExpertConfig(paths=paths, heldout=0, seed=seed))
    experts = [behaviour_of(demos.tasks[k].train) for k in tasks]
    return last_map(learn(world, chosen, experts)), evidences.label(groups(chosen, demos))


# Asking for a demonstration --------------------------------------------------------------------


def asking(study: Study) -> Found:
    """In random mazes: what the suggested next demonstration settles, and what a random one does.

    `settled` counts the cells that were unknown before and are not afterwards, `decided` those then
    allowed or proven.
    """
    study.say("asking for the next demonstration in random mazes")
    mazes = study.options["mazes"]
    made = kept("asking", {"mazes": mazes, "versions": versions(maze())}, lambda: all_asked(mazes))
    rows = [{"maze": row["maze"], **row} for row in made]
    totals: dict[str, Row] = {}
    for how in ("suggested", "random"):
        of = [row for row in made if row["asked"] == how]
        sums = {key: sum(row[key] for row in of) for key in ("settled", "decided")}
        totals[how] = {"maze": ALL, "asked": how, **sums}
    ratio = {k: totals["suggested"][k] / totals["random"][k] for k in ("settled", "decided")}
    ratios: Row = {"maze": ALL, "asked": "ratio"}
    ratios |= {key: round(value, 2) for key, value in ratio.items()}
    unknown = {row["maze"]: row["unknown"] for row in made}
    facts = {"mazes": len(unknown), "unknown": sum(unknown.values())}
    return Found([*rows, *totals.values(), ratios], facts)


def all_asked(mazes: int) -> Rows:
    return [row for seed in range(mazes) for row in asked_in(seed)]


def asked_in(seed: int) -> Rows:
    """One random maze; the demonstrators are optimal under the truth."""
    world = read_map(random_map(seed))
    demos, evidence = sampled(world, PATHS, seed)
    if not evidence.unknown.any():
        return []
    c = last_map(learn(world, world.tasks, [behaviour_of(d.train) for d in demos.tasks]))
    known, before = groups(world.tasks, demos), evidence.unknown
    rng = np.random.default_rng([seed, 1])
    start = int(rng.choice(np.flatnonzero(evidence.allowed)))
    goal = int(rng.choice(np.flatnonzero(evidence.allowed | evidence.unknown)))
    asked: dict[str, tuple[int, int] | None] = {
        "suggested": suggested(world, evidence, c),
        "random": (start, goal),
    }
    rows = []
    for how, pair in asked.items():
        after = evidence
        if pair is not None and not world.truth.walls.ravel()[pair[1]]:
            after = evidences.label([*known, demonstrated(world, *pair, seed)])
        settled = before & ~after.unknown
        decided = before & (after.allowed | after.proven)
        counts = {"settled": int(settled.sum()), "decided": int(decided.sum())}
        rows.append({"maze": seed, "asked": how, "unknown": int(before.sum()), **counts})
    return rows


def suggested(world: GridWorld, evidence: Evidence, c: Mask) -> tuple[int, int] | None:
    """Start and goal state of the best demonstration to ask for."""
    goals = np.flatnonzero(evidence.allowed | evidence.unknown)
    cells = {world.task(cell).name: cell for cell in (_cell(world, s) for s in goals)}
    tasks = [world.task(cell) for cell in cells.values()]
    best = evidences.next_demonstrations(evidence, tasks, c.ravel())
    if not best:
        return None
    row, col = cells[best[0].task]
    return best[0].start, row * world.shape[1] + col


def _cell(world: GridWorld, state: Any) -> Cell:
    row, col = divmod(int(state), world.shape[1])
    return row, col


def demonstrated(world: GridWorld, start: int, goal: int, seed: int) -> evidences.Group:
    """What demonstrators who know the truth show from start to goal."""
    one = replace(world, starts=(_cell(world, start),), goals=(_cell(world, goal),))
    demos = make_demonstrations(one, ExpertConfig(paths=PATHS, heldout=0, seed=seed))
    (group,) = evidences.groups_of(one.tasks[0], demos.tasks[0].train)
    return group
