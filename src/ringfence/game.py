"""Inverse constraint learning as a game (Kim et al. 2023, Algorithms 2 and 3).

A policy player solves constrained RL for each task under the current constraint; a constraint
player picks the constraint that best separates what the learners did from what the experts did.

    ICL      one task,   delta = J(pi_E, c_i) + a buffer that is annealed to 0
    MT-ICL   K tasks,    delta = 0, constraints from F~_c = {c : J(pi_E^k, c) <= 0 for all k}
                         (or the budget that experts are said to have, in the place of both 0s)

The game doesn't know which solver, world or constraint class it is played with, it stores and
prints nothing, and no truth ever reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Constraint, J, Problem, Solution, SolveAll, Start, Task
from ringfence.players.player import ConstraintPlayer

Begin = Callable[[int, Solution | None], Start | None]

#: Of a learner whose multiplier is 0, where data are weighted by multipliers: if all are 0, all
#: weigh the same.
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True)
class Rules:
    """How long a game lasts, and which limit the learners get.

    iterations: N at most; epsilon: the game ends early when no constraint of the class has a
    payoff per step above it; multi_task: delta = the budget that experts are said to have, 0 if
    none is (Algorithm 3), instead of the expert's cost plus max(0, buffer - anneal * (i - 1))
    (Algorithm 2); weighted: the constraint player sees
    each learner's data weighted by its multiplier lam_i^k instead of equally.
    """

    iterations: int = 5
    epsilon: float = 1e-6
    multi_task: bool = True
    buffer: float = 0.0
    anneal: float = 0.0
    weighted: bool = False
    budget: float = 0.0


@dataclass(frozen=True, eq=False)
class Record:
    """Iteration i: the constraint c_i, what the learners did under it, and what came of it."""

    i: int
    c: Constraint
    deltas: tuple[float, ...]
    solutions: tuple[Solution, ...]
    best_payoff: float
    c_next: Constraint

    @property
    def learners(self) -> tuple[Behaviour, ...]:
        return tuple(solution.behaviour for solution in self.solutions)

    @property
    def shown(self) -> tuple[Behaviour, ...]:
        """The learners as the constraint player sees them."""
        return tuple(solution.shown for solution in self.solutions)


def play(
    tasks: Sequence[Task],
    experts: Sequence[Behaviour],
    solve_all: SolveAll,
    player: ConstraintPlayer,
    rules: Rules,
    seed: int = 0,
    begin: Begin | None = None,
) -> Iterator[Record]:
    """Play ICL (rules.multi_task False) or MT-ICL, yielding a record per iteration.

    begin: where a policy player starts, from its task's number and its last solution.
    """
    if len(tasks) != len(experts) or not tasks:
        raise InvalidInput(f"{len(tasks)} tasks need as many experts, got {len(experts)}")
    solutions: tuple[Solution | None, ...] = (None,) * len(tasks)
    c = player.initial()
    history: list[tuple[Behaviour, ...]] = []
    for i in range(1, rules.iterations + 1):
        # Policy players: pi_i^k, lam_i^k <- CRL(r^k, c_i, delta).
        limits = [limits_of(rules, i, pi_E, c) for pi_E in experts]
        deltas = tuple(map(sum, limits))
        starts = [begin(k, last) if begin else None for k, last in enumerate(solutions)]
        problems = [
            Problem(task, c, delta, start, seed=(seed, i, k), deltas=each)
            for k, (task, delta, start, each) in enumerate(
                zip(tasks, deltas, starts, limits, strict=True)
            )
        ]
        solutions = solved = tuple(solve_all(problems))
        learners = tuple(solution.shown for solution in solved)
        history.append(weigh(solved) if rules.weighted else learners)

        # Constraint player, no-regret:
        # c_{i+1} <- argmax_c 1/(TK) sum_{j<=i} sum_k J(pi_j^k, c) - J(pi_E^k, c) - R(c).
        c_next = player.update(experts, history)
        best_payoff = player.best_payoff(experts, learners)
        yield Record(i, c, deltas, solved, best_payoff, c_next)
        if best_payoff <= rules.epsilon:
            return
        c = c_next


def limits_of(rules: Rules, i: int, pi_E: Behaviour, c: Constraint) -> tuple[float, ...]:
    """The limit on an episode's cost that the learner gets in iteration i, one for each part of
    several limits at once; delta is their sum."""
    parts: Sequence[Constraint] = getattr(c, "parts", (c,))
    if rules.multi_task:
        return (rules.budget,) * len(parts)
    buffer = max(0.0, rules.buffer - rules.anneal * (i - 1))
    return tuple(J(pi_E, part) + buffer for part in parts)


def weigh(solutions: Sequence[Solution]) -> tuple[Behaviour, ...]:
    """The learners' behaviours, each as if it had been met lam times."""
    weights = [max(s.lam, LEAST_WEIGHT) for s in solutions]
    return tuple(
        replace(s.shown, visits=w * s.shown.visits, length=w * s.shown.length)
        for s, w in zip(solutions, weights, strict=True)
    )
