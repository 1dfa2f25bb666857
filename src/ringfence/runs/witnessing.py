"""Evidence on continuous worlds: a game's learners as witnesses, on fresh episodes, and, within a
budget of trainings, other policies that do without some of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.narrowing import Wanted, narrowed
from ringfence.analysis.evidence.sampled import SampledEvidence, cells_of
from ringfence.analysis.evidence.witnessed import label
from ringfence.analysis.evidence.witnesses import (
    ERROR,
    Shown,
    Tried,
    bounds_by_start,
    returns_of,
    statements,
)
from ringfence.constraints.cell_grid import MOST_FEATURES, CellConstraint, Grid, around, read_axes
from ringfence.constraints.family import Family
from ringfence.errors import InvalidInput
from ringfence.game import Record
from ringfence.objects import NotHere, Problem, Solution, Trajectory
from ringfence.runs.backend import Solves
from ringfence.runs.config import Config
from ringfence.runs.demonstrated import Demonstrated
from ringfence.runs.folder import OnEvent
from ringfence.runs.opening import no_constraint
from ringfence.solvers.solver import Solver
from ringfence.worlds.continuous import is_continuous

#: In seed paths: of fresh episodes, and of policies that do without some cells.
FRESH, NARROWED = 80, 81
#: Episodes on which all learners are tried first, and how many of a task are tried on more.
FEW, MOST = 4, 8
#: The array of a trained policy that has the logarithm of its actions' noise, and that of none.
NOISE, SILENCE = "actor/log_std", -20.0


class CantPlay(Exception):
    """A solver without fresh episodes."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A solution to the problem of the task of that number; solver: who plays it; path: the seed
    path of its fresh episodes."""

    name: str
    task: int
    problem: Problem
    solution: Solution
    solver: Solver
    path: tuple[int, ...]


def witnessed(
    config: Config,
    family: Family,
    shown: Demonstrated,
    records: Sequence[Record],
    free: Sequence[Solution],
    solves: Solves,
    tell: OnEvent,
) -> SampledEvidence | NotHere:
    """What the demonstrations and the game's policies determine, or why that can't be said.

    free [K]: learners without a constraint, where some were tried.
    """
    grid = evidence_grid(config, family, shown)
    if isinstance(grid, NotHere):
        return grid
    return _Witnesses(config, family, shown, solves, tell, grid).labels(
        learners(config, shown, records, free, solves.solver)
    )


def evidence_grid(config: Config, family: Family, shown: Demonstrated) -> Grid | NotHere:
    """The cells that are labelled: those that the configuration names, those of the class, or
    cells of the class's features."""
    if not is_continuous(shown.tasks[0]):
        every = ", ".join(f.name for f in family.features)
        return NotHere(f"evidence is about cells, and here the features ({every}) name none")
    names = [f.name for f in family.features]
    points = np.concatenate([t.features for d in shown.demos for _, t in d.labelled])
    if config.analysis.cells:
        axes = read_axes(config.analysis.cells, family.features)
        if axes is None:
            raise InvalidInput(
                f"[analysis] cells: {config.analysis.cells!r} is not of the form "
                f"'table({names[0]} by 0.1)'"
            )
        return around(points, *axes)
    grid = getattr(family.convex, "grid", None)
    if grid is not None:
        return grid  # type: ignore[no-any-return]
    if len(family.used) > MOST_FEATURES:
        return NotHere(
            f"evidence is about cells of at most {MOST_FEATURES} features, and the class is on "
            f"{len(family.used)}; name some: --set "
            f"'analysis.cells=\"table({', '.join(family.used[:2])})\"'"
        )
    return around(points, [names.index(n) for n in family.used], [None] * len(family.used))


def stated_budget(config: Config) -> float | None:
    """The cost that a demonstrator's episode may have had; None where nobody says."""
    if config.player.kind == "payoff":
        return float(config.player.expert_budget)
    return 0.0 if config.game.method == "mt-icl" else None


def learners(
    config: Config,
    shown: Demonstrated,
    records: Sequence[Record],
    free: Sequence[Solution],
    solver: Solver,
) -> list[Policy]:
    """All policies that the game made, as they can be played again."""
    none, seed = no_constraint(shown), config.seed
    found = [
        Policy(
            "the learner without a constraint",
            k,
            Problem(task, none, 0.0, None, (seed, 0, k)),
            solution,
            solver.free(),
            (seed, FRESH, 0, k),
        )
        for k, (task, solution) in enumerate(zip(shown.tasks, free, strict=False))
    ]
    for r in records:
        for k, (task, delta, solution) in enumerate(
            zip(shown.tasks, r.deltas, r.solutions, strict=True)
        ):
            problem = Problem(task, r.c, delta, None, (seed, r.i, k))
            name = f"the learner of c_{r.i}"
            found.append(Policy(name, k, problem, solution, solver, (seed, FRESH, r.i, k)))
    return found


