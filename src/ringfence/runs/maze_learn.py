"""The driver of a run on the AntMaze: as runs/learn.py, with a network on (x, y) and the planner.

The game knows (x, y) and visits. Its network's flagged cells are a constraint on the grid of the
same map, so that evidence, overlap and pictures are the grid's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.demos import dataset as demonstrations
from ringfence.demos.dataset import Demonstrations
from ringfence.errors import InvalidInput
from ringfence.game import Record, play
from ringfence.objects import Behaviour, Constraint, J, Problem, Solution, behaviour_of
from ringfence.players.network import MLPRegression
from ringfence.runs import config as configs
from ringfence.runs import evidence as evidence_json
from ringfence.runs import folder
from ringfence.runs import maze as mazes
from ringfence.runs.backends import constraint_folder
from ringfence.runs.config import NetworkConfig, RunConfig, SolverConfig, WorldConfig
from ringfence.runs.files import remove_partials, write_json
from ringfence.runs.folder import OnEvent, only_driver, refuse_existing, teller
from ringfence.runs.learn import (
    chosen_demos,
    make_rules,
    progress_columns,
    save_constraint,
)
from ringfence.runs.ledger import Ledger, key_hash
from ringfence.runs.summary import finite, iou, make_summary, per_task, truth_columns
from ringfence.runs.worlds import make_maze
from ringfence.selection import select
from ringfence.solvers.planner import LEARNER, Bools, Planner, best_moves, flag
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.sim.floor import MazeTask

#: How the restricted class is fitted, by measurement. With the paper's fit (learning rate 3e-4,
#: points by visits) and tolerance 0 the output was lowered by 0.4 to 0.6, most walls with it (IoU
#: 0.25). On squares of 1 m and 4,000 steps it was lowered by 0.19 for tolerance 0.1 in one of four
#: seeds, and two corners of walls fell below the threshold; on squares of 0.5 m by 0.003 and 0.017,
#: and no wall's mean is below 0.59.
RESTRICTED = NetworkConfig(
    learning_rate=3e-3, final_rate=0.0, steps=6_000, penalty=10.0, tolerance=0.5, spread=0.5
)
PAPER = NetworkConfig()
#: All iterations are played: a small payoff of the last network doesn't say that none is better.
PLAY_ON = -1.0
#: Standard errors by which a selected learner may earn less than the held-out experts. Whoever
#: arrives earns nearly the same; with one error and few episodes a game chose its empty c_1.
ERRORS = 3.0
THREADS = 2
SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Experts:
    """What the demonstrations of the run's tasks amount to, in task order."""

    tasks: tuple[MazeTask, ...]
    train: tuple[Behaviour, ...]
    heldout: tuple[Behaviour, ...]
    groups: tuple[evidences.Group, ...]


def create(run: Path, config: RunConfig, demos: Demonstrations) -> None:
    """A new run directory with its configuration and demonstrations: whole, or not at all."""
    make_rules(config.game)
    if config.network is None or config.game.constraint_class != "mlp":
        raise InvalidInput("the Ant's maze needs a network constraint: --class mlp")
    maze = make_maze(config.world)
    chosen_demos(config, maze.tasks, demos)
    for finding in mazes.check(demos, maze):
        if finding.severity == "error":
            raise InvalidInput(f"demonstrations: {finding.where}: {finding.message}")
    refuse_existing(run)
    folder.create(run, configs.to_toml(config), demos)


def drive(run: Path, on_event: OnEvent) -> dict[str, Any]:
    """Play a created run to its end, from wherever it was; returns the summary."""
    config = configs.read(run / "config.toml")
    with only_driver(run):
        remove_partials(run)
        return _drive(run, config, on_event)


