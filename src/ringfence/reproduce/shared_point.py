"""The shared constraint on a continuous world: a point among obstacles, several goals.

Demonstrators know the truth and plan on a fine grid (`point_demonstrators.py`). The game is the one
that `ringfence learn` plays; what it hands back is then compared with the truth, on the cells that
anybody of the run entered and on the whole floor, and so is what its labels say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.played import Played
from ringfence.constraints.regions import Disc, RegionConstraint
from ringfence.disk import read_json
from ringfence.objects import Array, Behaviour, Constraint, Trajectory
from ringfence.players.player import Begun, Ground
from ringfence.reproduce import shared_labels
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.exact_tasks import overlap
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed, minutes
from ringfence.reproduce.limit_worlds import EDGE
from ringfence.reproduce.point_demonstrators import demonstrations
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.shared_unseen import unseen
from ringfence.reproduce.solves import constraint_of
from ringfence.reproduce.study import Study, Summary, kept, place, telling
from ringfence.runs import config as configs
from ringfence.runs import driver
from ringfence.runs.backend import Backend
from ringfence.runs.config import make_player, make_world
from ringfence.runs.demonstrated import usual_moves
from ringfence.runs.folder import OnEvent
from ringfence.solvers.collecting import evaluate, seen_of

FRESH = 100
#: The seed path of the fresh episodes, beside the run's.
COUNTED = 73
#: Of what is compared, m.
CELL = 0.1
#: Of the tasks, that must agree for their average to forbid.
HALF = 0.5
Mask = NDArray[np.bool_]


# A game ------------------------------------------------------------------------------------------


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """The game's summary with `shared`: what it handed back beside the truth."""
    config = configuration(study.experiment, variant, seed)
    world = make_world(config.world)
    truth = constraint_of(variant.get("training")["constraint"], variant.get("training"), world)
    document = {**asdict(config), "command": "", "engine": {}, "truth": truth.describe()}
    below = variant.get("demonstrations").get("below", 0.0)
    document |= {"below": below} if below else {}
    run = place("shared", f"{variant.name}-seed-{seed}", document)
    if not (run / "config.toml").is_file():
        shown = demonstrations(world, truth, seed, config.demos.heldout, below)
        driver.create(run, config, shown)
    if not (run / "summary.json").is_file():
        driver.drive(run, study.workers, telling(study.say))
    found = kept("shared", document, lambda: compared(run, world, truth, seed))
    summary = {**read_json(run / "summary.json"), "shared": found}
    summary["labels"] = kept(
        "labels",
        {**document, "cells": shared_labels.OTHER_CELLS},
        lambda: labelled(run, world, truth, seed, study.workers, telling(study.say)),
    )
    asked = variant.get("transfer")
    if asked.get("goals"):
        new = {**document, "transfer": asked}
        summary["unseen"] = kept(
            "unseen",
            new,
            lambda: unseen(run, world, truth, seed, asked["goals"], asked["episodes"]),
        )
    return summary, float(read_json(run / "timing.json")["seconds"])


def compared(run: Path, world: Any, truth: Constraint, seed: int) -> Summary:
    """Each iterate and the rivals against the truth; the selected learners' episodes."""
    played = driver.replay(run)
    demonstrated = [t.features for d in played.demos for _, t in d.labelled]
    learners = [pi for record in played.records for pi in record.learners]
    visited, met = (np.unique(cells_of(x), axis=0) for x in (demonstrated, features(learners)))
    entered = np.unique(np.concatenate([visited, met]), axis=0)
    true = forbidden(truth, entered)
    unvisited = ~np.isin(keys(entered), keys(visited))
    floor = floor_cells()
    single = [forbidden(c, entered) for c in of_single_tasks(run, played)]
    each = [figures(forbidden(r.c, entered), true) for r in played.records]
    chosen = played.records[played.chosen.i - 1]
    episodes = [
        episode
        for k, (task, pi) in enumerate(zip(world.tasks, chosen.solutions, strict=True))
        for episode in evaluate(task, pi.policy, seen_of(chosen.c, True), FRESH, (seed, COUNTED, k))
    ]
    everywhere = figures(forbidden(chosen.c, floor), forbidden(truth, floor))
    return {
        "each": each,
        "selected": {
            **each[played.chosen.i - 1],
            **violations(episodes, truth),
            "error": shapes_error(chosen.c, truth),
        },
        "whole_floor": everywhere,
        "rivals": {
            "forbid all unvisited": figures(unvisited, true),
            "single-task": means([figures(found, true) for found in single]),
            "average of single-task": figures(np.mean(single, axis=0) > HALF, true),
            "maximum of single-task": figures(np.any(single, axis=0), true),
        },
    }


def labelled(
    run: Path, world: Any, truth: Constraint, seed: int, workers: int | Backend, tell: OnEvent
) -> Rows:
    """The labels' figures: of the run's cells, and of the same game's with other cells."""
    played = driver.replay(run)
    crossed = np.concatenate(features([pi for r in played.records for pi in r.learners]))
    random = shared_labels.asked_at_random(world, truth, seed)
    rows = []
    for folder in (run, shared_labels.relabelled(run, workers, tell)):
        cells, found = configs.read(folder / "config.toml").analysis.cells, folder / "evidence.json"
        figures = shared_labels.labels(read_json(found), world, truth, crossed, random)
        rows.append({"cells": cells, **figures})
    return rows


