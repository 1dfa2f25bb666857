"""One constrained RL problem on its own, on every world: `ringfence solve` and `transfer`.

    DIR/solve.toml            all that determines the result
        constraint/           the constraint, as it is counted
        evidence.json         of the run it comes from, where the policy keeps to known cells
        start.safetensors     the policy that training begins from, where it does
        states.safetensors    demonstrated states where training episodes begin, where asked for
        checkpoint/           from which a killed training goes on, to the same bytes
        policy/               policy.safetensors (and policy.json, for `ringfence.load_policy`)
        episodes.safetensors  some episodes' features, for pictures
        curves.csv            one line per update of a training
        summary.json          what came of it, written last

With a clearance, training is under the constraint moved inwards by it; counted is the constraint as
it is. An episode violates it if it costs more than delta. The truth, where it is known, has costs
of its own, so it is counted against what the demonstrators' episodes cost by it: `true_limit`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.analysis.evidence import document as evidence_json
from ringfence.binomial import binomial_interval
from ringfence.constraints import constraint_files
from ringfence.constraints.avoiding import Avoiding
from ringfence.constraints.linear import LinearConstraint, parse_inequality, tightened
from ringfence.constraints.table import TableConstraint
from ringfence.demos import dataset
from ringfence.deploy import policies
from ringfence.disk import read_json, reading, remove_partials, write_file, write_folder, write_json
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import (
    Array,
    Behaviour,
    Constraint,
    J,
    Problem,
    Solution,
    Start,
    Task,
    Trajectory,
    widened,
)
from ringfence.runs import config as configs
from ringfence.runs.config import build, make_solver, make_world, read_document, tagged
from ringfence.runs.folder import Clock, OnEvent, only_driver, quiet, refuse_existing, teller
from ringfence.runs.ledger import Ledger, arrays_bytes, arrays_hash
from ringfence.runs.summary import SCHEMA, Inequality, finite, truth_of, versions
from ringfence.solvers.base import pictured, require_posed
from ringfence.worlds.base import World
from ringfence.worlds.finite import FiniteTask, occupancy, rollout
from ringfence.worlds.sim.floor import ARRIVED

FILE, START, STATES = "solve.toml", "start.safetensors", "states.safetensors"
#: The last number of the seed path of the episodes that are counted, and of those for pictures.
COUNTED, PICTURED = 70, 0
CONFIDENCE = 0.95
#: A task that is done with less than this probability can't be done; with this it is for certain.
POSSIBLE, CERTAIN = 1e-6, 0.999
PATHS = 20  # sampled for a picture of a finite world's policy
#: What true violations are counted against: where the demonstrations are known, and where not.
SHOWN = "the most that a demonstration costs"
NOT_SHOWN = "any true cost counts, as the demonstrations are not beside the constraint"


@dataclass(frozen=True)
class TaskTable:
    """The world's task of that name, or a new one by its description."""

    name: str = ""
    spec: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemTable:
    """What is solved, and how it is counted.

    delta: the limit on an episode's cost; clearance: to be kept from the constraint in training;
    unknown: keep to cells that demonstrations showed to be allowed ("avoid"), or use any not
    forbidden; covered: can the task be done within such cells, where that can be said; episodes:
    how many are counted afterwards, where behaviour is sampled; train: without it the policy is
    only told of the clearance, by its input of the constraint's value; start, states: hashes of
    the files beside; true_limit: the most that a demonstration truly costs, where that is known.
    """

    delta: float
    clearance: float = 0.0
    unknown: Literal["avoid", "allow"] = "allow"
    covered: bool | None = None
    episodes: int = 100
    train: bool = True
    start: str = ""
    states: str = ""
    true_limit: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.delta < np.inf:
            raise InvalidInput(f"[problem] delta: {self.delta} is not at least 0 and finite")
        if self.episodes < 2:
            raise InvalidInput(f"[problem] episodes: {self.episodes} is not at least 2")
        if self.unknown not in ("avoid", "allow"):
            raise InvalidInput(f"[problem] unknown: {self.unknown!r} is not 'avoid' or 'allow'")


