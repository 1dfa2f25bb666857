"""Constrained RL on finite worlds as a linear program over occupancy measures, on HiGHS.

    max_rho  sum rho * r   s.t.   rho >= 0,   sum rho * c_k <= delta_k   for k = 1..m,
             sum_a rho[t, s, a] = start[s] at t = 0, else sum_{s', a} rho[t-1, s', a] P(s | s', a)

and without a horizon sum_a rho[s, a] = start[s] + discount * sum_{s', a} rho[s', a] P(s | s', a).
The flow rows' duals are the value function V of r - sum_k lam_k c_k, the cost rows' duals are
the multipliers lam. States that can't be met are left out: they would only add columns, and
with discount 1 they could hold visits that go round in a ring and never came from the start.

Discount 1 without a horizon is the total reward of policies whose episodes end with certainty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, kron

from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed, UnboundedProblem
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.soft import pair_costs
from ringfence.solvers.solver import Exact
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, stored

#: HiGHS's tolerance on rows, bounds and reduced costs (its default is 1e-7). With it the worst
#: residual of the optimality conditions was 7e-9 over 5,400 random programs, and 4e-8 in the
#: maze with slip.
TOLERANCE = 1e-9

GIVE_IT_AN_END = "give a horizon, a discount below 1 or transitions that terminate"

OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "solver": "simplex",
    # Measured on the maze: off takes 0.73 s for eight programs, on 0.82 s. And without it the
    # solver tells "infeasible" from "unbounded".
    "presolve": "off",
    # HiGHS keeps its scale factors when rows are replaced, through `clearSolver` too, so the last
    # bits would depend on the first program. `_unit` scales instead; it is no slower on the maze.
    "simplex_scale_strategy": 0,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
    "small_matrix_value": 1e-12,  # the least allowed: rarer transitions than that are dropped
}


@dataclass(frozen=True, eq=False)
class LPSolution:
    """An optimal policy with its certificate. T is absent in the shapes of a discounted problem.

    pi [T, S, A], uniform in states without visits; rho [T, S, A]; lam [m] >= 0, the reward that
    one more unit of each limit would buy; value: J(pi, r); cost [m]: J(pi, c_k); V [T, S]: the
    flow rows' duals, 0 where the state can't be met. Optimality says, where it can,

        V[t, s] >= r[s, a] - sum_k lam_k c_k[s, a] + discount * sum_s' P(s' | s, a) V[t+1, s']

    with equality where rho > 0 (so V is the value where pi goes, and at least it elsewhere), and
    lam_k (delta_k - cost_k) = 0.
    """

    pi: Array
    rho: Array
    lam: Array
    value: float
    cost: Array
    V: Array


@dataclass(frozen=True)
class Config:
    """Finite worlds, as a linear program: exact, without settings."""

    kind: Literal["lp"] = "lp"


def make(config: Config) -> Exact:
    return Exact(LPSolver())


@dataclass(frozen=True, eq=False)
class LPSolver:
    """Solves a `Problem` on a finite task exactly, and keeps each task's program for the next."""

    _programs: dict[FiniteTask, OccupancyLP] = field(default_factory=dict, repr=False)

    def __call__(self, problem: Problem) -> Solution:
        task = problem.task
        if not isinstance(task, FiniteTask):
            raise InvalidInput(f"task {task.name!r} is not finite: the LP can't solve it")
        if task not in self._programs:
            self._programs[task] = OccupancyLP(task.mdp)
        cost = pair_costs(task, problem)
        found = self._programs[task].solve(cost[None], np.array([problem.delta]))
        policy = stored(found.pi, found.rho)
        return Solution(policy, float(found.lam[0]), behaviour(task, found.rho), 0)


class OccupancyLP:
    """The program of one finite MDP: its flow rows are built once, cost rows come with `solve`."""

    def __init__(self, mdp: FiniteMDP) -> None:
        S, A = mdp.reward.shape
        self.mdp = mdp
        self._met = reachable(mdp)
        states = np.flatnonzero(self._met)  # the rows, as t * S + s
        columns = (states[:, None] * A + np.arange(A)).ravel()  # as (t * S + s) * A + a
        self._pair = columns % (S * A)
        self._flow = csc_array(_flow(mdp, len(self._met))[states][:, columns])
        self._start = np.where(states < S, mdp.start[states % S], 0.0)
        self._reward_unit = _unit(mdp.reward[None])[0]
        self._highs = self._program(mdp.reward / self._reward_unit)

    def solve(self, costs: Array, limits: Array) -> LPSolution:
        """The optimum for costs c_k[s, a], costs [m, S, A], under limits delta_k, limits [m].

        The answer depends on the arguments alone, not on what was solved before: the cost rows
        are replaced and the solver starts from the slack basis.
        """
        costs, limits = np.asarray(costs, dtype=float), np.asarray(limits, dtype=float)
        self._check(costs, limits)
        unit = _unit(costs)
        rows, bounds = costs / unit[:, None, None], limits / unit
        status = self._run(rows, bounds)
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnbounded):
            self._raise_infeasible(rows, bounds, unit)
            # Missed by less than the tolerance: rounding in a limit that is the least cost.
            status = self._run(rows, bounds + 2 * TOLERANCE)
        if status == highspy.HighsModelStatus.kUnbounded:
            raise UnboundedProblem(
                "reward can be collected without end within the limits: " + GIVE_IT_AN_END
            )
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFailed(f"HiGHS stopped with {self._highs.modelStatusToString(status)!r}")
        return self._solution(costs, unit)

    def _check(self, costs: Array, limits: Array) -> None:
        shape = (*limits.shape, *self.mdp.reward.shape)
        if limits.ndim != 1 or costs.shape != shape:
            raise InvalidInput(
                f"limits of shape {limits.shape} and costs of shape {costs.shape} don't fit a "
                f"world of shape {self.mdp.reward.shape}: give limits [m] and costs [m, S, A]"
            )
        if not (np.isfinite(costs).all() and np.isfinite(limits).all()):
            raise InvalidInput("cost and limit must be finite")

    def _program(self, objective: Array) -> highspy.Highs:
        """max objective[s, a] * rho under the flow rows."""
        rows, columns = self._flow.shape
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = rows, columns
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = objective.ravel()[self._pair]
        lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, np.inf)
        lp.row_lower_ = lp.row_upper_ = self._start
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = self._flow.indptr
        lp.a_matrix_.index_ = self._flow.indices
        lp.a_matrix_.value_ = self._flow.data
        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in OPTIONS.items():
            highs.setOptionValue(name, value)
        _accept(highs.passModel(lp))
        return highs

    def _run(self, rows: Array, bounds: Array) -> highspy.HighsModelStatus:
        self._replace_cost_rows(self._highs, rows, bounds)
        return _run(self._highs)

    def _replace_cost_rows(self, highs: highspy.Highs, rows: Array, bounds: Array) -> None:
        """Drop the last solve's cost rows and add these.

        Measured on the maze: 1 ms for a row of 11,750 coefficients, 11 ms when they are changed
        one by one; and changed ones would lie in the matrix in an order that tells the past.
        """
        m, first = len(bounds), len(self._start)
        old = np.arange(first, highs.getNumRow(), dtype=np.int32)
        _accept(highs.deleteRows(len(old), old))
        new = csr_array(rows.reshape(m, self.mdp.reward.size)[:, self._pair])
        below = np.full(m, -np.inf)
        _accept(highs.addRows(m, below, bounds, new.nnz, new.indptr, new.indices, new.data))

    def _solution(self, costs: Array, unit: Array) -> LPSolution:
        found = self._highs.getSolution()
        duals = np.array(found.row_dual) * self._reward_unit
        shape = (*self._met.shape, self.mdp.num_actions)
        rho, V = np.zeros(shape), np.zeros(self._met.shape)
        # What lies below zero by the solver's tolerance is zero.
        rho[self._met] = np.maximum(np.array(found.col_value), 0.0).reshape(-1, shape[-1])
        V[self._met] = duals[: len(self._start)]
        per_pair = rho.sum(axis=0)
        if self.mdp.horizon is None:
            rho, V = rho[0], V[0]
        return LPSolution(
            pi=policy_of(rho),
            rho=rho,
            lam=np.maximum(duals[len(self._start) :], 0.0) / unit,
            value=float((per_pair * self.mdp.reward).sum()),
            cost=(per_pair * costs).sum(axis=(1, 2)),
            V=V,
        )

    def _raise_infeasible(self, rows: Array, bounds: Array, unit: Array) -> None:
        """Raise an error that names the limits that can't be kept; return if all of them can.

        HiGHS is not believed here: on 49 of 575 random programs with contradicting limits it
        stopped with the status "Unknown". The programs that this solves have an optimum.
        """
        excess = [self._excess(rows[[k]], bounds[[k]]) for k in range(len(bounds))]
        missed = [
            f"no policy keeps {'the cost' if len(bounds) == 1 else f'cost {k}'} within "
            f"{bounds[k] * unit[k]:.6g}: the least achievable is {(bounds[k] + over) * unit[k]:.6g}"
            for k, over in enumerate(excess)
            if over > TOLERANCE
        ]
        if missed:
            raise InfeasibleLimit("; ".join(missed))
        if self._excess(rows, bounds) > TOLERANCE:
            limits = ", ".join(f"{limit:.6g}" for limit in bounds * unit)
            raise InfeasibleLimit(
                f"no policy keeps all of the limits {limits}, though each alone can be kept"
            )

    def _excess(self, rows: Array, bounds: Array) -> float:
        """min_pi sum_k [J(pi, c_k) - delta_k]^+ of scaled costs and limits."""
        highs = self._program(np.zeros_like(self.mdp.reward))
        self._replace_cost_rows(highs, rows, bounds)
        for row in range(len(self._start), highs.getNumRow()):
            _accept(highs.addCol(-1.0, 0.0, np.inf, 1, np.array([row]), np.array([-1.0])))
        status = _run(highs)
        if status == highspy.HighsModelStatus.kOptimal:
            return -float(highs.getObjectiveValue())
        if self.mdp.horizon is None and self.mdp.discount == 1:
            raise UnboundedProblem(
                "no policy ends the episode with certainty, so visits have no finite sum: "
                + GIVE_IT_AN_END
            )
        raise SolverFailed(f"HiGHS stopped with {highs.modelStatusToString(status)!r}")


