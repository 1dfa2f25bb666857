"""What the labels of a run say of the constraint that tasks share, beside the truth: a point among
obstacles, at two sizes of cells.

A proven cell must hold a truly forbidden point, and so must one of the cells of a conflict. Of the
truly forbidden cells that learners crossed many should lie in a small conflict, which says nearly
where the constraint is. And the demonstration that is asked for next should settle more cells than
one of a random start and goal: cells that it allows, and cells of the straight way, where that
would have earned more and isn't taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.narrowing import FEW
from ringfence.analysis.evidence.sampled import SampledEvidence, from_json
from ringfence.analysis.evidence.witnesses import beats, beyond_best
from ringfence.constraints.cell_grid import Grid
from ringfence.objects import Array, Constraint
from ringfence.reproduce.iterates import each_seed
from ringfence.reproduce.limit_worlds import STRIDE
from ringfence.reproduce.point_demonstrators import free_places, places, planned, walked
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.study import Study, Summary
from ringfence.runs import config as configs
from ringfence.runs import driver
from ringfence.runs.backend import Backend
from ringfence.runs.folder import OnEvent, read_demos

#: The other size of cells at which a game is labelled.
OTHER_CELLS = "table(x by 0.2, y by 0.2)"
#: Points along a side of a cell, its edges included, at which the truth is asked.
FINE = 41
#: How many demonstrations are chosen at random, and their seed path beside the run's.
RANDOM, CHOSEN = 20, 79
#: What a row says of a run's labels.
COLUMNS = (
    *("proven", "proven_free", "conflict_sets", "conflicts_without_forbidden"),
    *("crossed_forbidden", "crossed_in_small", "suggested_cells", "random_cells"),
)

Mask = NDArray[np.bool_]


def labels(
    document: Mapping[str, Any],
    world: Any,
    truth: Constraint,
    crossed: Array,
    random: Sequence[Asked],
) -> Row:
    """Figures of an evidence.json over cells of x and y.

    crossed [n, 2]: where learners were; random: demonstrations beside which the one that is asked
    for first is counted.
    """
    evidence = from_json(document["evidence"])
    first = document["next"][:1]
    suggested = [
        asked(world, truth, *(middle(evidence.grid, wish[end]) for end in ("start", "goal")))
        for wish in first
    ]
    return {
        **soundness(evidence, holding(evidence.grid, truth)),
        **in_small(evidence, truth, crossed),
        "suggested_cells": mean_settled(evidence, suggested),
        "random_cells": mean_settled(evidence, random),
    }


def soundness(evidence: SampledEvidence, forbidden: Mask) -> Row:
    """forbidden [S]: the cells that hold a truly forbidden point."""
    proven = evidence.proven
    without = [not forbidden[list(c.cells)].any() for c in evidence.conflicts]
    return {
        "proven": int(proven.sum()),
        "proven_free": int((proven & ~forbidden).sum()),
        "conflict_sets": len(without),
        "conflicts_without_forbidden": sum(without),
    }


def in_small(evidence: SampledEvidence, truth: Constraint, crossed: Array) -> Row:
    """The truly forbidden cells, by their middles, that learners crossed, and those of them in a
    conflict of few."""
    met = np.unique(evidence.index(crossed))
    bad = met[truth.cost(np.array([middle(evidence.grid, int(cell)) for cell in met])) > 0]
    small = {cell for c in evidence.conflicts if len(c.cells) <= FEW for cell in c.cells}
    return {"crossed_forbidden": len(bad), "crossed_in_small": len(small & set(bad.tolist()))}


def holding(grid: Grid, truth: Constraint) -> Mask:
    """The cells [S] that hold a truly forbidden point, by a fine lattice in each."""
    side = np.linspace(0, 1, FINE)
    lattice = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    corners = grid.low + grid.size * np.argwhere(np.ones(grid.shape))
    return np.array([bool((truth.cost(c + grid.size * lattice) > 0).any()) for c in corners])


def middle(grid: Grid, cell: int) -> Array:
    """Where the middle of a cell is [2]."""
    return np.asarray(grid.low + grid.size * (np.array(np.unravel_index(cell, grid.shape)) + 0.5))


# What a demonstration settles --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A demonstration within the truth, and the straight way: places [steps, 2] and what each
    earns."""

    shown: Array
    earned: float
    wish: Array
    could: float