@dataclass(frozen=True)
class Single:
    """All that determines a solve's result, beside the files in its folder."""

    command: str
    seed: int
    world: Any
    task: TaskTable
    problem: ProblemTable
    solver: Any


def read(folder: Path) -> Single:
    path = folder / FILE
    document, where = read_document(path), str(path)
    return Single(
        str(document.get("command", "")),
        int(document.get("seed", 0)),
        tagged(where, "world", document.get("world", {})),
        build(f"{where}: [task]", document.get("task", {}), TaskTable),
        build(f"{where}: [problem]", document.get("problem", {}), ProblemTable),
        tagged(where, "solver", document.get("solver", {})),
    )


# What is asked for -------------------------------------------------------------------------------


def read_constraint(spec: str, world: World, truth: str = "") -> tuple[Constraint, float]:
    """A constraint and its limit: "truth", "none", a saved one's folder (or its run), or text."""
    features = world.features
    if spec == "none":
        return LinearConstraint(features, np.zeros(len(features)), 0.0), 0.0
    if spec == "truth":
        if truth:
            return parse_inequality(truth, features), 0.0
        cells = world.cells
        if cells is None or cells.walls is None or cells.path is not None:
            raise InvalidInput(
                f"constraint 'truth': {world.name} has none of its own; state one, such as "
                f'--constraint "{features[-1].name} <= 1", or none'
            )
        return TableConstraint(features, cells.walls.astype(float)), 0.0
    if "<=" in spec or ">=" in spec:
        return parse_inequality(spec, features), 0.0
    folder = saved_folder(Path(spec))
    c, document = constraint_files.load_document(folder)
    require_fit(c, world, str(folder))
    return c, float(document["delta"])


def saved_folder(place: Path) -> Path:
    """A saved constraint, or that of a run."""
    return place / "constraint" if (place / "constraint").is_dir() else place


def require_fit(c: Constraint, world: World, where: str) -> None:
    """A constraint can only be asked about the features, and cells, that it was learned on."""
    names = [f.name for f in world.features]
    units = {f.name: f.unit for f in world.features}
    if [f.name for f in c.features] != names:
        raise InvalidInput(
            f"{where}: a constraint on {', '.join(f.name for f in c.features)}, this world has "
            f"{', '.join(names)}"
        )
    for f in c.features:
        if units[f.name] != f.unit:
            raise InvalidInput(
                f"{where}: it has {f.name!r} in {f.unit}, this world in {units[f.name]}; bring "
                "both to one unit"
            )
    shape = None if world.cells is None else world.cells.shape
    if isinstance(c, TableConstraint) and c.values.shape != shape:
        sizes = [" x ".join(map(str, s)) for s in (c.values.shape, shape or ())]
        raise InvalidInput(
            f"{where}: a constraint on {sizes[0]} cells, this world has {sizes[1] or 'none'}; give "
            "the world it was learned on"
        )


def find_task(world: World, table: TaskTable) -> Task:
    """A task by its name or number, or a new one by its description."""
    if table.spec:
        return world.new_task(table.spec)
    name, tasks = table.name or "0", list(world.tasks)
    if name.isdigit() and int(name) < len(tasks):
        return tasks[int(name)]
    for task in tasks:
        if task.name == name:
            return task
    there = ", ".join(repr(task.name) for task in tasks)
    raise InvalidInput(f"task {name!r}: there is none; use 0-{len(tasks) - 1} or one of {there}")


