"""What the demonstrations determine about each cell of a finite world, and why.

F is a set of allowed cells, V_g(F) the best return of group g's task from its start for a policy
that is never (at s_0..s_{T-1}) outside F. Experts who were optimal under F earned V_g(F). So F
is consistent with what they did if it has the cells they visited and beats no group of them:

    allowed      an expert was there
    proven       V_g(allowed + x) beats some group: x is in no consistent F
    implicated   x is in a minimal set of m cells that beats some group: some consistent F can't
                 take x in as well; m is the size of the smallest such set
    unknown      every consistent F can take x in, or leave it: nothing was said about x

All this holds as far as the experts were optimal. A group that its own experts' cells show to be
beatable is a suspect and proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.conflicts import (
    Conflicts,
    beaten_by,
    best_returns,
    smallest_conflicts,
)
from ringfence.analysis.evidence.groups import Group
from ringfence.analysis.evidence.moves import Case, Mask, is_goal_task
from ringfence.analysis.evidence.result import (
    ALLOWED,
    ERRORS,
    IMPLICATED,
    PROVEN,
    UNKNOWN,
    Conflict,
    Evidence,
    Standing,
)
from ringfence.errors import InvalidInput
from ringfence.worlds.finite import FiniteTask

#: Fewer sampled paths than this say nothing about a mean return where there is chance.
FEWEST_PATHS = 5
#: Branchings of the search for one cell's smallest conflict set. On the 10 x 10 maze with one path
#: per start, 0, 10, 25, 50 leave 3.3, 1.8, 1.5, 0.8 cells unsettled in 0.1, 0.4, 1.1, 1.7 s; with
#: ten paths 0.3 cells or none, in 0.1 to 0.25 s.
EFFORT = 10


def label(
    groups: Sequence[Group],
    *,
    suboptimality: float = 0.0,
    min_paths: int = 1,
    tolerance: float = 1e-9,
    effort: int = EFFORT,
) -> Evidence:
    """What the demonstrations of these groups determine about each cell.

    suboptimality: how much return the experts may have left on the table. With 0, a group that
    visibly did (gap > 0) does not testify. With eps >= gap it does, and its bar is eps above both
    J_E and what it shows to be possible: cautious, because eps is mostly read off the gaps, which
    bound it from below only.

    min_paths: a cell is allowed only if this many paths visited it. 1 takes every visit at its
    word: one demonstrator who stepped on a wall makes it allowed, and the groups that keep off it
    suspects. More than that ignores visits by fewer paths (`doubtful` lists them): stray visits
    do no harm then, but rare good cells are lost, and if all but a few experts are slow, the
    cells of the fast few can come out as proven (10 x 10 maze, one path per start, 5% of the
    actions random: 3 leaves 0 wall cells allowed instead of 3, 45 free ones instead of 59, and
    calls 1 free cell proven). Keep it well below the number of paths that pass a cell.

    tolerance: returns closer than this are equal. effort: see EFFORT; more settles more cells.
    """
    _check(groups)
    if not (suboptimality >= 0 and tolerance >= 0 and min_paths >= 1 and effort >= 0):
        raise InvalidInput(
            "evidence: suboptimality, tolerance and effort must be at least 0, min_paths at least "
            f"1; got {suboptimality}, {tolerance}, {effort}, {min_paths}"
        )
    visitors = np.sum([group.visitors for group in groups], axis=0)
    allowed = visitors >= min_paths
    standings = _standings(groups, allowed, suboptimality, tolerance)
    cases = [
        Case(g.task.mdp, g.start, s.bar)
        for g, s in zip(groups, standings, strict=True)
        if s.testifies
    ]
    found = smallest_conflicts(cases, allowed, effort)
    labels = np.select(
        [allowed, found.size == 1, found.size > 1], [ALLOWED, PROVEN, IMPLICATED], UNKNOWN
    )
    testifying = [g for g, s in zip(groups, standings, strict=True) if s.testifies]
    conflicts, witness = _witnesses(testifying, cases, allowed, found)
    return Evidence(
        shape=shape_of(groups[0].task),
        labels=labels.astype(np.int8),
        m=found.size,
        m_exact=found.exact,
        witness=witness,
        conflicts=conflicts,
        standings=standings,
        doubtful=tuple(int(x) for x in np.flatnonzero((visitors > 0) & ~allowed)),
        min_paths=min_paths,
        suboptimality=suboptimality,
        chance=not all(group.certain for group in groups),
    )


def shape_of(task: FiniteTask) -> tuple[int, ...]:
    """The grid that a task's states number row by row, if its features are cells; else (S,)."""
    S, _, d = task.phi.shape
    cell = task.phi[:, 0]
    shape = tuple(int(n) for n in cell.max(axis=0, initial=0) + 1)
    grid = np.indices(shape).reshape(len(shape), -1).T if d and np.prod(shape) == S else None
    same = grid is not None and (task.phi == grid[:, None]).all()
    return shape if same else (S,)


