"""The paper's maze with the Ant: the course of its games, one task alone, tasks never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.constraints.avoiding import Avoiding
from ringfence.demos import dataset
from ringfence.game import Record, play
from ringfence.objects import NotHere, Problem
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.exact_tasks import Mask, map_text, overlap, put_together
from ringfence.reproduce.games import run_of
from ringfence.reproduce.rows import Found, Row, Rows, mean_of
from ringfence.reproduce.study import Study, Summary, kept, read_summaries
from ringfence.runs import config as configs
from ringfence.runs import driver
from ringfence.runs.backend import Solves, make_backend
from ringfence.runs.config import make_world
from ringfence.runs.demonstrated import evidence_groups
from ringfence.runs.problem import TaskTable, is_covered
from ringfence.solvers.planner import PENALTY, Planner, distances
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import Cell
from ringfence.worlds.sim.floor import ARRIVED


def maze_course(study: Study) -> Found:
    """A variant's iterations over its seeds, beside the paper's."""
    name, paper = study.options["variant"], study.options["paper"]
    games = list(read_summaries(study.out / name).values())
    if not games:
        return Found([])
    count = min(len(s["iterations"]) for s in games)
    rows = [course_row(name, games, i, paper) for i in range(count)]
    measured = mean_of([{"cost": s["iterations"][0]["expert_true_cost_mean"]} for s in games])
    own = f"{measured['cost']:.3f}"
    own += f" ± {measured['cost_se']:.3f}" if "cost_se" in measured else ""
    return Found(rows, {"expert_true_cost": own, "violations": violations_text(games)})


def course_row(name: str, games: list[Summary], i: int, paper: dict[str, Any]) -> Row:
    rows = [s["iterations"][i] for s in games]
    values: Rows = [
        {
            "iou": row["updated"]["iou"],
            "violation": row["learner_true_cost_mean"],
            "reward": row["learner_reward_mean"],
            "expert_reward": row["expert_reward_mean"],
        }
        for row in rows
    ]
    ends = [row["episodes"] for row in rows]
    return {
        "variant": name,
        "i": i + 1,
        **mean_of(values),
        **{f"paper_{key}": figures[i] for key, figures in paper.items() if i < len(figures)},
        "arrived": sum(e["arrived"] for e in ends),
        "fell_or_late": sum(e["fell"] + e["late"] for e in ends),
        "reused": sum(x is not None for row in rows for x in row["reused"]),
        "expert_cost": max(max(row["expert_cost"]) for row in rows),
    }


def violations_text(games: list[Summary]) -> str:
    """Every violating trajectory from iteration 2 on."""
    found = [
        f"- seed {s['seed']}, iteration {row['i']}, {v['task']}, episode {v['episode']}: "
        f"{v['where']}"
        for s in games
        for row in s["iterations"][1:]
        for v in row["violations"] or ()
    ]
    if not found:
        return "No trajectory of any seed violates from iteration 2 on."
    return "Trajectories that violate from iteration 2 on:\n\n" + "\n".join(found)


# Games on some of the tasks ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Played:
    """The game of a finished run on some of its tasks; walks come from the run's ledger."""

    world: AntMaze
    records: list[Record]
    evidence: Evidence

    def map(self, record: Record) -> Mask:
        """What the update of an iteration forbids."""
        return self.world.cells.forbidden(record.c_next)


def played(study: Study, tasks: Sequence[str] = (), iterations: int | None = None) -> Played:
    """The restricted game of seed 0; by default on all tasks."""
    variant = study.experiment.variants["restricted"]
    run = run_of(study.experiment, variant, 0, study.say, study.workers)
    config = configs.read(run / "config.toml")
    count = config.game.iterations if iterations is None else iterations
    config = replace(config, game=replace(config.game, tasks=tuple(tasks), iterations=count))
    pieces = driver.assemble(config, dataset.load(run / "demos"))
    backend = make_backend(1, pieces.solver)
    nobody = lambda *_: None  # noqa: E731
    solves = Solves(run, config.world, config.solver, pieces.solver, backend, nobody, nobody)
    shown = pieces.shown
    try:
        found = play(shown.tasks, shown.train, solves, pieces.player, pieces.rules, config.seed)
        records = list(found)
    finally:
        backend.close()
    world = cast(AntMaze, pieces.world)
    groups = evidence_groups(shown, world)
    assert not isinstance(groups, NotHere)
    return Played(world, records, evidences.label(groups))