def _drive(run: Path, config: RunConfig, on_event: OnEvent) -> dict[str, Any]:
    maze = make_maze(config.world)
    experts = read_experts(run, config, maze)
    network = cast(NetworkConfig, config.network)
    player = make_player(network, config.game.restricted, maze, config.seed)
    rules = make_rules(config.game)
    clock = Clock()
    tell = teller(run, on_event)
    backend = PlannerBackend(Ledger(run / "ledger"), config.world, config.solver, tell, clock)

    def solve_all(problems: Sequence[Problem]) -> list[Solution]:
        i, c = problems[0].seed[1], problems[0].constraint
        clock.split("fit")
        save_constraint(run / constraint_folder(i), config, c, experts.train, i)
        return backend(problems)

    tell({"event": "start", "tasks": len(experts.tasks), "iterations": rules.iterations})
    records: list[Record] = []
    rows: list[dict[str, Any]] = []
    for record in play(experts.tasks, experts.train, solve_all, player, rules, config.seed):
        clock.split("fit")
        records.append(record)
        rows.append(iteration_row(record, experts, maze, backend))
        clock.end_iteration()
        columns = progress_columns(rows[-1]) | {"split": clock.splits[-1]}
        tell({"event": "iteration", "total": rules.iterations, **columns})

    chosen = select(records, experts.heldout, errors=ERRORS)
    c = records[chosen.i - 1].c
    summary = _finish(run, config, maze, experts, c, rows, chosen)
    write_json(run / "timing.json", clock.document())
    tell({"event": "selected", "i": chosen.i, "description": c.describe()})
    return summary


def _finish(
    run: Path,
    config: RunConfig,
    maze: AntMaze,
    experts: Experts,
    c: Constraint,
    rows: list[dict[str, Any]],
    chosen: Any,
) -> dict[str, Any]:
    """The selected constraint, evidence.json and summary.json."""
    save_constraint(run / "constraint", config, c, experts.train, chosen.i)
    evidence = evidences.label(experts.groups)
    table = mazes.as_table(c, maze.layout)
    document = evidence_json.document(evidence, experts.groups, table, maze.grid)
    write_json(run / "evidence.json", document)
    names = [task.name for task in experts.tasks]
    summary = make_summary(
        config, names, experts.heldout, rows, chosen, maze.truth, evidence.counts()
    )
    write_json(run / "summary.json", summary)
    return summary


class Clock:
    """Where the time of each iteration went; no result depends on it."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._now: dict[str, float] = {}
        self.splits: list[dict[str, float]] = []
        self.ends: list[float] = []

    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def split(self, what: str) -> None:
        """What was done since the last split was `what`."""
        now = time.monotonic()
        self._now[what] = self._now.get(what, 0.0) + now - self._last
        self._last = now

    def end_iteration(self) -> None:
        self.split("report")
        self.splits.append({k: round(v, 3) for k, v in self._now.items()})
        self.ends.append(self.seconds())
        self._now = {}

    def document(self) -> dict[str, Any]:
        return {"iteration_end_s": self.ends, "split_s": self.splits, "threads": THREADS}


class PlannerBackend:
    """The planner through the run's ledger.

    A solve is named by what it depends on: the task, its best moves over the flagged cells, and a
    seed path of the run's seed and the goal. So a plan that has not changed since an earlier
    iteration is not walked again; `reused` says for each task in which iteration it was.
    """

    def __init__(
        self,
        ledger: Ledger,
        world: WorldConfig,
        solver: SolverConfig,
        tell: OnEvent = lambda event: None,
        clock: Clock | None = None,
    ) -> None:
        self._ledger, self._world, self._solver = ledger, world, solver
        self._tell, self._clock = tell, clock or Clock()
        self._planner = Planner(solver.episodes, THREADS)
        self._walked_in: dict[str, int] = {}
        self.names: list[str] = []
        self.reused: list[int | None] = []

    def __call__(self, problems: Sequence[Problem]) -> list[Solution]:
        i = problems[0].seed[1]
        tasks = [cast(MazeTask, p.task) for p in problems]
        flagged = flag(problems[0].constraint, tasks[0].layout)
        self._clock.split("discretise")
        seeds = [(p.seed[0], LEARNER, *task.goal) for p, task in zip(problems, tasks, strict=True)]
        solutions, known = self.walk(tasks, flagged, seeds)
        self.reused = [_before(self._walked_in.setdefault(name, i), i) for name in self.names]
        for n, task in enumerate(tasks):
            event = {"event": "solved", "i": i, "k": n, "task": task.name, "known": n in known}
            self._tell({**event, "walked_in": self._walked_in[self.names[n]]})
        self._clock.split("walk")
        return solutions

    def walk(
        self, tasks: Sequence[MazeTask], flagged: Bools, seeds: Sequence[tuple[int, ...]]
    ) -> tuple[list[Solution], set[int]]:
        """The tasks' episodes around the flagged cells, and which tasks the ledger had."""
        keys = [self._key(t, flagged, s) for t, s in zip(tasks, seeds, strict=True)]
        self.names = [key_hash(key) for key in keys]
        missing = [n for n, name in enumerate(self.names) if self._ledger.get(name) is None]
        known = set(range(len(tasks))) - set(missing)
        if missing:
            fresh = self._planner.solve_all(
                [tasks[n] for n in missing], flagged, [seeds[n] for n in missing]
            )
            for n, solution in zip(missing, fresh, strict=True):
                self._ledger.put(self.names[n], keys[n], solution)
        return [cast(Solution, self._ledger.get(name)) for name in self.names], known

    def _key(self, task: MazeTask, flagged: Bools, seed: tuple[int, ...]) -> dict[str, Any]:
        moves = best_moves(flagged, task.goal)
        return {
            "schema": SCHEMA,
            "world": asdict(self._world),
            "solver": asdict(self._solver),
            "task": task.name,
            "moves": np.packbits(moves).tobytes().hex(),
            "seed": list(seed),
        }


