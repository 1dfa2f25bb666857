"""The entropy-regularised constrained solver of finite worlds, by dynamic programming.

    max_pi  J(pi, r) + temperature * H(pi)   s.t.  J(pi, c) <= delta

Its dual in the one multiplier lam is convex and J(pi_lam, c) falls with lam, so lam is found by
bisection. A limit that equals the least achievable cost (delta = 0 in the multi-task game) has
no finite multiplier: there the policy is soft-optimal among the actions that keep the cost
least, and lam is infinite. A low temperature means: random among equals. Temperature 0 is
the plain maximum, with ties broken by the lowest action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.solver import Exact
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, met, occupancy

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
        pi, lam = respond(task.mdp, cost, problem.delta, self.temperature)
        done = met(task.mdp, pi)
        return Solution(done.policy(), lam, behaviour(task, done.per_pair), env_steps=0)


def pair_costs(task: FiniteTask, problem: Problem) -> Array:
    """c[s, a] of the problem's constraint on the task's features."""
    cost = problem.constraint.cost(task.phi.reshape(-1, len(task.features)))
    return cost.reshape(task.mdp.reward.shape)


def solve(mdp: FiniteMDP, c: Array, delta: float, temperature: float) -> tuple[Array, float]:
    """The policy pi[t, s, a] (or pi[s, a]) and multiplier of `respond`."""
    pi, lam = respond(mdp, c, delta, temperature)
    return whole(pi), lam


def respond(
    mdp: FiniteMDP, c: Array, delta: float, temperature: float
) -> tuple[Array | Plan, float]:
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
        return best(mdp, temperature), 0.0
    if delta <= least + COST_TOLERANCE:
        return best(mdp, temperature, _best_actions(mdp, -c, to_go)), float("inf")
    return _bisect(mdp, c, delta, temperature)


#: Of each problem that is still in use, by temperature: the same in every iteration of a game.
_FREE: WeakKeyDictionary[FiniteMDP, dict[float, Array]] = WeakKeyDictionary()


def free_visits(mdp: FiniteMDP, temperature: float) -> Array:
    """How often the policy that nothing limits meets each pair, [s, a]."""
    known = _FREE.setdefault(mdp, {})
    if temperature not in known:
        known[temperature] = met(mdp, best(mdp, temperature)).per_pair
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


#: Which actions a plan may use, [s, a]; one for each step, [t][s, a]; None: all.
Mask = NDArray[np.bool_]
Allowed = Mask | Sequence[Mask] | None


@dataclass(frozen=True, eq=False)
class Plan:
    """The (soft-)optimal policy of a finite horizon, by its values V[t, s], with V[T] = 0.

    Its actions are worked out where they are asked for, `plan[t, states]`: of a map's T * S pairs
    an episode meets a few, and to write down pi[t, s, a] takes longer than to plan.
    """

    mdp: FiniteMDP
    temperature: float
    allowed: Allowed
    V: Array

    def __getitem__(self, place: tuple[int, int | NDArray[np.intp]]) -> Array:
        """pi[a] in a state at time t, pi[n, a] in several."""
        t, states = place[0], np.atleast_1d(place[1])
        mask = _at(self.allowed, t)
        paid = _paid(self.mdp.reward[states], None if mask is None else mask[states])
        Q = paid + self.mdp.expected(self.V[t + 1], states)
        return _policy(Q, self.temperature).reshape(*np.shape(place[1]), -1)

    @property
    def whole(self) -> Array:
        every = np.arange(self.mdp.num_states)
        return np.stack([self[t, every] for t in range(len(self.V) - 1)])


def whole(pi: Array | Plan) -> Array:
    """pi[t, s, a] (or pi[s, a]), written down."""
    return pi.whole if isinstance(pi, Plan) else pi


def best(mdp: FiniteMDP, temperature: float, allowed: Allowed = None) -> Array | Plan:
    """The policy of `plan` for the problem's own reward."""
    if mdp.horizon is None:
        return plan(mdp, mdp.reward, temperature, allowed)[0]
    V = np.zeros((mdp.horizon + 1, mdp.num_states))
    _sweep(mdp, mdp.reward, temperature, allowed, V)
    return Plan(mdp, temperature, allowed, V)


def plan(
    mdp: FiniteMDP, r: Array, temperature: float, allowed: Allowed = None
) -> tuple[Array, Array]:
    """Backward induction: the (soft-)optimal policy and value for reward r[s, a].

    Finite horizon: pi[t, s, a], V[t, s]; discounted: pi[s, a], V[s]. `allowed` leaves only some
    actions; a state without any has the value -inf.
    """
    if mdp.horizon is None:
        return _plan_discounted(mdp, r, temperature, allowed)
    V = np.zeros((mdp.horizon + 1, mdp.num_states))
    pi = np.empty((mdp.horizon, *r.shape))
    _sweep(mdp, r, temperature, allowed, V, pi)
    return pi, V[:-1]


def values(mdp: FiniteMDP, r: Array, allowed: Allowed = None) -> Array:
    """The optimal value of `plan` at temperature 0, without its policy: V[t, s] or V[s]."""
    if mdp.horizon is None:
        return plan(mdp, r, 0.0, allowed)[1]
    V = np.zeros((mdp.horizon + 1, mdp.num_states))
    _sweep(mdp, r, 0.0, allowed, V)
    return V[:-1]