def _check(groups: Sequence[Group]) -> None:
    if not groups:
        raise InvalidInput("evidence needs demonstrations: there is no group of them")
    S = groups[0].task.mdp.num_states
    for group in groups:
        if group.task.mdp.num_states != S or group.visitors.shape != (S,):
            raise InvalidInput(
                f"task {group.name!r} has {group.task.mdp.num_states} states, the first one {S}; "
                "evidence is about one set of cells"
            )
        if group.task.horizon is None:
            raise InvalidInput(f"task {group.name!r} has no horizon: evidence needs a finite one")
        if not len(group.returns):
            raise InvalidInput(f"task {group.name!r} from state {group.start}: no path is given")


def _standings(
    groups: Sequence[Group], allowed: Mask, suboptimality: float, tolerance: float
) -> tuple[Standing, ...]:
    """How each group stands against the best return within the allowed cells."""
    everywhere = [Case(g.task.mdp, g.start, np.inf) for g in groups]
    within = best_returns(everywhere, allowed[None])[0]
    return tuple(
        _standing(group, float(value), suboptimality, tolerance)
        for group, value in zip(groups, within, strict=True)
    )


def _standing(group: Group, within: float, suboptimality: float, tolerance: float) -> Standing:
    J_E, certain = group.mean, group.certain
    # Without chance a path can be repeated, so the best one shows what is possible, even if
    # min_paths has taken some of its cells away.
    shown = max(within, float(group.returns.max())) if certain else within
    margin = 0.0 if certain else ERRORS * group.standard_error
    give = suboptimality + tolerance + group.rounding
    gap = max(shown - J_E, 0.0)
    reason = ""
    if gap > margin + give:
        reason = "it could have done better within cells that demonstrators visited"
    elif not certain and not group.exact and len(group.returns) < FEWEST_PATHS:
        reason = f"there is chance in the world, and it has fewer than {FEWEST_PATHS} paths"
    return Standing(
        task=group.name,
        start=group.start,
        paths=None if group.exact else len(group.returns),
        expert_return=J_E,
        standard_error=group.standard_error,
        shown=None if np.isneginf(shown) else shown,
        gap=gap,
        bar=max(J_E + margin, shown) + give,
        testifies=not reason,
        reason=reason,
    )


def _witnesses(
    groups: Sequence[Group], cases: Sequence[Case], allowed: Mask, found: Conflicts
) -> tuple[tuple[Conflict, ...], NDArray[np.intp]]:
    """The distinct conflict sets with the group that each would beat most clearly."""
    distinct = sorted({tuple(sorted(found_set)) for found_set in found.witness.values()})
    witness = np.full(len(allowed), -1, dtype=np.intp)
    for x, found_set in found.witness.items():
        witness[x] = distinct.index(tuple(sorted(found_set)))
    sets = np.repeat(allowed[None], len(distinct), axis=0)
    for i, cells in enumerate(distinct):
        sets[i, list(cells)] = True
    if not distinct:
        return (), witness
    by, possible = beaten_by(cases, sets)
    conflicts = (
        _conflict(cells, groups[g], float(earned))
        for cells, g, earned in zip(distinct, by, possible, strict=True)
    )
    return tuple(conflicts), witness


def _conflict(cells: tuple[int, ...], group: Group, possible: float) -> Conflict:
    return Conflict(
        cells=cells,
        task=group.name,
        start=group.start,
        possible=possible,
        expert_return=group.mean,
        moves=_moves_to_goal(group.task, possible),
        expert_moves=_moves_to_goal(group.task, group.mean),
    )


def _moves_to_goal(task: FiniteTask, earned: float) -> float | None:
    """The moves after which a return of `earned` was at a goal, if only goals pay."""
    highest, horizon = float(task.mdp.reward.max()), task.horizon
    if earned <= 0 or horizon is None or not is_goal_task(task.mdp):
        return None
    return round(horizon - earned / highest, 6)