def key_of_game(study: Study) -> Row:
    """What the rows below depend on, beside their options."""
    variant = study.experiment.variants["restricted"]
    config = asdict(configuration(study.experiment, variant, 0))
    return {"config": {k: v for k, v in config.items() if k != "command"}, **study.options}


def walks_of_one_task(study: Study) -> Found:
    """One task's constraint, ten of them put together, and the multi-task one's course."""
    return Found(kept("one-task", key_of_game(study), lambda: one_task_rows(study)))


def one_task_rows(study: Study) -> Rows:
    study.say("the multi-task game, and each task alone")
    multi = played(study)
    names = [task.name for task in multi.world.tasks]
    alone = [played(study, [name], study.options["iterations"]) for name in names]
    single = [game.map(game.records[-1]) for game in alone]
    maps = put_together(single, [multi.map(record) for record in multi.records])
    return [
        {"constraint": name, **scores(multi.world, found), "map": map_text(found)}
        for name, found in maps.items()
    ]


def scores(world: AntMaze, flagged: Mask) -> Row:
    """Overlap with the truth, and how many tasks the flags make impossible from some start."""
    impossible = [
        any(distances(flagged, task.goal)[start] >= PENALTY for start in task.starts)
        for task in world.tasks
    ]
    return {"iou": overlap(flagged, world.truth.walls), "impossible": sum(impossible)}


# Tasks that nobody demonstrated ----------------------------------------------------------------


def walks_never_seen(study: Study) -> Found:
    """Goals left out of training, and new starts under the constraint of all tasks."""
    made = kept("never-seen", key_of_game(study), lambda: all_walks(study))
    return Found(never_seen(made))


def all_walks(study: Study) -> list[Row]:
    variant = study.experiment.variants["restricted"]
    grid = cast(AntMaze, make_world(configuration(study.experiment, variant, 0).world)).grid
    names = [task.name for task in grid.tasks]
    walks = []
    for left_out in study.options["left_out"]:
        study.say(f"goals {left_out} left out")
        game = played(study, [name for k, name in enumerate(names) if k not in left_out])
        new = [(grid.goals[k], start) for k in left_out for start in grid.starts]
        walks += [walk(game, f"without goals {left_out}", *pair) for pair in new]
    study.say("new starts")
    game = played(study)
    new = [(goal, (int(r), int(c))) for goal in grid.goals for r, c in study.options["new_starts"]]
    return walks + [walk(game, "all goals, new starts", *pair) for pair in new]


def walk(game: Played, trained: str, goal: Cell, start: Cell) -> Row:
    """Says whether a new task is covered, then walks it.

    Unknown cells are avoided: the planner goes around what the constraint flags and around what no
    demonstrator walked, and crosses the fewest of those where there is no other way.
    """
    world, evidence = game.world, game.evidence
    spec = {"goal": list(goal), "start": list(start)}
    covered = is_covered(world, TaskTable(spec=spec), evidence)
    c = Avoiding(game.records[-1].c_next, evidence.allowed, world.cells.index)
    found = Planner()(Problem(world.new_task(spec), c, 0.0, None, (0,)))
    arrived = np.asarray(found.policy["outcome"]) == ARRIVED
    return {
        "trained": trained,
        **spec,
        "covered": bool(covered),
        "episodes": len(arrived),
        "arrived": int(arrived.sum()),
        "true_cost": world.truth.true_cost(found.behaviour),
    }


def never_seen(walks: list[Row]) -> Rows:
    """Every walk to a task that nobody demonstrated, and sums by what was said before it."""
    rows: Rows = []
    for walk in walks:
        said = "covered" if walk["covered"] else "uncovered"
        places = {key: f"({walk[key][0]},{walk[key][1]})" for key in ("goal", "start")}
        figures = {key: walk[key] for key in ("episodes", "arrived", "true_cost")}
        rows.append({"trained": walk["trained"], "said": said, **places, **figures})
    sums: Rows = []
    for trained, said in dict.fromkeys((r["trained"], r["said"]) for r in rows):
        of = [r for r in rows if (r["trained"], r["said"]) == (trained, said)]
        sums.append(
            {
                "trained": trained,
                "said": said,
                "goal": "all",
                "pairs": len(of),
                "episodes": sum(r["episodes"] for r in of),
                "arrived": sum(r["arrived"] for r in of),
                "worst": min(r["arrived"] / r["episodes"] for r in of),
                "true_cost": max(r["true_cost"] for r in of),
            }
        )
    return [*rows, *sums]
