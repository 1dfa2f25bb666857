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

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ringfence import consent
from ringfence.analysis.evidence import Evidence
from ringfence.analysis.evidence import document as evidence_json
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.constraints import constraint_files
from ringfence.constraints.avoiding import Avoiding
from ringfence.constraints.tightening import tightened
from ringfence.deploy import policies
from ringfence.disk import (
    claim,
    fresh_partial,
    parse_toml,
    read_file,
    read_folder,
    read_json,
    remove_partials,
    sealed_toml,
    sha256,
    write_document,
    write_file,
    write_folder,
    writing,
)
from ringfence.errors import InfeasibleLimit, InvalidInput, RingfenceError
from ringfence.objects import (
    Array,
    Behaviour,
    Constraint,
    J,
    Problem,
    Solution,
    Start,
    Trajectory,
)
from ringfence.runs import config as configs
from ringfence.runs.backend import error_files
from ringfence.runs.config import make_solver, make_world
from ringfence.runs.counting import (
    CONFIDENCE,
    curves,
    sample_paths,
    standard_error,
    success,
    violations,
)
from ringfence.runs.folder import Clock, OnEvent, only_driver, quiet, refuse_existing, teller
from ringfence.runs.ledger import arrays_bytes, arrays_hash
from ringfence.runs.problem import (
    FILE,
    Single,
    costliest,
    doubts_of,
    find_task,
    read,
    require_fit,
)
from ringfence.runs.summary import SCHEMA, Inequality, finite, truth_of, versions
from ringfence.solvers.solver import Report, pictured, require_posed
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.world import World

START, STATES = "start.safetensors", "states.safetensors"
#: The last number of the seed path of the episodes that are counted.
COUNTED = 70
#: The share of a covered task's episodes that may leave known cells, where policies are trained.
COVERED = 0.05
#: A task that is done with less than this probability can't be done.
POSSIBLE = 1e-6
#: What is read again, whose SHA-256 the summary has.
KEPT = ("episodes.safetensors", "curves.csv")
#: What true violations are counted against: where the demonstrations are known, and where not.
SHOWN = "the most that a demonstration costs"
NOT_SHOWN = "any true cost counts, as the demonstrations are not beside the constraint"


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
        doubts=() if learned is None else doubts_of(learned.parent),
    )
    labels = None if evidence is None else evidence_json.read(evidence)
    if problem.unknown == "avoid" and known_cells(world, labels) is None:
        why = "no evidence is beside it" if evidence is None else "this world has other cells"
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
    text = configs.to_toml(replace(single, problem=problem))
    consent.grant(parse_toml(text))
    files = {
        FILE: sealed_toml(text),
        **({} if start is None else {START: arrays_bytes(start)}),
        **({} if states is None else {STATES: arrays_bytes({"states": states})}),
        **({} if evidence is None else {"evidence.json": read_file(evidence)}),
    }
    saved = (
        {n: read_file(learned / n) for n in ("constraint.json", "weights.safetensors")}
        if learned is not None
        else constraint_files.to_bytes(c, problem.delta, {})
    )
    with writing(out):
        partial = fresh_partial(out)
        try:
            for name, content in files.items():
                write_file(partial / name, content)
            write_folder(partial / "constraint", saved)
            claim(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def known_cells(
    world: World, evidence: Evidence | SampledEvidence | None
) -> tuple[NDArray[np.bool_], Callable[[Array], NDArray[np.intp]]] | None:
    """Which cells demonstrators were in, and the cell of features; None where nobody knows."""
    if isinstance(evidence, SampledEvidence):
        fits = [f.name for f in evidence.features] == [f.name for f in world.features]
        return (evidence.allowed, evidence.index) if fits else None
    if evidence is None or world.cells is None:
        return None
    return evidence.allowed, world.cells.index


def require_policy(single: Single, start: Start | None) -> None:
    if start is None:
        raise InvalidInput("--steps 0 needs a policy that there is: leave --task FILE.toml out")
    if single.problem.clearance and not getattr(single.solver, "augment", True):
        raise InvalidInput(
            "this policy does not see the constraint's value (augment = false), so it can't keep a "
            "clearance untrained: give --steps"
        )


def over_limit(outcome: Mapping[str, Any], delta: float) -> list[str]:
    """Of counted episodes: does their mean cost exceed the limit, by two standard errors?"""
    if "cost_se" not in outcome or outcome["cost"] - 2 * outcome["cost_se"] <= delta:
        return []
    return [
        f"the policy does not keep its limit: an episode costs {outcome['cost']:.4g} on average, "
        f"{delta:.4g} are allowed; train it on (--steps)"
    ]


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
    engine: Any = None,
) -> dict[str, Any]:
    """Solve and count, from wherever it was; returns the summary.

    engine: solves on another machine, where there is one.
    """
    single = read(out)
    if (found := finished(out)) is not None:
        return found
    with only_driver(out):
        remove_partials(out)
        if engine is not None:
            return drive_there(out, single, on_event, engine)
        return _Solve(out, single, on_event, on_record, world or make_world(single.world)).run()


