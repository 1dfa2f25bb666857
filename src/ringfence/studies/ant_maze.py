"""`ringfence reproduce maze`: the paper's maze with the Ant, and tasks that nobody demonstrated.

Runs go to runs/reproduce-<name of the folder>/ and are resumed where they are; the smaller games
share the walks of the seed's run (its ledger), and each finished part is kept as JSON beside it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.constraints.table import TableConstraint
from ringfence.demos import dataset as demonstrations
from ringfence.demos.dataset import TaskDemos
from ringfence.game import Record, Rules, play
from ringfence.objects import behaviour_of
from ringfence.runs import config as configs
from ringfence.runs import maze as mazes
from ringfence.runs import maze_learn
from ringfence.runs.config import (
    DemosConfig,
    GameConfig,
    RunConfig,
    SolverConfig,
    WorldConfig,
)
from ringfence.runs.files import write_json
from ringfence.runs.ledger import Ledger
from ringfence.runs.maze_transfer import is_covered, planning_map
from ringfence.runs.summary import iou
from ringfence.runs.worlds import make_maze, world_config
from ringfence.solvers.planner import PENALTY, Bools, distances, flag
from ringfence.studies import ant_maze_tables
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import Cell
from ringfence.worlds.sim.floor import ARRIVED

Say = Callable[[str], None]

ITERATIONS = 5
#: A single task's game: its learner is soon where its expert is.
SINGLE_ITERATIONS = 3
HELD_OUT_PATHS = 1
#: The paper's regression learns more slowly, so that most of its plans are walked anew.
PAPER_SEEDS = 2
LEFT_OUT = ((1, 4, 8), (0, 5, 9), (7, 8, 9))
#: Starts that no demonstration begins at: one in the lower left, one in the upper right part.
NEW_STARTS: tuple[Cell, ...] = ((7, 3), (1, 7))
UNSEEN = 3  # a stream of random numbers, beside the planner's


def reproduce(out: Path, seeds: int, command: str, say: Say) -> None:
    out.mkdir(parents=True, exist_ok=True)
    runs = Path("runs") / f"reproduce-{out.name}"
    for seed in range(seeds):
        seed_run(runs / f"seed-{seed}", seed, out / f"seed-{seed}.json", say)
    study = Study.of(runs / "seed-0")
    single = kept(runs / "single.json", lambda: single_tasks(study, say))
    unseen = kept(runs / "unseen.json", lambda: unseen_tasks(study, say))
    for seed in range(min(seeds, PAPER_SEEDS)):
        paper_run(runs / f"paper-{seed}", runs / f"seed-{seed}", seed, say)
    write_json(out / "single.json", single)
    write_json(out / "unseen.json", unseen)
    ant_maze_tables.write(out, runs, seeds, command)


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """A finished part from its file, or made and kept."""
    if not path.is_file():
        write_json(path, make())
    return json.loads(path.read_bytes())


# Runs -------------------------------------------------------------------------------------------


def seed_run(run: Path, seed: int, summary: Path, say: Say) -> None:
    """The restricted game on disk; its summary becomes seed-N.json."""
    say(f"seed {seed}: experts and {ITERATIONS} iterations")
    if not run.exists():
        world = world_config("ant-maze")
        experts = mazes.MazeExperts(heldout=HELD_OUT_PATHS, seed=seed)
        demos = mazes.make_demonstrations(make_maze(world), experts)
        command = f"ringfence learn --world ant-maze --heldout {HELD_OUT_PATHS} --seed {seed}"
        config = run_config(command, seed, world, demonstrations.content_hash(demos))
        maze_learn.create(run, config, demos)
    write_json(summary, maze_learn.drive(run, lambda event: None))


def paper_run(run: Path, base: Path, seed: int, say: Say) -> None:
    """The paper's regression on the same demonstrations; iteration 1's walks are the same."""
    say(f"seed {seed}: the paper's regression")
    if not run.exists():
        demos = demonstrations.load(base / "demos")
        command = f"ringfence learn --world ant-maze --unrestricted --demos DEMOS --seed {seed}"
        config = run_config(
            command, seed, world_config("ant-maze"), demonstrations.content_hash(demos), False
        )
        maze_learn.create(run, config, demos)
        shutil.copytree(base / "ledger", run / "ledger", dirs_exist_ok=True)
    maze_learn.drive(run, lambda event: None)


def run_config(
    command: str, seed: int, world: WorldConfig, content_hash: str, restricted: bool = True
) -> RunConfig:
    game = GameConfig(
        constraint_class="mlp",
        restricted=restricted,
        iterations=ITERATIONS,
        epsilon=maze_learn.PLAY_ON,
    )
    network = maze_learn.RESTRICTED if restricted else maze_learn.PAPER
    return RunConfig(
        command, seed, world, DemosConfig(content_hash), game, SolverConfig("planner"), network
    )


# Games in memory --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Study:
    """A finished run's demonstrations and walks, for games on some of its tasks."""

    run: Path
    seed: int
    world: WorldConfig
    maze: AntMaze
    demos: tuple[TaskDemos, ...]

    @classmethod
    def of(cls, run: Path) -> Study:
        config = configs.read(run / "config.toml")
        demos = demonstrations.load(run / "demos")
        return cls(run, config.seed, config.world, make_maze(config.world), demos.tasks)

    def play(self, kept_tasks: Sequence[int], iterations: int) -> list[Record]:
        """The restricted game on some of the tasks."""
        tasks = [self.maze.tasks[k] for k in kept_tasks]
        experts = [behaviour_of(self.demos[k].train) for k in kept_tasks]
        player = maze_learn.make_player(maze_learn.RESTRICTED, True, self.maze, self.seed)
        rules = Rules(iterations, epsilon=maze_learn.PLAY_ON)
        return list(play(tasks, experts, self.backend(), player, rules, self.seed))

    def backend(self) -> maze_learn.PlannerBackend:
        ledger = Ledger(self.run / "ledger")
        return maze_learn.PlannerBackend(ledger, self.world, SolverConfig("planner"))

    def evidence(self, kept_tasks: Sequence[int]) -> evidences.Evidence:
        cells = self.maze.grid.tasks
        return evidences.label(
            [g for k in kept_tasks for g in mazes.groups_of(cells[k], self.maze, self.demos[k])]
        )