def asked(world: Any, truth: Constraint, start: Array, goal: Array) -> Asked:
    """From the free place that is nearest to a start; a goal that is forbidden is neared."""
    free, every = free_places(truth), places()
    away = np.where(free, np.linalg.norm(every - start, axis=-1), np.inf)
    begin = every[np.unravel_index(int(away.argmin()), free.shape)]
    kwargs = {"goal": goal.tolist(), "starts": [begin.tolist()]}
    task = world.new_task({"name": f"to {tuple(goal.tolist())}", "kwargs": kwargs})
    shown = walked(task, planned(goal, free, task.horizon), 0).observations[1:, :2]
    wish = straight(begin, goal, task.horizon)
    earned, could = (-float(np.linalg.norm(way - goal, axis=1).sum()) for way in (shown, wish))
    return Asked(shown, earned, wish, could)


def straight(start: Array, goal: Array, steps: int) -> Array:
    """The places [steps, 2] of who goes straight to a goal, as fast as the point can, and stays."""
    gone = STRIDE * np.arange(1, steps + 1) / max(float(np.abs(goal - start).max()), STRIDE)
    return np.asarray(start + np.minimum(gone, 1.0)[:, None] * (goal - start))


def asked_at_random(world: Any, truth: Constraint, seed: int) -> list[Asked]:
    """From and to any places of the free floor."""
    rng, free = np.random.default_rng([seed, CHOSEN]), places()[free_places(truth)]
    return [asked(world, truth, *rng.choice(free, 2)) for _ in range(RANDOM)]


def settled(evidence: SampledEvidence, one: Asked) -> int:
    """How many cells a demonstration labels that had none: allowed where it was, and, where it
    earned less than the straight way would, in a conflict on that way."""
    shown, wish = (np.unique(evidence.index(way)) for way in (one.shown, one.wish))
    allowed = shown[~evidence.allowed[shown]]
    if not beats(one.could, beyond_best(one.earned, evidence.slack)):
        return len(allowed)
    return len(np.union1d(allowed, wish[evidence.unknown[wish]]))


def mean_settled(evidence: SampledEvidence, demonstrations: Sequence[Asked]) -> float | None:
    if not demonstrations:
        return None
    return float(np.mean([settled(evidence, one) for one in demonstrations]))


# Two sizes ---------------------------------------------------------------------------------------


def relabelled(run: Path, workers: int | Backend, tell: OnEvent) -> Path:
    """The same game in a folder beside it, labelled over other cells: nothing is solved again that
    the first one's ledger has."""
    other, config = run.with_name(f"{run.name}-relabelled"), configs.read(run / "config.toml")
    if not (other / "config.toml").is_file():
        analysis = replace(config.analysis, cells=OTHER_CELLS)
        demos = read_demos(run, config.demos.content_hash)
        driver.create(other, replace(config, analysis=analysis), demos)
    if not (other / "summary.json").is_file():
        for part in ("ledger", "start"):
            if (run / part).is_dir():
                copytree(run / part, other / part, dirs_exist_ok=True)
        driver.drive(other, workers, tell)
    return other


# The table ---------------------------------------------------------------------------------------


def shown(summary: Summary) -> Rows:
    """The figures of each size of cells; of a game that was not labelled, none."""
    found: Rows = summary.get("labels") or [dict.fromkeys(("cells", *COLUMNS))]
    return found


def shared_labels(study: Study) -> Found:
    """A row per game and size of cells."""
    rows: Rows = []
    for variant in study.variants:
        for seed, summary in each_seed(study, variant).items():
            row: Row = {"variant": variant.name, "seed": seed}
            if summary is None:
                rows.append({**row, "cells": None, "status": NOT_RUN})
            else:
                rows += [{**row, **figures} for figures in shown(summary)]
    return Found(with_means(rows, ["variant", "cells"]))
