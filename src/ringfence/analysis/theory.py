"""The paper's guarantees as running code: regret, both theorems' bounds, how many tasks.

J(pi, c) sums over an episode, the payoff of round i is l_i(c) = (J(pi_i, c) - J(pi_E, c)) / T,
averaged over the tasks. T is an episode's length: the horizon, or 1 / (1 - discount).
`confidence` is a probability of failure; delta is only ever a limit on cost.

Where the printed theory slips, and what is computed here instead:

- The last display of the single-task proof has its sign reversed. The proof shows, and
  `single_task` checks, mean_i J(pi_i, c*) - J(pi_E, c*) <= eps_bar T: a bound on the mean of the
  iterates, so on the best one, but not on each.
- l_i lies in [-1, 1] for c in [0, 1] only; for c in [-1, 1] it lies in [-2, 2]. A task's payoff
  J(pi, c) - J(pi_E, c) then has the range w = 2 T or 4 T: an argument of `tasks_needed`.
- epsilon is absolute in the lemma and per step in the theorem: the theorem's 3 epsilon T needs
  the lemma with epsilon T. `multi_task` takes it per step.
- The reward part of the multi-task proof has its signs reversed. What follows is
  E[J(pi, r) - J(pi_E, r)] >= -2 T P(pi_E unsafe under c_i) >= -2 epsilon T, for every c_i.
- The multi-task proof drops mean_i l_i(c_i) since "pi_E is in Pi(c_i)". For signed c this is no
  reason: J(pi_i, c_i) <= 0 may exceed J(pi_E, c_i) < 0. For c >= 0 both are 0 on the sampled
  tasks. Also E[J(pi_E, c*)] <= 0 puts c* into F~_c for c >= 0 only. So c >= 0 is assumed here.
- The lemma is about V(c), where the learner answers to c itself; the proof needs the payoff of c*
  against learners that answered to any c_i. That is |F_c| events too, and on the sampled tasks
  l_i(c_i) = 0, so for c >= 0 epsilon T would do in place of 3 epsilon T. The share of tasks
  with an unsafe expert is a second family of events; a one-sided bound leaves room for both.
- The lemma is for finite classes. Tables in [0, 1]^cells count as 2^cells: with limit 0 which
  policies are safe depends on which cells cost anything, not on how much, and so do the learners
  of a solver that chooses among equals by that alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.constraints.classes import ConstraintClass
from ringfence.errors import InvalidInput
from ringfence.game import Record, Rules, play
from ringfence.objects import Array, Behaviour, Constraint, J, Problem, Solution, SolveAll, Task
from ringfence.players.ftrl import FTRL, ftrl
from ringfence.players.player import payoff_gradient

#: Rounding and the LP's own tolerance, in units of an episode's cost or reward.
TOLERANCE = 1e-7


# Regret


@dataclass(frozen=True, eq=False)
class Regret:
    """What the constraint player got and could have got, for each prefix n = 1..N of a game.

    T: the episode's length; payoff [N]: l_i(c_i); best [N]: max_{c in F_c} sum_{i<=n} l_i(c).
    """

    T: float
    payoff: Array
    best: Array

    @property
    def rounds(self) -> Array:
        """n = 1..N, [N]."""
        return np.arange(1.0, len(self.payoff) + 1)

    @property
    def average(self) -> Array:
        """eps_bar_n, the time-averaged regret, [N]. Negative if the c_i were not in F_c."""
        return (self.best - np.cumsum(self.payoff)) / self.rounds

    @property
    def slack(self) -> Array:
        """mean_{i<=n} J(pi_i, c_i) - J(pi_E, c_i), [N]: what the proofs drop.

        It is at most 0 if each learner kept to the expert's cost, and positive by what a
        solver overspent or a buffer allowed.
        """
        return self.T * np.cumsum(self.payoff) / self.rounds

    @property
    def bound(self) -> Array:
        """eps_bar_n T, [N]: the theorem's right side, known from the game alone."""
        return self.T * self.average

    @property
    def sharp_bound(self) -> Array:
        """eps_bar_n T + slack_n = max_{c in F_c} mean_{i<=n} J(pi_i, c) - J(pi_E, c), [N].

        It holds for any solver and any limit; only c* in F_c is needed.
        """
        return self.T * self.best / self.rounds


def regret(
    F_c: ConstraintClass, T: float, experts: Sequence[Behaviour], records: Sequence[Record]
) -> Regret:
    """The regret of a game's c_1..c_N against the best constraint of F_c in hindsight.

    Any player can be measured; in the multi-task game F_c is the restricted class.
    """
    if not records or T <= 0:
        raise InvalidInput("regret needs at least one record and a positive episode length")
    payoff = [_gap(record.learners, experts, record.c) / T for record in records]
    gradients = [payoff_gradient(F_c, experts, record.learners, T) for record in records]
    best = [float(g @ F_c.maximise(g)) for g in np.cumsum(gradients, axis=0)]
    return Regret(T, np.array(payoff), np.array(best))


