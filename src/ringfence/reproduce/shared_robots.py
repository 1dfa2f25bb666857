"""The limits that several tasks of a robot share: a cheetah's speed, an Ant's half-plane and speed.

A demonstrator of each task is trained under the truth, within a budget, by constrained RL; nobody
plans. The game is the one that `ringfence learn` plays, on all tasks or on some. What it hands back
is compared with the truth, and so is what simpler readers make of the same demonstrations and the
same learners:

    experts' extreme value      nothing that a demonstrator did is forbidden: a budget of 0
    single-task (name)          the same player on that task's demonstrator and learners alone
    average, maximum of single-task     of these, number by number
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.analysis.played import Played
from ringfence.constraints.template import Template
from ringfence.constraints.written import ConjunctionForm, Form
from ringfence.demos import dataset
from ringfence.disk import read_json
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Demonstrations, Trajectory
from ringfence.players.form_search import fit
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.experiment import Settings, Variant
from ringfence.reproduce.iterates import each_seed, minutes
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.solves import LEARNER, constraint_of
from ringfence.reproduce.study import Study, Summary, alone, kept, key_of, place, telling
from ringfence.runs import driver
from ringfence.runs.config import make_world, tagged
from ringfence.runs.training import make_demonstrations
from ringfence.solvers.collecting import evaluate, seen_of

#: Episodes of each selected learner under the truth, and their seed path beside the run's.
FRESH, COUNTED = 50, 74
#: What a learner may cost under the truth: the demonstrators' cost and this share of it, or 1.
COST_SHARE, COST_LEAST = 0.1, 1.0

EXTREME, AVERAGE, MAXIMUM = "experts' extreme value", "average", "maximum"


# Demonstrators -----------------------------------------------------------------------------------


def making(study: Study, variant: Variant, seed: int) -> tuple[Any, Settings, Any]:
    """The world with the truth, how its demonstrators behave, and the solver that trains them."""
    training, table = variant.get("training"), variant.get("demonstrations")
    config = configuration(study.experiment, variant, seed)
    settings = replace(config.world, truth=training["constraint"])
    experts = {"paths": table["paths"], "heldout": table["heldout"], "seed": seed}
    experts["delta"] = float(training["delta"])
    learner: Settings = {"kind": LEARNER}
    learner |= {name: table[name] for name in ("env_steps", "margin") if name in table}
    return settings, experts, tagged(variant.name, "solver", learner)


def demonstrations(study: Study, variant: Variant, seed: int) -> Demonstrations:
    """Of all tasks of the world, also where a game is about some of them: made once, then read."""
    settings, experts, solver = making(study, variant, seed)
    needs = {"world": asdict(settings), "experts": experts, "solver": asdict(solver)}
    with alone(key_of(needs)):
        folder = place("demonstrations", f"{settings.kind}-tasks-seed-{seed}", needs)
        if not folder.is_dir():
            trained = folder.with_name(f"{folder.name}-experts")
            made = make_demonstrations(
                settings, make_world(settings), experts, solver, trained,
                workers=study.workers, on_event=telling(study.say), say=study.say,
            )  # fmt: skip
            dataset.save(made, folder)
    return dataset.load(folder)


# A game ------------------------------------------------------------------------------------------


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """The game's summary with `shared`: what it handed back beside the truth."""
    config = configuration(study.experiment, variant, seed)
    world = make_world(config.world)
    truth = constraint_of(variant.get("training")["constraint"], variant.get("training"), world)
    shown = demonstrations(study, variant, seed)
    content = dataset.content_hash(shown)
    document = {**asdict(config), "command": "", "engine": {}, "demonstrations": content}
    run = place("shared", f"{variant.name}-seed-{seed}", document)
    if not (run / "config.toml").is_file():
        driver.create(run, config, shown)
    if not (run / "summary.json").is_file():
        driver.drive(run, study.workers, telling(study.say))
    compare = {**document, "truth": truth.describe()}
    found = kept("shared", compare, lambda: compared(run, world, truth, seed))
    summary = {**read_json(run / "summary.json"), "shared": found}
    return summary, float(read_json(run / "timing.json")["seconds"])


def compared(run: Path, world: Any, truth: Constraint, seed: int) -> Summary:
    """Each iterate and the rivals against the truth; the selected learners' fresh episodes."""
    played = driver.replay(run)
    form = played.family.form
    if form is None:
        raise InvalidInput(f"class {played.family.text!r}: only numbers can be compared here")
    true = numbers(form, truth)
    each = [errors(form, numbers(form, record.c), true) for record in played.records]
    chosen = played.records[played.chosen.i - 1]
    tasks = {task.name: task for task in world.tasks}
    behaved = []
    for k, (d, pi) in enumerate(zip(played.demos, chosen.solutions, strict=True)):
        raw, path = seen_of(chosen.c, True), (seed, COUNTED, k)
        fresh = evaluate(tasks[d.task], pi.policy, raw, FRESH, path)
        shown = [t for _, t in d.labelled]
        behaved.append({"task": d.task, **side_by_side(fresh, shown, truth)})
    readers = {name: errors(form, theta, true) for name, theta in rivals(played, form).items()}
    return {
        "each": each,
        "selected": each[played.chosen.i - 1],
        "rivals": readers,
        "behaved": behaved,
        "budget": budget_of(played),
    }


def numbers(form: Form, c: Constraint) -> Array:
    theta = form.theta_of(c)
    if theta is None:
        raise InvalidInput(f"{c.describe()!r} is not of the class {form.text!r}")
    return theta


def budget_of(played: Played) -> float:
    player: Any = getattr(played.player, "player", played.player)
    return float(player.budget)