def _sweep(
    mdp: FiniteMDP,
    r: Array,
    temperature: float,
    allowed: Allowed,
    V: Array,
    pi: Array | None = None,
) -> None:
    """Fill V[t, s] below V[T], and pi[t, s, a] where it is wanted, from the last step back."""
    mask = _at(allowed, len(V) - 2)
    paid = _paid(r, mask)
    for t in reversed(range(len(V) - 1)):
        if (now := _at(allowed, t)) is not mask:
            mask, paid = now, _paid(r, now)
        elif t + 2 < len(V) and np.array_equal(V[t + 1], V[t + 2]):
            V[t] = V[t + 1]  # where a step changes nothing, those before it don't, either
            if pi is not None:
                pi[t] = pi[t + 1]
            continue
        Q = paid + mdp.expected(V[t + 1])
        if pi is not None:
            pi[t] = _policy(Q, temperature)
        V[t] = _soft_maximum(Q, temperature)


def _at(allowed: Allowed, t: int) -> Mask | None:
    if allowed is None or (isinstance(allowed, np.ndarray) and allowed.ndim == 2):
        return allowed
    return allowed[t]


def _paid(r: Array, mask: Mask | None) -> Array:
    """r[a, s], with -inf where an action is not allowed."""
    return np.ascontiguousarray((r if mask is None else np.where(mask, r, -np.inf)).T)


def _plan_discounted(
    mdp: FiniteMDP, r: Array, temperature: float, allowed: Allowed
) -> tuple[Array, Array]:
    if mdp.discount == 1:
        raise InvalidInput("an endless problem needs a discount below 1 here; the LP can solve it")
    V, paid = np.zeros(mdp.num_states), _paid(r, _at(allowed, 0))
    for _ in range(DISCOUNTED_SWEEPS):
        Q = paid + mdp.discount * mdp.expected(V)
        new = _soft_maximum(Q, temperature)
        settled = np.array_equal(np.isfinite(new), np.isfinite(V)) and np.allclose(
            new[np.isfinite(new)], V[np.isfinite(new)], rtol=0, atol=1e-13
        )
        V = new
        if settled:
            return _policy(Q, temperature), V
    raise SolverFailed(f"value iteration did not settle in {DISCOUNTED_SWEEPS} sweeps")


# Action values are Q[a, s] here: numpy is slow along rows as short as those of Q[s, a].


def _soft_maximum(Q: Array, temperature: float) -> Array:
    """V[s] = temperature * log(sum_a exp(Q / temperature)); -inf where no action is left."""
    top: Array = Q.max(axis=0)
    if temperature == 0:
        return top
    alive = np.isfinite(top)
    _, total = _weights(Q, top, alive, temperature)
    return np.where(alive, top + temperature * np.log(total), -np.inf)


def _policy(Q: Array, temperature: float) -> Array:
    """pi[s, a] proportional to exp(Q / temperature); at temperature 0 the first of the best."""
    if temperature == 0:
        pi = np.zeros(Q.shape[::-1])
        pi[np.arange(len(pi)), Q.argmax(axis=0)] = 1.0
        return pi
    top = Q.max(axis=0)
    alive = np.isfinite(top)
    weight, total = _weights(Q, top, alive, temperature)
    pi = (weight / total).T
    pi[~alive] = 1 / len(Q)  # never reached: any distribution will do
    return pi


def _weights(Q: Array, top: Array, alive: Mask, temperature: float) -> tuple[Array, Array]:
    """exp((Q - top) / temperature) [a, s] and its sum over actions [s], 1 where none is left."""
    weight = Q - (top if alive.all() else np.where(alive, top, 0.0))
    weight /= temperature
    np.exp(weight, out=weight)
    # From 8 numbers on numpy adds along rows in another order, which these sums have kept.
    total = weight.sum(axis=0) if len(weight) < 8 else np.ascontiguousarray(weight.T).sum(axis=1)
    total[~alive] = 1.0
    return weight, total


def _best_actions(mdp: FiniteMDP, r: Array, V: Array) -> Mask | list[Mask]:
    """The actions that lose nothing of the optimal value V, [t][s, a] or [s, a]."""
    paid = _paid(r, None)
    if mdp.horizon is None:
        Q = paid + mdp.discount * mdp.expected(V)
        return (V - COST_TOLERANCE <= Q).T
    layers = np.vstack([V, np.zeros(mdp.num_states)])
    changes = [*(layers[:-1] != layers[1:]).any(axis=1), True]
    masks: list[Mask] = []
    for t in reversed(range(mdp.horizon)):
        if changes[t] or changes[t + 1]:
            masks.append((layers[t] - COST_TOLERANCE <= paid + mdp.expected(layers[t + 1])).T)
        else:
            masks.append(masks[-1])
    return masks[::-1]


def _initial(V: Array) -> Array:
    return V[0] if V.ndim == 2 else V


def _value(mdp: FiniteMDP, pi: Array, c: Array) -> float:
    return float((occupancy(mdp, pi) * c).sum())