def finished(out: Path) -> dict[str, Any] | None:
    """The summary, which is written last; None as long as it or what it names isn't there whole."""
    try:
        summary = read_json(out / "summary.json")
        files = dict(summary.get("files", {}))
        whole = all(sha256(read_file(out / name)) == files[name] for name in KEPT if name in files)
        return summary if whole else None
    except (InvalidInput, OSError, ValueError):
        return None


# On another machine: the folder goes there, and comes back with what is in it then.

FOLDER, CHECKPOINT = "folder/", "checkpoint/"
#: What belongs to the place where it is solved.
THERE = (CHECKPOINT, "metrics.jsonl", ".lock")


@dataclass(frozen=True, eq=False)
class FolderWork:
    """A single problem, for a backend on other machines."""

    out: Path
    single: Single
    report: Report
    cores: float = 1.0

    @property
    def task(self) -> str:
        return self.single.task.name or self.out.name

    @property
    def steps(self) -> int:
        return int(getattr(self.single.solver, "env_steps", 0))

    @property
    def checkpoint(self) -> Path:
        return self.out / CHECKPOINT

    @property
    def common(self) -> tuple[Any, ...]:
        return (self,)

    def common_files(self) -> dict[str, bytes]:
        return {}

    def own_files(self) -> dict[str, bytes]:
        return {FOLDER + name: content for name, content in files_of(self.out).items()}


def files_of(folder: Path) -> dict[str, bytes]:
    return {n: c for n, c in read_folder(folder).items() if not n.startswith(THERE)}


def drive_there(out: Path, single: Single, on_event: OnEvent, engine: Any) -> dict[str, Any]:
    tell = teller(out, on_event)
    work = FolderWork(out, single, lambda r: tell({"event": "update", "i": 0, "k": 0, **r}))
    files = engine.submit(work).result()
    for name in sorted(files, key=lambda n: n == "summary.json"):  # written last
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, files[name])
    return read_json(out / "summary.json")


def drive_folder(folder: Path, report: Report) -> dict[str, bytes]:
    """There: its files once it is solved, or those of an error."""
    try:
        consent.carry(parse_toml((folder / FILE).read_text()))  # its driver has asked
        drive(folder, on_record=report)
    except RingfenceError as problem:
        return error_files(problem)
    return files_of(folder)


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
        self.tell = teller(out, on_event)
        self.clock = Clock(out / "timing.json", self.tell)
        self.on_record, self.records = on_record, list[dict[str, Any]]()
        self.solver, self.task = make_solver(single.solver), find_task(world, single.task)
        self.c = constraint_files.load(out / "constraint")
        self.evidence: Evidence | SampledEvidence | None = None
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
        outcome = self.outcome(solution, episodes)
        summary = {**self.about(), **outcome, "doubts": over_limit(outcome, p.delta), **more}
        summary["doubts"] += [f"of the constraint, where it was learned: {d}" for d in p.doubts]
        self.store(solution, episodes)
        self.clock.write()
        kept = [name for name in KEPT if (self.out / name).is_file()]
        summary["files"] = {name: sha256(read_file(self.out / name)) for name in kept}
        write_document(self.out / "summary.json", summary)
        return summary

    def kept(self) -> Constraint:
        """The constraint to solve under."""
        p = self.single.problem
        c = tightened(self.c, p.clearance)
        if p.unknown == "allow":
            return c
        known = known_cells(self.world, self.evidence)
        assert known is not None  # see `create`
        return Avoiding(c, *known)

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
            "kept": result.within,
            "doubts": result.doubts(problem),
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
            **self.coverage(episodes),
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

    def coverage(self, episodes: Sequence[Trajectory]) -> dict[str, Any]:
        """Where nothing can plan over the cells: do the policy's episodes keep to known ones?"""
        if not isinstance(self.evidence, SampledEvidence):
            return {}
        at = [self.evidence.index(t.features) for t in episodes]
        left = sum(not self.evidence.allowed[cells].all() for cells in at)
        every = np.unique(np.concatenate(at))
        shape = self.evidence.grid.shape
        return {
            "covered": left <= COVERED * len(episodes),
            "leaving_episodes": left,
            "unknown_cells": [
                [int(i) for i in np.unravel_index(cell, shape)]
                for cell in every[~self.evidence.allowed[every]]
            ],
        }

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