def analytic_rate(player: FTRL, N: int) -> Array:
    """What FTRL promises for eps_bar_n, n = 1..N: (D^2 / (2 eta) + eta n G^2 / 2) / n, [N]."""
    return np.array([player.rate(n) / n for n in range(1, N + 1)])


def _gap(learners: Sequence[Behaviour], experts: Sequence[Behaviour], c: Constraint) -> float:
    """J(pi, c) - J(pi_E, c) on the mean of the tasks."""
    return float(np.mean([J(pi, c) - J(e, c) for pi, e in zip(learners, experts, strict=True)]))


# The single-task theorem


@dataclass(frozen=True, eq=False)
class SingleTask:
    """Both sides of the single-task theorem; the left sides need the truth c*.

    violation [N]: J(pi_i, c*) - J(pi_E, c*) of each iterate, on the mean of its tasks;
    reward [N, K]: J(pi_i, r) - J(pi_E, r).
    """

    regret: Regret
    violation: Array
    reward: Array

    @property
    def mean_violation(self) -> Array:
        """mean_{i<=n} J(pi_i, c*) - J(pi_E, c*), [N]: what eps_bar_n T bounds."""
        return np.cumsum(self.violation) / self.regret.rounds

    def holds(self, tolerance: float = TOLERANCE) -> bool:
        """Whether every prefix is as safe, and every iterate as rewarding, as it must be."""
        return self.failure(tolerance) is None

    def failure(self, tolerance: float = TOLERANCE) -> str | None:
        """Which premise of the theorem was not met, or None if the theorem holds.

        mean_violation <= sharp_bound for any c* in F_c, whatever the solver does. So a violation
        above that proves c* outside; one between the two bounds proves overspent limits.
        """
        if (self.mean_violation > self.regret.sharp_bound + tolerance).any():
            return "the truth is not in the constraint class"
        if (self.mean_violation > self.regret.bound + tolerance).any():
            return "the learners spent more than the limit J(pi_E, c_i)"
        if (self.reward < -tolerance).any():
            return "a learner earns less than its expert: the solver isn't optimal"
        return None


def single_task(
    measured: Regret, experts: Sequence[Behaviour], records: Sequence[Record], truth: Constraint
) -> SingleTask:
    """Evaluate the single-task theorem on a game. For tests and report columns only."""
    violation = [_gap(record.learners, experts, truth) for record in records]
    reward = [
        [pi.reward - pi_E.reward for pi, pi_E in zip(record.learners, experts, strict=True)]
        for record in records
    ]
    return SingleTask(measured, np.array(violation), np.array(reward))


# The sample-size lemma


def tasks_needed(epsilon: float, confidence: float, class_size: int, payoff_range: float) -> int:
    """K = ceil(w^2 log(2 |F_c| / confidence) / (2 epsilon^2)), w = payoff_range.

    With K i.i.d. tasks the mean payoff of every c in F_c is within `epsilon` (absolute, in units
    of an episode's cost) of its expectation, except with probability `confidence`.
    """
    _check(epsilon=epsilon, confidence=confidence, payoff_range=payoff_range)
    K = payoff_range**2 * _log_events(confidence, class_size) / (2 * epsilon**2)
    # An epsilon that was computed from K must give K back, so rounding is not a task.
    return max(1, math.ceil(K * (1 - 1e-12)))


def epsilon_for(K: int, confidence: float, class_size: int, payoff_range: float) -> float:
    """The (absolute) accuracy that K tasks give: the inverse of `tasks_needed`."""
    _check(K=K, confidence=confidence, payoff_range=payoff_range)
    return payoff_range * math.sqrt(_log_events(confidence, class_size) / (2 * K))


def confidence_for(K: int, epsilon: float, class_size: int, payoff_range: float) -> float:
    """The probability of failure that K tasks leave, 2 |F_c| exp(-2 K epsilon^2 / w^2), at most 1.

    It may be 0 where the true figure is too small for a float.
    """
    _check(K=K, epsilon=epsilon, payoff_range=payoff_range)
    exponent = _log_events(1.0, class_size) - 2 * K * (epsilon / payoff_range) ** 2
    return math.exp(min(0.0, exponent))


def vacuous(epsilon: float, payoff_range: float) -> bool:
    """Whether an accuracy says nothing: a mean is never further than w from its expectation."""
    return epsilon >= payoff_range


def _log_events(confidence: float, class_size: int) -> float:
    """log(2 |F_c| / confidence); |F_c| may be an integer that no float can hold."""
    if class_size < 1 or confidence > 1:
        raise InvalidInput("a class has at least one constraint, a confidence is at most 1")
    return math.log(2) + math.log(class_size) - math.log(confidence)


def _check(**positive: float) -> None:
    for name, value in positive.items():
        if not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"{name} must be positive and finite, got {value}")


# The multi-task theorem, by Monte Carlo