def selected_policy(run: Path, name: str | None) -> tuple[str, Start]:
    """A task of a finished game, and its policy of the selected iterate."""
    if not (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: not finished; 'ringfence resume {run}'")
    summary = read_json(run / "summary.json")
    tasks: list[str] = summary["tasks"]
    if name is None and len(tasks) > 1:
        there = ", ".join(tasks)
        raise InvalidInput(f"{run}: several tasks ({there}); choose one with --task NAME")
    if name is not None and name not in tasks:
        raise InvalidInput(f"{run}: there is no task {name!r}; it has {', '.join(tasks)}")
    if summary["outcome"] != "constraint":
        raise InvalidInput(f"{run}: no constraint was needed, so there is none to train under")
    k = 0 if name is None else tasks.index(name)
    solution = Ledger(run / "ledger").get(
        summary["iterations"][summary["selected"] - 1]["ledger"][k]
    )
    if solution is None:
        raise InvalidInput(f"{run}: the selected policy is not in its ledger; play the game again")
    return tasks[k], solution.policy


def is_covered(world: World, table: TaskTable, evidence: Evidence) -> bool | None:
    """Can the task be done within cells that demonstrators walked? None: that can't be said."""
    cells = world.cells
    if cells is None:
        return None
    if table.spec and cells.towards is not None:
        task = cells.towards(tuple(table.spec["goal"]), [tuple(table.spec["start"])])
    elif isinstance(found := find_task(world, table), FiniteTask):
        task = found
    else:
        task = cells.task(found.name)
    starts = np.flatnonzero(task.mdp.start)
    return all(bool(evidences.covered(evidence, task, int(s))) for s in starts)


def costliest(run: Path, provenance: Mapping[str, Any], truth: Constraint) -> float | None:
    """The most that a demonstration costs; None unless the constraint was learned in this run."""
    if not ((run / "config.toml").is_file() and (run / "demos").is_dir()):
        return None
    demos = dataset.load(run / "demos")
    if dataset.content_hash(demos) != provenance.get("demonstrations_sha256"):
        return None
    episodes = [t for task in demos.tasks for _, t in task.labelled]
    return max(float(truth.cost(widened(t, len(truth.features))).sum()) for t in episodes)


# A folder of its own -----------------------------------------------------------------------------


def create(
    out: Path,
    single: Single,
    c: Constraint,
    *,
    start: Start | None = None,
    states: Array | None = None,
    evidence: Path | None = None,
    learned: Path | None = None,
    world: World | None = None,
) -> None:
    """A new folder, after all that can be checked before anything is solved.

    evidence: the file of the run that the constraint comes from; learned: the folder of the saved
    constraint, where it is one; world: where no configuration can describe it.
    """
    refuse_existing(out)
    world = world or make_world(single.world)
    require_fit(c, world, "the constraint" if learned is None else str(learned))
    task, solver = find_task(world, single.task), make_solver(single.solver)
    tightened(c, single.problem.clearance)
    problem = replace(
        single.problem,
        start="" if start is None else arrays_hash(start),
        states="" if states is None else arrays_hash({"states": states}),
    )
    if problem.unknown == "avoid" and (evidence is None or world.cells is None):
        why = "no evidence is beside it" if evidence is None else "the features are continuous"
        raise InvalidInput(
            "--unknown avoid keeps to cells that demonstrations showed to be allowed; of this "
            f"constraint none are known ({why}): use --unknown allow"
        )
    if not problem.train:
        require_policy(single, start)
    if start is not None and not solver.learns:
        raise InvalidInput(
            f"--policy is for solvers that learn; {single.solver.kind!r} begins from nothing"
        )
    if states is not None and not getattr(single.solver, "start_share", 0.0):
        raise InvalidInput(
            "--demos, whose states episodes may begin at, needs the share of them that do: --set "
            "solver.start_share=0.3"
        )
    truth = truth_of(single.world, world)
    if isinstance(truth, Inequality) and learned is not None:
        provenance = constraint_files.load_document(learned)[1]["provenance"]
        problem = replace(problem, true_limit=costliest(learned.parent, provenance, truth.c))
    require_posed(solver, Problem(task, c, problem.delta, start, (single.seed,), states=states))
    files = {
        FILE: configs.to_toml(replace(single, problem=problem)).encode(),
        **({} if start is None else {START: arrays_bytes(start)}),
        **({} if states is None else {STATES: arrays_bytes({"states": states})}),
        **({} if evidence is None else {"evidence.json": evidence.read_bytes()}),
    }
    saved = (
        {n: (learned / n).read_bytes() for n in ("constraint.json", "weights.safetensors")}
        if learned is not None
        else constraint_files.to_bytes(c, problem.delta, {})
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_folder(out, files)
    write_folder(out / "constraint", saved)


def require_policy(single: Single, start: Start | None) -> None:
    if start is None:
        raise InvalidInput("--steps 0 needs a policy that there is: leave --task FILE.toml out")
    if single.problem.clearance and not getattr(single.solver, "augment", True):
        raise InvalidInput(
            "this policy does not see the constraint's value (augment = false), so it can't keep a "
            "clearance untrained: give --steps"
        )


def read_arrays(path: Path, wanted: str) -> dict[str, Any] | None:
    """The arrays of that hash, or None where there are to be none."""
    if not wanted:
        return None
    if not path.is_file():
        raise InvalidInput(f"{path.parent}: {path.name} is missing, which {FILE} names; begin anew")
    try:
        arrays: dict[str, Any] = safetensors.numpy.load_file(path)
    except (SafetensorError, OSError):
        arrays = {}
    if arrays_hash(arrays) != wanted:
        raise InvalidInput(f"{path}: not what {FILE} names; begin anew")
    return arrays


def drive(
    out: Path,
    on_event: OnEvent = quiet,
    on_record: Callable[[dict[str, Any]], None] = quiet,
    world: World | None = None,
) -> dict[str, Any]:
    """Solve and count, from wherever it was; returns the summary."""
    single = read(out)
    if (out / "summary.json").is_file():  # written last
        return read_json(out / "summary.json")
    with only_driver(out):
        remove_partials(out)
        return _Solve(out, single, on_event, on_record, world or make_world(single.world)).run()


class _Solve:
    """One session of a single problem."""

    def __init__(
        self,
        out: Path,
        single: Single,
        on_event: OnEvent,
        on_record: Callable[[dict[str, Any]], None],
        world: World,
    ) -> None:
        self.out, self.single, self.world = out, single, world
        self.tell, self.clock = teller(out, on_event), Clock(out / "timing.json")
        self.on_record, self.records = on_record, list[dict[str, Any]]()
        self.solver, self.task = make_solver(single.solver), find_task(world, single.task)
        self.c = constraint_files.load(out / "constraint")
        self.evidence = None
        if (out / "evidence.json").is_file():
            self.evidence = evidence_json.read(out / "evidence.json")

    def run(self) -> dict[str, Any]:
        p, single = self.single.problem, self.single
        steps = getattr(single.solver, "env_steps", 0) if p.train else 0
        self.tell({"event": "start", "tasks": 1, "iterations": 0, "steps": steps})
        start = read_arrays(self.out / START, p.start)
        states = read_arrays(self.out / STATES, p.states)
        problem = Problem(
            self.task,
            self.kept(),
            p.delta,
            start,
            (single.seed,),
            states=None if states is None else states["states"],
        )
        solution, more = self.solve(problem)
        self.refuse_impossible(solution)
        episodes = self.count(problem, solution)
        summary = {**self.about(), **self.outcome(solution, episodes), **more}
        self.store(solution, episodes)
        self.clock.write()
        write_json(self.out / "summary.json", summary)
        return summary

    def kept(self) -> Constraint:
        """The constraint to solve under."""
        p = self.single.problem
        c = tightened(self.c, p.clearance)
        if p.unknown == "allow":
            return c
        assert self.evidence is not None
        assert self.world.cells is not None
        return Avoiding(c, self.evidence.allowed, self.world.cells.index)

    def solve(self, problem: Problem) -> tuple[Solution, dict[str, Any]]:
        """The solution, and what a training tells beside it."""
        if not self.single.problem.train:
            assert problem.start is not None  # see `create`
            nothing = np.zeros((0, len(self.world.features)))
            unseen = Behaviour(nothing, np.zeros(0), 0.0, 0.0, 0.0, None)  # until it is counted
            return Solution(problem.start, float("nan"), unseen, env_steps=0), {}
        way = getattr(self.solver, "way", None)
        if way is not None and not way(problem):
            raise self.no_way()
        train = getattr(self.solver, "train", None)
        try:
            if train is None:
                return self.solver(problem, self.out / "checkpoint", self.report), {}
        except InfeasibleLimit as problem_error:
            raise self.no_way(str(problem_error)) from None
        result = train(problem, self.out / "checkpoint", self.report)
        return replace(result.solution, pictured=pictured(result.stochastic)), {
            "update": result.handed_out,
            "stochastic": self.figures(result.stochastic),
            "deterministic": self.figures(result.deterministic),
        }

    def report(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if record["update"] % 20 == 0:
            self.clock.write()
        self.tell({"event": "update", "i": 0, "k": 0, **record})
        self.on_record(record)

    def refuse_impossible(self, solution: Solution) -> None:
        new = isinstance(self.task, FiniteTask) and self.single.task.spec
        done = success(self.task, solution) if new else None
        if done is not None and done < POSSIBLE:
            raise self.no_way()

    def no_way(self, why: str = "") -> InfeasibleLimit:
        avoid = self.single.problem.unknown == "avoid"
        hint = (
            " within cells known to be allowed; ask for a demonstration, or accept the risk with "
            "--unknown allow"
            if avoid
            else "; ask for a demonstration of this task"
        )
        return InfeasibleLimit(
            why
            if why and not self.single.task.spec
            else f"{self.task.name}: no way under the constraint{hint}"
        )

    def count(self, problem: Problem, solution: Solution) -> list[Trajectory] | None:
        """Fresh episodes of the policy, where its behaviour isn't exact."""
        number, seed = self.single.problem.episodes, (self.single.seed, COUNTED)
        if self.solver.learns:
            self.tell({"event": "counting", "episodes": number})
        return self.solver.episodes(problem, solution, number, seed)

    def about(self) -> dict[str, Any]:
        single, p = self.single, self.single.problem
        return {
            "schema": SCHEMA,
            "command": single.command,
            "world": self.world.name,
            "kind": single.world.kind,
            "task": self.task.name,
            "start": single.task.spec.get("start"),
            "seed": single.seed,
            "versions": versions(self.world),
            "constraint": {"description": self.c.describe()},
            "delta": p.delta,
            "clearance": p.clearance,
            "unknown": p.unknown,
            "covered": p.covered,
            "truth": getattr(single.world, "truth", "") or None,
            "views": self.world.views(),
            "features": [{"name": f.name, "unit": f.unit} for f in self.world.features],
        }

    def outcome(self, solution: Solution, episodes: Sequence[Trajectory] | None) -> dict[str, Any]:
        """What the policy earns and costs: exactly, as its solution sampled it, or counted."""
        pi, truth = solution.behaviour, truth_of(self.single.world, self.world)
        row: dict[str, Any] = {
            "reward": pi.reward,
            "reward_se": pi.reward_se,
            "length": pi.length,
            "cost": J(pi, self.c),
            "lam": finite(solution.lam),
            "env_steps": solution.env_steps,
            "success": success(self.task, solution),
            "true_cost": truth.true_cost(pi) if truth.known else None,
            "true_raw": truth.true_raw(pi) if truth.known else None,
            "unknown_cells": self.unknown_cells(solution),
            "episodes": pi.episodes,
            **self.world.columns([self.task.name], [solution]),
        }
        if episodes is None:
            return row
        rewards = np.array([t.rewards.sum() for t in episodes])
        row |= {
            "episodes": len(episodes),
            "confidence": CONFIDENCE,
            "reward": float(rewards.mean()),
            "reward_se": standard_error(rewards),
            "length": float(np.mean([len(t) for t in episodes])),
            **violations("", self.c, episodes, self.single.problem.delta),
        }
        if isinstance(truth, Inequality):
            shown = self.single.problem.true_limit
            limit, words = (0.0, NOT_SHOWN) if shown is None else (shown, SHOWN)
            row |= violations("true_", truth.c, episodes, limit)
            row |= {"true_limit": limit, "true_limit_is": words}
        return row

    def figures(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Means over the episodes that a training ends with."""
        c, names = self.c, [f.name for f in self.c.features]
        reward, cost, raw, length = (
            np.array(values)
            for values in zip(
                *[
                    (t.rewards.sum(), c.cost(t.features).sum(), c.raw(t.features).sum(), len(t))
                    for t in trajectories
                ],
                strict=True,
            )
        )
        speed = names.index("speed") if "speed" in names else None
        paces = [] if speed is None else [t.features[:, speed].mean() for t in trajectories]
        return {
            "episodes": len(trajectories),
            "reward": float(reward.mean()),
            "reward_se": standard_error(reward),
            "length": float(length.mean()),
            **({"speed": float(np.mean(paces))} if paces else {}),
            "true_raw": float(raw.mean()),
            "true_cost": float(cost.mean()),
            "true_cost_se": standard_error(cost),
            "true_cost_per_step": float(cost.sum() / length.sum()),
        }

    def unknown_cells(self, solution: Solution) -> list[list[int]] | None:
        """The cells of the plan that no demonstration showed to be allowed."""
        cells = self.world.cells
        if cells is None or self.evidence is None or cells.path is not None:
            return None
        at = np.unique(cells.index(solution.behaviour.features))
        return [
            [int(i) for i in np.unravel_index(s, cells.shape)]
            for s in at
            if not self.evidence.allowed[s]
        ]

    def store(self, solution: Solution, episodes: Sequence[Trajectory] | None) -> None:
        """The policy, some episodes for pictures, and the course of the training."""
        files = {"policy.safetensors": policies.policy_bytes(solution.policy)}
        if self.solver.learns:
            about = {
                "world": self.world.name,
                "constraint": self.c.describe(),
                "delta": self.single.problem.delta,
                "clearance": self.single.problem.clearance,
                "seed": self.single.seed,
                "solver": asdict(self.single.solver),
            }
            acting: Any = self.task
            files = policies.to_bytes(solution.policy, acting, about)
        write_folder(self.out / "policy", files)
        shown = solution.pictured or (pictured(episodes) if episodes else ())
        if isinstance(self.task, FiniteTask):
            shown = sample_paths(self.task, solution, self.single.seed)
        if shown:
            arrays = {str(n): p.astype(np.float32) for n, p in enumerate(shown)}
            write_file(self.out / "episodes.safetensors", arrays_bytes(arrays))
        if self.records:
            write_file(self.out / "curves.csv", curves(self.records))


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def success(task: Task, solution: Solution) -> float | None:
    """How surely the task is accomplished: the chance of standing in a state of the highest reward
    (the goal) at the last step, or the share of walks that arrived. None: it has no goal."""
    if isinstance(task, FiniteTask) and task.horizon is not None:
        rho = occupancy(task.mdp, np.asarray(solution.policy["pi"], dtype=np.float64))
        best = task.mdp.reward.max(axis=1) >= task.mdp.reward.max()
        return min(1.0, float(rho[-1, best].sum()))
    if "outcome" in solution.policy:
        return float((np.asarray(solution.policy["outcome"]) == ARRIVED).mean())
    return None


def sample_paths(task: FiniteTask, solution: Solution, seed: int) -> tuple[Array, ...]:
    """Features of a few episodes [T, d], from all starts in turn."""
    if task.horizon is None:
        return ()
    rng = np.random.default_rng([seed, PICTURED])
    starts = np.flatnonzero(task.mdp.start)
    pi = np.asarray(solution.policy["pi"], dtype=np.float64)
    return tuple(
        rollout(task, pi, int(starts[n % len(starts)]), rng).features for n in range(PATHS)
    )


def violations(
    prefix: str, c: Constraint, episodes: Sequence[Trajectory], delta: float
) -> dict[str, Any]:
    """Of a constraint: an episode violates it if its cost sums to more than delta."""
    cost = np.array([float(c.cost(t.features).sum()) for t in episodes])
    raw = np.array([float(c.raw(t.features).sum()) for t in episodes])
    count = int((cost > delta).sum())
    low, high = binomial_interval(count, len(cost), CONFIDENCE)
    figures: Mapping[str, Any] = {
        "cost": float(cost.mean()),
        "cost_se": standard_error(cost),
        "raw": float(raw.mean()),
        "violating_episodes": count,
        "violation_chance": [low, high],
    }
    return {f"{prefix}{name}": value for name, value in figures.items()}


def curves(records: Sequence[Mapping[str, Any]]) -> bytes:
    """CSV, one line per update; an empty cell where no episode ended."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(records[0])
    writer.writerows([list(record.values()) for record in records])
    return text.getvalue().encode()


def read_curves(path: Path) -> dict[str, Array]:
    """The columns of a curves.csv, [updates] each; NaN where a cell is empty."""
    with reading(path), open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