def rivals(played: Played, form: Form) -> dict[str, Array]:
    """The numbers that simpler readers find."""
    experts, budget = played.experts, budget_of(played)
    learners = [record.shown for record in played.records]
    every = [pi for group in learners for pi in group]
    found = {EXTREME: numbers(form, fit(form, experts, every, 0.0))}
    if len(experts) == 1:
        return found
    single = [
        numbers(form, fit(form, [pi_E], [group[k] for group in learners], budget))
        for k, pi_E in enumerate(experts)
    ]
    named = zip((d.task for d in played.demos), single, strict=True)
    found |= {f"single-task ({task})": theta for task, theta in named}
    found |= {f"{AVERAGE} of single-task": np.mean(single, axis=0)}
    return {**found, f"{MAXIMUM} of single-task": np.max(single, axis=0)}


# Compared with the truth -------------------------------------------------------------------------


def errors(form: Form, theta: Array, true: Array) -> Row:
    """error: the largest of the parts' |theta - theta*| / |theta*|; of a half-plane over two
    features the angle (degrees) and the distance from the origin (the features' unit), too."""
    parts = form.parts if isinstance(form, ConjunctionForm) else (form,)
    row: Row = {"numbers": theta.tolist(), "error": 0.0}
    at = 0
    for part in parts:
        own, right = (x[at : at + len(part.names)] for x in (theta, true))
        at += len(part.names)
        off = float(np.linalg.norm(own - right) / np.linalg.norm(right))
        row["error"] = max(row["error"], off)
        if isinstance(part, Template) and len(own) == 2:
            row |= half_plane_errors(part, own, right)
        else:
            row["limit_error"] = off
    return row


def half_plane_errors(part: Template, theta: Array, true: Array) -> Row:
    """How far two lines w . x = offset are turned, and how much further away from the origin."""
    lines = [part.constraint(t) for t in (theta, true)]
    w = [np.asarray(getattr(line, "weights"))[[*_used(part)]] for line in lines]  # noqa: B009
    away = [float(line.offset) / np.linalg.norm(v) for line, v in zip(lines, w, strict=True)]  # type: ignore[union-attr]
    turned = np.degrees([np.arctan2(v[1], v[0]) for v in w])
    angle = abs((turned[0] - turned[1] + 180) % 360 - 180)
    return {"angle_error": float(angle), "offset_error": float(abs(away[0] - away[1]))}


def _used(part: Template) -> list[int]:
    return [k for k, f in enumerate(part.features) if f.name in part.used]


def side_by_side(
    fresh: Sequence[Trajectory], shown: Sequence[Trajectory], truth: Constraint
) -> Row:
    """A learner's episodes beside its demonstrator's: rewards, and the true cost of each part."""
    parts: Sequence[Constraint] = getattr(truth, "parts", (truth,))

    def means(episodes: Sequence[Trajectory]) -> tuple[float, list[float]]:
        costs = [[float(part.cost(t.features).sum()) for part in parts] for t in episodes]
        return float(np.mean([t.rewards.sum() for t in episodes])), np.mean(costs, axis=0).tolist()

    (reward, costs), (expert_reward, expert_costs) = means(fresh), means(shown)
    return {
        "reward": reward,
        "expert_reward": expert_reward,
        "costs": costs,
        "expert_costs": expert_costs,
    }


def as_good(behaved: Sequence[Mapping[str, Any]]) -> Row:
    """Of all tasks the worst: how much less a learner earns, as a share of the demonstrator's
    reward; what it costs beyond the demonstrator, as a share (of 1, where that is 0)."""
    less = [(b["expert_reward"] - b["reward"]) / abs(b["expert_reward"]) for b in behaved]
    dearer = [
        (own - expert) / max(expert, COST_LEAST / COST_SHARE)
        for b in behaved
        for own, expert in zip(b["costs"], b["expert_costs"], strict=True)
    ]
    return {"reward_below": max(less), "cost_above": max(dearer)}


# The table ---------------------------------------------------------------------------------------

#: What a row has in every study of shared constraints; null where it doesn't apply.
COLUMNS = (
    *("iou", "recall", "precision", "error", "violating_episodes", "violating_steps"),
    *("unseen_violating_episodes", "selected_minus_best"),
    *("limit_error", "angle_error", "offset_error", "reward_below", "cost_above"),
)


def shared_robots(study: Study) -> Found:
    """A row per game, and one for each simpler reader of the same demonstrations."""
    rows: Rows = []
    for variant in study.variants:
        seconds = study.seconds(variant)
        for seed, summary in each_seed(study, variant).items():
            table, game = variant.get("world"), variant.get("game")
            names = game.get("tasks") or [task["name"] for task in table["tasks"]]
            row: Row = {"world": table.get("env", table["kind"]), "method": "ringfence"}
            row |= {"variant": variant.name, "constraint_class": game["constraint"]}
            row |= {"seed": seed, "tasks": len(names), **dict.fromkeys(COLUMNS)}
            if summary is None:
                rows.append({**row, "status": NOT_RUN})
                continue
            found = summary["shared"]
            best = min(each["error"] for each in found["each"])
            own = {
                **shown_errors(found["selected"]),
                "selected_minus_best": found["selected"]["error"] - best,
                **as_good(found["behaved"]),
                "answer": summary["constraint"]["description"],
                "doubts": len(summary["doubts"]),
                "minutes": minutes(seconds.get(seed)),
            }
            rows.append({**row, **own})
            for name, figures in found["rivals"].items():
                rows.append({**row, "method": name, **shown_errors(figures)})
    return Found(with_means(rows, ["variant", "method", "constraint_class", "tasks", "world"]))


def shown_errors(figures: Mapping[str, Any]) -> Row:
    return {key: value for key, value in figures.items() if key != "numbers"}
