"""The entropy-regularised constrained solver of finite worlds, by dynamic programming.

    max_pi  J(pi, r) + temperature * H(pi)   s.t.  J(pi, c) <= delta

Its dual in the one multiplier lam is convex and J(pi_lam, c) falls with lam, so lam is found by
bisection. A limit that equals the least achievable cost (delta = 0 in the multi-task game) has
no finite multiplier: there the policy is soft-optimal among the actions that keep the cost
least, and lam is infinite. A low temperature means: random among equals. Temperature 0 is
the plain maximum, with ties broken by the lowest action.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.solver import Exact
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, occupancy, stored

#: Costs closer than this are equal: rounding in sums over an episode.
COST_TOLERANCE = 1e-9
#: Halvings of the multiplier's interval: double precision has no more to give.
BISECTIONS = 60
LARGEST_MULTIPLIER = 1e12
DISCOUNTED_SWEEPS = 100_000


@dataclass(frozen=True)
class Config:
    """Finite worlds, entropy-regularised: random among equals.

    temperature: of the entropy bonus, in units of reward; 0 is the plain maximum.
    """

    kind: Literal["soft"] = "soft"
    temperature: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < np.inf:
            raise InvalidInput(f"temperature must be at least 0, got {self.temperature}")


def make(config: Config) -> Exact:
    return Exact(SoftSolver(config.temperature))


@dataclass(frozen=True)
class SoftSolver:
    """Solves a `Problem` on a finite task. `temperature` in units of reward."""

    temperature: float = 0.05

    def __call__(self, problem: Problem) -> Solution:
        task = problem.task
        if not isinstance(task, FiniteTask):
            raise InvalidInput(f"task {task.name!r} is not finite: the soft solver can't solve it")
        cost = pair_costs(task, problem)
        pi, lam = solve(task.mdp, cost, problem.delta, self.temperature)
        rho = occupancy(task.mdp, pi)
        return Solution(stored(pi, rho), lam, behaviour(task, rho), env_steps=0)


def pair_costs(task: FiniteTask, problem: Problem) -> Array:
    """c[s, a] of the problem's constraint on the task's features."""
    cost = problem.constraint.cost(task.phi.reshape(-1, len(task.features)))
    return cost.reshape(task.mdp.reward.shape)


def solve(mdp: FiniteMDP, c: Array, delta: float, temperature: float) -> tuple[Array, float]:
    """The policy and multiplier of the regularised problem for cost c[s, a] and limit delta."""
    if not np.isfinite(c).all() or not np.isfinite(delta):
        raise InvalidInput("cost and limit must be finite")
    to_go = values(mdp, -c)
    least = -float(mdp.start @ _initial(to_go))
    if delta < least - COST_TOLERANCE:
        raise InfeasibleLimit(
            f"no policy keeps the cost within {delta:.6g}: the least achievable is {least:.6g}"
        )
    if float((free_visits(mdp, temperature) * c).sum()) <= delta + COST_TOLERANCE:
        return plan(mdp, mdp.reward, temperature)[0], 0.0
    if delta <= least + COST_TOLERANCE:
        keeps_least = _best_actions(mdp, -c, to_go)
        return plan(mdp, mdp.reward, temperature, keeps_least)[0], float("inf")
    return _bisect(mdp, c, delta, temperature)


#: Of each problem that is still in use, by temperature: the same in every iteration of a game.
_FREE: WeakKeyDictionary[FiniteMDP, dict[float, Array]] = WeakKeyDictionary()


def free_visits(mdp: FiniteMDP, temperature: float) -> Array:
    """How often the policy that nothing limits meets each pair, [s, a]."""
    known = _FREE.setdefault(mdp, {})
    if temperature not in known:
        rho = occupancy(mdp, plan(mdp, mdp.reward, temperature)[0])
        known[temperature] = rho.sum(axis=0) if rho.ndim == 3 else rho
    return known[temperature]


def _bisect(mdp: FiniteMDP, c: Array, delta: float, temperature: float) -> tuple[Array, float]:
    """The smallest multiplier whose policy keeps the limit, and that policy."""

    def response(lam: float) -> tuple[Array, bool]:
        pi, _ = plan(mdp, mdp.reward - lam * c, temperature)
        return pi, _value(mdp, pi, c) <= delta

    low, high = 0.0, 1.0
    best, safe = response(high)
    while not safe:
        low, high = high, 2 * high
        if high > LARGEST_MULTIPLIER:
            raise SolverFailed(
                f"no multiplier below {LARGEST_MULTIPLIER:g} keeps cost <= {delta:g}"
            )
        best, safe = response(high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        pi, safe = response(middle)
        if safe:
            high, best = middle, pi
        else:
            low = middle
    return best, high


def plan(
    mdp: FiniteMDP,
    r: Array,
    temperature: float,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[Array, Array]:
    """Backward induction: the (soft-)optimal policy and value for reward r[s, a].

    Finite horizon: pi[t, s, a], V[t, s]; discounted: pi[s, a], V[s]. `allowed` [s, a] (or
    [t, s, a]) leaves only some actions; a state without any has the value -inf.
    """
    if mdp.horizon is None:
        return _plan_discounted(mdp, r, temperature, allowed)
    T, (S, A) = mdp.horizon, r.shape
    pi, V = np.empty((T, S, A)), np.empty((T, S))
    ahead = np.zeros(S)
    for t in reversed(range(T)):
        mask = allowed if allowed is None or allowed.ndim == 2 else allowed[t]
        pi[t], V[t] = _backup(_q_values(mdp, r, ahead, mask), temperature)
        ahead = V[t]
    return pi, V


def values(mdp: FiniteMDP, r: Array) -> Array:
    """The optimal value of `plan` at temperature 0, without its policy: V[t, s] or V[s]."""
    if mdp.horizon is None:
        return plan(mdp, r, 0.0)[1]
    V = np.empty((mdp.horizon, mdp.num_states))
    ahead = np.zeros(mdp.num_states)
    for t in reversed(range(mdp.horizon)):
        ahead = V[t] = _highest(_q_values(mdp, r, ahead, None))
    return V


def _plan_discounted(
    mdp: FiniteMDP, r: Array, temperature: float, allowed: NDArray[np.bool_] | None
) -> tuple[Array, Array]:
    if mdp.discount == 1:
        raise InvalidInput("an endless problem needs a discount below 1 here; the LP can solve it")
    V = np.zeros(mdp.num_states)
    for _ in range(DISCOUNTED_SWEEPS):
        pi, new = _backup(_q_values(mdp, r, V, allowed), temperature)
        settled = np.array_equal(np.isfinite(new), np.isfinite(V)) and np.allclose(
            new[np.isfinite(new)], V[np.isfinite(new)], rtol=0, atol=1e-13
        )
        V = new
        if settled:
            return pi, V
    raise SolverFailed(f"value iteration did not settle in {DISCOUNTED_SWEEPS} sweeps")


def _q_values(mdp: FiniteMDP, r: Array, ahead: Array, allowed: NDArray[np.bool_] | None) -> Array:
    """Q[s, a] = r + discount * P V, with -inf where a step can lead to a state of value -inf."""
    dead = np.isneginf(ahead)
    Q = r + mdp.discount * (mdp.transition @ np.where(dead, 0.0, ahead)).reshape(r.shape)
    if dead.any():
        Q[(mdp.transition @ dead.astype(float)).reshape(r.shape) > 0] = -np.inf
    if allowed is not None:
        Q[~allowed] = -np.inf
    return Q


def _backup(Q: Array, temperature: float) -> tuple[Array, Array]:
    """pi[s, a] proportional to exp(Q / temperature), and the soft maximum V[s]."""
    top = _highest(Q)
    alive = np.isfinite(top)
    gap = Q - np.where(alive, top, 0.0)[:, None]
    if temperature == 0:
        pi = np.zeros_like(Q)
        pi[np.arange(len(Q)), Q.argmax(axis=1)] = 1.0
        return pi, top
    weight = np.exp(gap / temperature)
    total = weight.sum(axis=1)
    total[~alive] = 1.0
    V = np.where(alive, top + temperature * np.log(total), -np.inf)
    pi = weight / total[:, None]
    pi[~alive] = 1 / Q.shape[1]  # never reached: any distribution will do
    return pi, V


def _highest(Q: Array) -> Array:
    """Q.max(axis=1), action by action: numpy's own is slow where rows are as short as here."""
    return reduce(np.maximum, Q.T)


def _best_actions(mdp: FiniteMDP, r: Array, V: Array) -> NDArray[np.bool_]:
    """The actions that lose nothing of the optimal value V, [t, s, a] or [s, a]."""
    if mdp.horizon is None:
        return V[:, None] - COST_TOLERANCE <= _q_values(mdp, r, V, None)
    ahead = np.vstack([V[1:], np.zeros(mdp.num_states)])
    Q = np.stack([_q_values(mdp, r, later, None) for later in ahead])
    return V[:, :, None] - COST_TOLERANCE <= Q


def _initial(V: Array) -> Array:
    return V[0] if V.ndim == 2 else V


def _value(mdp: FiniteMDP, pi: Array, c: Array) -> float:
    return float((occupancy(mdp, pi) * c).sum())