def of_single_tasks(run: Path, played: Played) -> list[Constraint]:
    """What the same player says of each task's demonstrations and learners alone, [K]."""
    config = configs.read(run / "config.toml")
    moves, N = usual_moves(played.demos), len(played.records)
    found = []
    for k, pi_E in enumerate(played.experts):
        T = float(pi_E.length)
        ground = Ground(played.family, T, [pi_E], True, N, config.seed, moves)
        history = [[group[k]] for group in (*first_of(played), *(r.shown for r in played.records))]
        found.append(make_player(config.player, ground).update([pi_E], history))
    return found


def first_of(played: Played) -> list[Sequence[Behaviour]]:
    """The learners [K] that the player knew before the game, where it did."""
    return [played.player.first] if isinstance(played.player, Begun) else []


def shapes_error(c: Constraint, truth: Constraint) -> float | None:
    """Of regions: the largest difference of a number from the true shape's, in that shape's size: a
    disc's radius, a box's width along that side. None where c is no region of as many shapes of
    each kind."""
    if not isinstance(c, RegionConstraint) or not isinstance(truth, RegionConstraint):
        return None
    kinds = [sorted(type(s).__name__ for s in of.shapes) for of in (c, truth)]
    if kinds[0] != kinds[1]:
        return None
    errors = []
    for shape in truth.shapes:
        alike = [s for s in c.shapes if type(s) is type(shape)]
        size = shape.radius if isinstance(shape, Disc) else np.tile(shape.high - shape.low, 2)
        errors.append(min(float((np.abs(s.numbers - shape.numbers) / size).max()) for s in alike))
    return max(errors)


def features(group: Sequence[Behaviour]) -> list[Array]:
    return [pi.features[pi.visits > 0] for pi in group]


def cells_of(points: Sequence[Array]) -> NDArray[np.int64]:
    """The cells [n, 2] of features [.., 2]."""
    return np.floor(np.concatenate(points) / CELL + 1e-9).astype(np.int64)


def keys(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(1000 * cells[:, 0] + cells[:, 1])


def floor_cells() -> NDArray[np.int64]:
    half = round(EDGE / CELL)
    return np.argwhere(np.ones((2 * half, 2 * half))) - half


def forbidden(c: Constraint, cells: NDArray[np.int64]) -> Mask:
    """Which cells' centres cost anything."""
    return np.asarray(c.cost((cells + 0.5) * CELL) > 0)


def figures(found: Mask, true: Mask) -> Row:
    """Shares of cells; None where nothing is (found to be) forbidden."""
    both = float((found & true).sum())
    return {
        "iou": overlap(found, true),
        "recall": both / float(true.sum()) if true.any() else None,
        "precision": both / float(found.sum()) if found.any() else None,
    }


def of_unseen(found: Summary | None) -> Row:
    """What a row says of goals that nobody demonstrated."""
    if found is None:
        return {}
    return {
        "unseen_violating_episodes": found["violating_episodes"],
        "unseen_violating_steps": found["violating_steps"],
        "unseen_reached": found["reached"],
        "unseen_covered": found["covered"],
        "unseen_failed": found["covered_failed"],
    }


def means(rows: Sequence[Row]) -> Row:
    """Of each figure, over the rows that know it; None where none does."""
    known = {key: [row[key] for row in rows if row[key] is not None] for key in rows[0]}
    return {key: float(np.mean(values)) if values else None for key, values in known.items()}


def violations(episodes: Sequence[Trajectory], truth: Constraint) -> Row:
    beyond = [truth.cost(t.features) > 0 for t in episodes]
    return {
        "violating_episodes": float(np.mean([b.any() for b in beyond])),
        "violating_steps": float(np.concatenate(beyond).mean()),
    }


# The table ---------------------------------------------------------------------------------------

#: What a row has in every study of shared constraints; null where it doesn't apply.
COLUMNS = (
    *("iou", "recall", "precision", "error", "violating_episodes", "violating_steps"),
    *("unseen_violating_episodes", "selected_minus_best", "floor_recall", "floor_precision"),
)


def shared_point(study: Study) -> Found:
    """A row per game, and one for each of its rivals."""
    rows: Rows = []
    for variant in study.variants:
        seconds = study.seconds(variant)
        for seed, summary in each_seed(study, variant).items():
            row: Row = {"world": "point", "method": "ringfence", "variant": variant.name}
            row |= {"constraint_class": variant.get("game")["constraint"], "seed": seed}
            row |= {"tasks": len(variant.get("world")["tasks"])}
            row |= dict.fromkeys((*COLUMNS, *shared_labels.COLUMNS))
            if summary is None:
                rows.append({**row, "status": NOT_RUN})
                continue
            found = summary["shared"]
            best = max(each["iou"] for each in found["each"])
            last = summary["iterations"][summary["selected"] - 1]
            own = {
                **found["selected"],
                **{f"floor_{key}": found["whole_floor"][key] for key in ("recall", "precision")},
                "selected_minus_best": found["selected"]["iou"] - best,
                "reward_above": last["learner_reward_mean"] - last["expert_reward_mean"],
                "doubts": len(summary["doubts"]),
                **of_unseen(summary.get("unseen")),
                **shared_labels.shown(summary)[0],
                "minutes": minutes(seconds.get(seed)),
            }
            rows.append({**row, **own})
            rows += [{**row, "method": name, **figure} for name, figure in found["rivals"].items()]
    return Found(with_means(rows, ["variant", "method", "constraint_class", "tasks", "world"]))