@dataclass(frozen=True, eq=False)
class Population:
    """A finite distribution over tasks: tasks [M], their experts [M], probabilities [M]."""

    tasks: Sequence[Task]
    experts: Sequence[Behaviour]
    share: Array

    def __post_init__(self) -> None:
        M = len(self.tasks)
        if M == 0 or len(self.experts) != M or self.share.shape != (M,):
            raise InvalidInput("a population needs one expert and one probability for each task")
        if (self.share < 0).any() or abs(self.share.sum() - 1) > 1e-9:
            raise InvalidInput("a population's probabilities must be >= 0 and sum to 1")


@dataclass(frozen=True, eq=False)
class MultiTask:
    """Both sides of the multi-task theorem, one entry per trial of K sampled tasks.

    epsilon is per step. regret [n]: eps_bar of the sampled tasks' game; violation [n]:
    E_tau[J(pi_i, c*) - J(pi_E, c*)] over the whole population, on the mean of the iterates;
    reward [n]: E_tau[J(pi_i, r) - J(pi_E, r)], of the worst iterate.
    """

    T: float
    K: int
    epsilon: float
    regret: Array
    violation: Array
    reward: Array

    @property
    def bound(self) -> Array:
        """eps_bar T + 3 epsilon T, [n]."""
        return self.T * (self.regret + 3 * self.epsilon)

    @property
    def sharp_bound(self) -> Array:
        """eps_bar T + epsilon T, [n]: what the corrected proof gives for c >= 0."""
        return self.T * (self.regret + self.epsilon)

    @property
    def reward_bound(self) -> float:
        """-2 epsilon T, for rewards in [-1, 1]."""
        return -2 * self.epsilon * self.T

    @property
    def vacuous(self) -> NDArray[np.bool_]:
        """[n]: the bound allows what c* in [0, 1] can't exceed, a violation at every step."""
        return self.bound >= self.T

    def holds(self, tolerance: float = TOLERANCE) -> NDArray[np.bool_]:
        """[n]: trials in which both conclusions hold."""
        safe = self.violation <= self.bound + tolerance
        return safe & (self.reward >= self.reward_bound - tolerance)

    @property
    def share(self) -> float:
        """The share of trials in which both hold: the theorem promises 1 - confidence."""
        return float(self.holds().mean())


def multi_task(
    population: Population,
    truth: Constraint,
    F_c: ConstraintClass,
    solve_all: SolveAll,
    T: float,
    K: int,
    epsilon: float,
    iterations: int,
    trials: int,
    seed: int = 0,
) -> MultiTask:
    """Play MT-ICL with FTRL on K tasks drawn from a population, again and again.

    Each trial restricts F_c to its own sample's experts, and its c_1..c_N are then evaluated on
    every task of the population: the expectation over tasks is exact, only the sample is drawn.
    `solve_all` must be exact and a function of task, constraint and limit alone.
    """
    rng = np.random.default_rng(seed)
    once = _once_per_task(solve_all)
    rules = Rules(iterations, epsilon=-1.0)  # no early stop: later rounds lower the regret
    rows = []
    for _ in range(trials):
        drawn = rng.choice(len(population.tasks), size=K, p=population.share)
        experts = [population.experts[k] for k in drawn]
        player = ftrl(F_c.restricted(experts), T, iterations)
        records = list(play([population.tasks[k] for k in drawn], experts, once, player, rules))
        eps_bar = regret(player.F_c, T, experts, records).average[-1]
        outcome = [_on_population(population, truth, record.c, once) for record in records]
        violation, reward = np.array(outcome).T
        rows.append((eps_bar, violation.mean(), reward.min()))
    return MultiTask(T, K, epsilon, *np.array(rows).T)


def _on_population(
    population: Population, truth: Constraint, c: Constraint, solve_all: SolveAll
) -> tuple[float, float]:
    """E_tau of J(pi, c*) - J(pi_E, c*) and of J(pi, r) - J(pi_E, r), pi = CRL(r^tau, c, 0)."""
    problems = [Problem(task, c, 0.0, start=None, seed=()) for task in population.tasks]
    learners = [solution.behaviour for solution in solve_all(problems)]
    pairs = list(zip(learners, population.experts, strict=True))
    violation = np.array([J(pi, truth) - J(pi_E, truth) for pi, pi_E in pairs])
    reward = np.array([pi.reward - pi_E.reward for pi, pi_E in pairs])
    return float(population.share @ violation), float(population.share @ reward)


def _once_per_task(solve_all: SolveAll) -> Callable[[Sequence[Problem]], Sequence[Solution]]:
    """Solve a task that was drawn several times once; an iteration's problems share c and limit."""

    def solve(problems: Sequence[Problem]) -> list[Solution]:
        distinct = {id(problem.task): problem for problem in problems}
        solved = dict(zip(distinct, solve_all(list(distinct.values())), strict=True))
        return [solved[id(problem.task)] for problem in problems]

    return solve