def single_tasks(study: Study, say: Say) -> dict[str, Any]:
    """One task's constraint, ten of them put together, and the multi-task one's course."""
    maps: dict[str, Bools] = {}
    for k in range(len(study.maze.tasks)):
        say(f"task {k} alone")
        maps[f"task {k}"] = flag(study.play([k], SINGLE_ITERATIONS)[-1].c_next, study.maze.layout)
    tables = np.array(list(maps.values()), np.float64)
    maps["average"] = tables.mean(axis=0) > 0.5
    maps["maximum"] = tables.max(axis=0) > 0.5
    say("multi-task")
    records = study.play(range(len(study.maze.tasks)), ITERATIONS)
    maps["multi-task, 1 iteration"] = flag(records[0].c_next, study.maze.layout)
    maps["multi-task, last"] = flag(records[-1].c_next, study.maze.layout)
    return {
        name: {"flagged": flagged.astype(int).tolist(), **scores(study.maze, flagged)}
        for name, flagged in maps.items()
    }


def scores(maze: AntMaze, flagged: Bools) -> dict[str, Any]:
    """Overlap with the truth, and how many tasks the flags make impossible from some start."""
    table = TableConstraint(maze.grid.features, flagged.astype(np.float64))
    impossible = [
        any(distances(flagged, task.goal)[start] >= PENALTY for start in task.starts)
        for task in maze.tasks
    ]
    return {"iou": iou(table, maze.truth), "impossible": sum(impossible)}


def unseen_tasks(study: Study, say: Say) -> list[dict[str, Any]]:
    """Goals left out of training, and new starts under the constraint of all ten tasks."""
    everything = range(len(study.maze.tasks))
    rows = []
    for left_out in LEFT_OUT:
        say(f"goals {left_out} left out")
        trained = [k for k in everything if k not in left_out]
        new = [(study.maze.grid.goals[k], study.maze.grid.starts) for k in left_out]
        rows += unseen_rows(study, trained, f"without goals {list(left_out)}", new)
    say("new starts")
    new = [(goal, NEW_STARTS) for goal in study.maze.grid.goals]
    return rows + unseen_rows(study, everything, "all goals, new starts", new)


def unseen_rows(
    study: Study,
    trained: Sequence[int],
    what: str,
    new: Sequence[tuple[Cell, tuple[Cell, ...]]],
) -> list[dict[str, Any]]:
    """Says for each new task and start whether it is covered, then walks it.

    Unknown cells are avoided: the planner goes around what the constraint flags and around what
    no demonstrator walked, and crosses the fewest of those where there is no other way.
    """
    maze = study.maze
    c = study.play(trained, ITERATIONS)[-1].c_next
    evidence = study.evidence(trained)
    flagged = planning_map(maze, c, evidence, "avoid")
    tasks = [maze.task(goal, (start,)) for goal, starts in new for start in starts]
    covered = [is_covered(maze, evidence, t.goal, t.starts[0]) for t in tasks]
    seeds = [(study.seed, UNSEEN, *t.goal, *t.starts[0]) for t in tasks]
    solutions, _ = study.backend().walk(tasks, flagged, seeds)
    return [
        {
            "trained": what,
            "goal": list(task.goal),
            "start": list(task.starts[0]),
            "covered": said,
            "episodes": len(s.policy["outcome"]),
            "arrived": int((np.asarray(s.policy["outcome"]) == ARRIVED).sum()),
            "true_cost": maze.truth.true_cost(s.behaviour),
            "violations": mazes.violations(maze.truth, [task.name], [s]),
        }
        for task, said, s in zip(tasks, covered, solutions, strict=True)
    ]