@dataclass(eq=False)
class _Witnesses:
    """One labelling. policies: by task and name, those that were played again."""

    config: Config
    family: Family
    shown: Demonstrated
    solves: Solves
    tell: OnEvent
    grid: Grid

    def __post_init__(self) -> None:
        pairs = zip(self.shown.tasks, self.shown.demos, strict=True)
        self.groups = [
            Shown(task.name, int(task.horizon or 0), [t for _, t in d.labelled])
            for task, d in pairs
        ]
        self.policies: dict[tuple[int, str], Policy] = {}

    def labels(self, known: Sequence[Policy]) -> SampledEvidence | NotHere:
        try:
            promising = self.promising(known)
        except CantPlay as problem:
            return NotHere(str(problem))
        cells = np.prod(self.grid.shape)
        self.say(f"{cells} cells, {len(promising)} learners that may be witnesses")
        tried = [self.tried(policy) for policy in promising]
        return narrowed(self.judge, tried, self.retry, self.config.analysis.narrowing)[0]

    def promising(self, known: Sequence[Policy]) -> list[Policy]:
        """Those that earn more than the bar on a few episodes, which decide nothing else, and all
        where demonstrations begin alike, so that single starts may tell; of each task some, which
        were in the fewest unvisited cells there."""
        told = statements(self.groups, [], self.config.analysis.slack)
        points = np.concatenate([t.features for g in self.groups for t in g.episodes])
        visited, found = np.unique(cells_of(self.grid, points)), list[Policy]()
        for k, statement in enumerate(told):
            beyond: list[tuple[int, Policy]] = []
            alike = stated_budget(self.config) == 0 and bool(
                bounds_by_start(self.groups[k].episodes, 1, ERROR)
            )
            for policy in known if statement.testifies else ():
                if policy.task == k:
                    few = self.play(policy, (*policy.path, FEW), FEW)
                    if alike or returns_of(few).mean() > statement.bar:
                        at = cells_of(self.grid, np.concatenate([t.features for t in few]))
                        beyond.append((len(np.setdiff1d(at, visited)), policy))
            found += [policy for _, policy in sorted(beyond, key=lambda pair: pair[0])[:MOST]]
        return found

    def play(self, policy: Policy, path: tuple[int, ...], count: int) -> list[Trajectory]:
        """Fresh episodes of a policy without its noise."""
        steady = steadied(policy.solution)
        episodes = policy.solver.episodes(policy.problem, steady, count, path)
        if episodes is None:
            kind = self.config.solver.kind
            raise CantPlay(f"the solver {kind!r} can't play its policies on fresh episodes")
        return episodes

    def judge(self, tried: Sequence[Tried]) -> SampledEvidence:
        return label(
            self.grid,
            self.family.features,
            self.groups,
            tried,
            slack=self.config.analysis.slack,
            budget=stated_budget(self.config),
        )

    def tried(self, policy: Policy) -> Tried:
        """A policy on so many fresh episodes that they can decide."""
        self.policies[policy.task, policy.name] = policy
        episodes = self.play(policy, policy.path, self.config.analysis.episodes)
        return Tried(policy.task, policy.name, episodes)

    def retry(self, wanted: Sequence[Wanted]) -> list[Tried]:
        """Policies that are trained to keep off cells, from the witness that they shall replace."""
        first = len(self.policies)
        self.say(f"{len(wanted)} policies that shall do without some cells")
        posed = []
        for n, want in enumerate(wanted):
            before, values = self.policies[want.task, want.after], want.barred.astype(np.float64)
            c = CellConstraint(self.family.features, self.grid, values.reshape(self.grid.shape))
            path = (self.config.seed, NARROWED, want.task, first + n)
            start = before.solution.policy if self.solves.solver.learns else None
            posed.append(replace(before.problem, constraint=c, delta=0.0, start=start, seed=path))
        found = []
        for n, (want, problem, solution) in enumerate(
            zip(wanted, posed, self.solves(posed), strict=True)
        ):
            name = f"policy {first + n}, which keeps off more of the cells,"
            again = (*problem.seed, FRESH)
            policy = Policy(name, want.task, problem, solution, self.solves.solver, again)
            found.append(self.tried(policy))
        return found

    def say(self, of: str) -> None:
        self.tell({"event": "analysis", "name": "evidence", "of": of})


def steadied(solution: Solution) -> Solution:
    """The same policy without the noise of its actions, where it has some: another policy, which
    earns as much in fewer cells."""
    noise = solution.policy.get(NOISE)
    if noise is None:
        return solution
    return replace(solution, policy={**solution.policy, NOISE: np.full_like(noise, SILENCE)})


def met_cells(grid: Grid, shown: Demonstrated, records: Sequence[Record]) -> Mask:
    """Cells [S] where demonstrators or learners were."""
    points = [t.features for d in shown.demos for _, t in d.labelled]
    points += [pi.features[pi.visits > 0] for record in records for pi in record.learners]
    met = np.zeros(int(np.prod(grid.shape)), np.bool_)
    met[cells_of(grid, np.concatenate(points))] = True
    return met
