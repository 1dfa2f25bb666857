"""Chou et al.'s method beside ICL: one regression, no game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from ringfence.objects import Demonstrations, Problem, Solution, Trajectory, behaviour_of
from ringfence.players.rivals.chou import Outcome, chou
from ringfence.reproduce.demonstrate import configuration, demonstrations
from ringfence.reproduce.demonstrate import document as made_from
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import GAPS, ITERATES, figures, played
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, mean_of
from ringfence.reproduce.study import (
    Study,
    Summary,
    finished,
    place,
    read_summaries,
    telling,
)
from ringfence.runs import driver
from ringfence.runs.backend import Here, Solves
from ringfence.runs.config import Config, make_solver
from ringfence.runs.summary import SCHEMA, Reader, truth_of, versions
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.collecting import evaluate, no_augmentation

#: Of the explorer, from which those are taken that earn more than the experts.
EPISODES = 64
EPISODE_STREAM = 70


def methods(study: Study) -> Found:
    """ICL's variants by their first, last and selected iterates, and Chou et al., by problem."""
    rows: Rows = []
    for on, names in study.options["games"].items():
        experiment = on.partition("-")[0]
        for name in names:
            found = list(read_summaries(study.out.parent / experiment / name).values())
            for iterate, row in list(ITERATES.items())[:-1]:
                chosen = [figures(row(s)[0]) for s in played(dict(enumerate(found)))]
                line = {"on": on, "method": f"ICL, {name}", "iterate": iterate}
                rows.append({**line, **summed(chosen, found)})
        ours = list(read_summaries(study.out / on).values())
        results = [figures(s["result"]) for s in ours if s["result"] is not None]
        line = {"on": on, "method": "Chou et al.", "iterate": "only one"}
        rows.append({**line, **summed(results, ours)})
    return Found(rows)


def summed(rows: Rows, summaries: list[Summary]) -> Row:
    """rows: the figures of those summaries that have a constraint."""
    if not summaries:
        return {"status": NOT_RUN}
    steps = sum(s["env_steps"] for s in summaries) / len(summaries)
    with_constraint = f"{len(rows)} of {len(summaries)}"
    mean = mean_of([{key: row[key] for key in GAPS} for row in rows]) if rows else {}
    return {**mean, "env_steps": steps, "with_constraint": with_constraint}


# One seed --------------------------------------------------------------------------------------


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """One seed of Chou et al.'s method on the demonstrations of the game with the same seed.

    Both of its trainings begin at the clone. The solver's entropy_weight is for the first.
    """
    config = configuration(study.experiment, variant, seed)
    demos = demonstrations(study.experiment, variant, seed, study.say)
    document = asdict(config) | {"demonstrations": made_from(study.experiment, variant, seed)}
    del document["command"], document["demos"]
    run = place("chou", f"{variant.name}-seed-{seed}", document)
    return finished(run, lambda: played_once(run, config, demos, study))


def played_once(run: Path, config: Config, demos: Demonstrations, study: Study) -> Summary:
    pieces = driver.assemble(config, demos)
    (task,), family = pieces.world.tasks, pieces.family
    assert family.template is not None
    train, seed, explorer = demos.tasks[0].train, config.seed, config.solver
    settings = CloningConfig(hidden=explorer.hidden, log_std=None)
    start = clone(train, cast(Any, task), (seed, 0, 0), settings)

    def episodes(solution: Solution) -> list[Trajectory]:
        path = (seed, EPISODE_STREAM)
        return evaluate(cast(Any, task), solution.policy, no_augmentation, EPISODES, path)

    explore = solves(run, config, explorer, study)
    solve = solves(run, config, replace(explorer, entropy_weight=0.0), study)
    outcome = chou(task, family.template, train, start, explore, episodes, solve, seed)
    truth = truth_of(config.world, pieces.world)
    reader = Reader(pieces.world, family, [behaviour_of(train)], truth)
    return {
        "schema": SCHEMA,
        "command": config.command,
        "method": "chou",
        "world": pieces.world.name,
        "kind": config.world.kind,
        "seed": seed,
        "versions": versions(pieces.world),
        "truth": config.world.truth or None,
        "class": config.game.constraint,
        **outcome_of(outcome, reader),
    }


def solves(run: Path, config: Config, settings: Any, study: Study) -> Callable[[Problem], Solution]:
    """Solves through the run's ledger, so that a killed one goes on."""
    solver, tell = make_solver(settings), telling(study.say)

    def on_record(problem: Problem, record: Row) -> None:
        tell({"event": "update", **record})

    through = Solves(run, config.world, settings, solver, Here(solver), on_record, lambda *_: None)
    return lambda problem: through([problem])[0]


def outcome_of(outcome: Outcome, reader: Reader) -> Row:
    row: Row = {
        "episodes": outcome.tried,
        "better": outcome.better,
        "explorer_reward": outcome.explored.behaviour.reward,
        "outcome": "no episode earned more than the experts",
        "result": None,
        "env_steps": outcome.explored.env_steps,
    }
    if outcome.c is None or outcome.solution is None:
        return row
    row["outcome"] = "constraint"
    row["env_steps"] += outcome.solution.env_steps
    row["result"] = {
        "constraint": reader.constraint(outcome.c),
        "constraint_error": reader.error(outcome.c),
        **reader.figures("learner", outcome.c, [outcome.solution.behaviour]),
        **reader.figures("expert", outcome.c, reader.experts),
    }
    return row