def _before(walked_in: int, i: int) -> int | None:
    return walked_in if walked_in < i else None


def make_player(
    network: NetworkConfig, restricted: bool, maze: AntMaze, seed: int
) -> MLPRegression:
    """The network's regression, restricted to what the experts may do if the game says so."""
    return MLPRegression(
        maze.features,
        float(maze.horizon),
        (seed,),
        tolerance=network.tolerance if restricted else None,
        penalty=network.penalty,
        hidden=network.hidden,
        learning_rate=network.learning_rate,
        final_rate=network.final_rate,
        steps=network.steps,
        batch=network.batch,
        spread=network.spread,
    )


def read_experts(run: Path, config: RunConfig, maze: AntMaze) -> Experts:
    demos = demonstrations.load(run / "demos")
    if demonstrations.content_hash(demos) != config.demos.content_hash:
        raise InvalidInput(
            f"{run / 'demos'}: not the demonstrations that this run was started with; restore them"
        )
    chosen = chosen_demos(config, maze.tasks, demos)
    tasks = {task.name: task for task in maze.tasks}
    cells = {task.name: task for task in maze.grid.tasks}
    return Experts(
        tuple(tasks[d.task] for d in chosen),
        tuple(behaviour_of(d.train) for d in chosen),
        tuple(behaviour_of(d.heldout) for d in chosen),
        tuple(g for d in chosen for g in mazes.groups_of(cells[d.task], maze, d)),
    )


def iteration_row(
    record: Record, experts: Experts, maze: AntMaze, backend: PlannerBackend
) -> dict[str, Any]:
    """One iteration, as runs/summary.py has it, with what only the Ant's maze knows."""
    row: dict[str, Any] = {
        "i": record.i,
        "constraint": constraint_row(record.c, maze),
        "updated": constraint_row(record.c_next, maze),
        "best_payoff": record.best_payoff,
        "bound": None,  # no regret bound is known for networks
    }
    overlap = row["constraint"]["iou"]
    row["constraint_error"] = None if overlap is None else 1 - overlap
    row |= per_task("delta", list(record.deltas))
    row |= per_task("lam", [finite(s.lam) for s in record.solutions])
    for who, behaviours in (("learner", record.learners), ("expert", experts.train)):
        row |= per_task(f"{who}_reward", [pi.reward for pi in behaviours])
        row |= per_task(f"{who}_reward_se", [pi.reward_se for pi in behaviours])
        row |= per_task(f"{who}_length", [pi.length for pi in behaviours])
        row |= truth_columns(who, behaviours, maze.truth)
    # What the restriction leaves: the experts' own cost under the updated constraint.
    row |= per_task("expert_cost", [J(pi_E, record.c_next) for pi_E in experts.train])
    row["episodes"] = mazes.outcomes(record.solutions)
    names = [task.name for task in experts.tasks]
    known = maze.truth.known
    row["violations"] = mazes.violations(maze.truth, names, record.solutions) if known else None
    row["ledger"], row["reused"] = backend.names, backend.reused
    row["env_steps"] = sum(s.env_steps for s in record.solutions)
    return row


def constraint_row(c: Constraint, maze: AntMaze) -> dict[str, Any]:
    table = mazes.as_table(c, maze.layout)
    return {
        "description": f"{table.describe()} ({c.describe()})",
        "forbidden": int(table.forbidden.sum()),
        "iou": iou(table, maze.truth),
    }