def policy_of(rho: Array) -> Array:
    """pi = rho / sum_a rho, uniform in states without visits (fewer than the tolerance)."""
    visits = rho.sum(axis=-1, keepdims=True)
    met = visits > TOLERANCE
    return cast(Array, np.where(met, rho / np.where(met, visits, 1.0), 1 / rho.shape[-1]))


def reachable(mdp: FiniteMDP) -> NDArray[np.bool_]:
    """The states that some policy can meet at step t, [T, S]; without a horizon ever, [1, S]."""
    possible = (mdp.transition_t > 0).astype(np.float64)
    layers = [mdp.start > 0]
    while len(layers) != mdp.horizon:
        ahead = possible @ np.repeat(layers[-1], mdp.num_actions).astype(np.float64) > 0
        if mdp.horizon is None:
            ahead |= layers[-1]
            if np.array_equal(ahead, layers[-1]):
                return ahead[None]
        layers.append(ahead)
    return np.array(layers)


def _flow(mdp: FiniteMDP, layers: int) -> csr_array:
    """Out of minus into each state, [layers * S, layers * S * A]."""
    S, A = mdp.reward.shape
    out = kron(eye_array(layers * S), np.ones((1, A)))
    earlier = eye_array(layers, k=0 if mdp.horizon is None else -1)
    flow = csr_array(out - mdp.discount * kron(earlier, mdp.transition_t))
    flow.eliminate_zeros()
    return flow


def _unit(values: Array) -> Array:
    """The power of two above each row's largest number: dividing by it loses no bit. [m]"""
    largest = np.abs(values).reshape(len(values), values[0].size if len(values) else 1)
    return cast(Array, np.ldexp(1.0, np.frexp(largest.max(axis=1, initial=0.0))[1]))


def _run(highs: highspy.Highs) -> highspy.HighsModelStatus:
    """Solve from the slack basis."""
    highs.clearSolver()
    highs.run()
    return highs.getModelStatus()


def _accept(status: highspy.HighsStatus) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverFailed("HiGHS refused the program: are its numbers of one order?")
