"""Algorithm 1 (CRL) on finite worlds: a policy player against a multiplier.

    lam_1 = 0;   for i in 1..N:   pi_i = RL(r - lam_i c),   lam_{i+1} from e_i = J(pi_i, c) - delta
    return Unif(pi_1..pi_N)

The multiplier is moved by a PID controller (Stooke et al., 2020) with step sizes eta_i,

    I_i = [I_{i-1} + eta_i e_i]^+
    lam_{i+1} = [ki I_i + eta_i (kp e_i + kd [J(pi_i, c) - J(pi_{i-1}, c)]^+)]^+

The paper's classical gradient, lam <- [lam + eta_i e_i]^+, is its case kp = kd = 0. The steps
shrink each time the cost crosses the limit (Kesten, 1958), eta_i = (1 + crossings)^-fall: large on
the way to lam*, small around it. It is the mixture that converges, no pi_i does: best responses
are deterministic, and where the limit binds they jump between policies above and below it.

J(pi, r) - lam J(pi, c) is linear in lam, so a policy is the best response on an interval of
multipliers. `best_response` returns that interval, and no policy is planned for twice: a run of
10,000 steps on a small world plans about 4 times, and every other step takes a microsecond.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.lp import policy_of
from ringfence.solvers.soft import COST_TOLERANCE, pair_costs, plan, solve
from ringfence.solvers.solver import Exact
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, occupancy, stored

#: Differences of values below this are rounding: they don't make an action better, and costs
#: this close give no multiplier at which two actions change places.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Gains:
    """Of the multiplier's controller. `fall` = 0 keeps them constant, as Stooke et al. do."""

    kp: float
    ki: float
    kd: float
    fall: float = 1.0


#: Gains in units of R / C^2 (see `scaled`) and the number of steps with which the mixture's
#: reward and cost are within 1% of the LP's own. The worst of 4,000 random problems (limits at
#: 0.1 to 1.1 of the way from the least cost to the best policy's): reward 0.10%, cost 0.24% by
#: GRADIENT, 0.10% and 0.26% by PID. Constant gains have no good size: with ki = 0.3 the cost was
#: up to 14% off (the integral is cut at 0 where lam* is small against one step), with ki = 0.03
#: cost and reward up to 8% (lam* is reached too late).
GRADIENT = Gains(kp=0.0, ki=2.0, kd=0.0)
PID = Gains(kp=0.5, ki=2.0, kd=0.5)
STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Mixture:
    """Unif(pi_1..pi_N). T is absent in the shapes of a discounted problem.

    rho [T, S, A]: the mean occupancy; pi [T, S, A]: the policy that has it; value: J(pi, r);
    cost: J(pi, c); lam: the multiplier after the last step; mean_lam: that of lam_1..lam_N;
    lams [N]: lam_1..lam_N; costs [N]: J(pi_i, c); plans: how many policies were planned.
    """

    rho: Array
    pi: Array
    value: float
    cost: float
    lam: float
    mean_lam: float
    lams: Array
    costs: Array
    plans: int


@dataclass(frozen=True)
class Config:
    """Finite worlds, by Algorithm 1: policies planned under a multiplier that follows their cost.

    multiplier: moved by gradient ascent (the paper's classical one) or by a PID controller; steps:
    policies that are planned and mixed.
    """

    kind: Literal["lagrangian"] = "lagrangian"
    multiplier: Literal["gradient", "pid"] = "gradient"
    steps: int = STEPS


def make(config: Config) -> Exact:
    return Exact(LagrangianSolver(PID if config.multiplier == "pid" else GRADIENT, config.steps))


@dataclass(frozen=True)
class LagrangianSolver:
    """Solves a `Problem` on a finite task by Algorithm 1; its multiplier is the mean one."""

    gains: Gains = GRADIENT
    steps: int = STEPS

    def __call__(self, problem: Problem) -> Solution:
        task = problem.task
        if not isinstance(task, FiniteTask):
            raise InvalidInput(f"task {task.name!r} is not finite: Algorithm 1 can't solve it here")
        c = pair_costs(task, problem)
        gains = scaled(self.gains, task.mdp, c)
        mixture = crl(task.mdp, c, problem.delta, gains, self.steps)
        policy = stored(mixture.pi, mixture.rho)
        return Solution(policy, mixture.mean_lam, behaviour(task, mixture.rho), env_steps=0)


def scaled(gains: Gains, mdp: FiniteMDP, c: Array) -> Gains:
    """The gains in the world's own units, R / C^2.

    R and C are the reward and the cost between the best policy and the best one of least cost.
    Every e_i lies in a range of length C, and multipliers are of the size of R / C.
    """
    best = occupancy(mdp, plan(mdp, mdp.reward, 0.0)[0])
    careful = occupancy(mdp, solve(mdp, c, least_cost(mdp, c), 0.0)[0])
    R = float(((best - careful) * mdp.reward).sum())
    C = float(((best - careful) * c).sum())
    if C <= COST_TOLERANCE:
        return gains  # the best policy is of least cost: lam stays 0
    # Where all rewards are the same any multiplier above 0 will do.
    unit = (R if R > COST_TOLERANCE else 1.0) / C**2
    return Gains(unit * gains.kp, unit * gains.ki, unit * gains.kd, gains.fall)


def crl(mdp: FiniteMDP, c: Array, delta: float, gains: Gains, steps: int) -> Mixture:
    """Algorithm 1 for cost c[s, a] and limit delta, with gains in reward per squared cost."""
    _check(mdp, c, delta, steps)
    kp, ki, kd = gains.kp, gains.ki, gains.kd
    known = _Responses(mdp, c)
    lams, played = [0.0] * steps, [0] * steps
    lam = integral = 0.0
    before = float("inf")  # J(pi_0, c): nothing has risen in the first step
    eta, crossings, above = 1.0, 0, True
    for i in range(steps):
        lams[i], played[i] = lam, known.index(lam)
        cost = known.costs[played[i]]
        error, rise = cost - delta, max(0.0, cost - before)
        if (error > 0) != above:
            above, crossings = not above, crossings + 1
            eta = (1 + crossings) ** -gains.fall
        integral = max(0.0, integral + eta * error)
        lam = max(0.0, ki * integral + eta * (kp * error + kd * rise))
        before = cost
    share = np.bincount(played) / steps
    occupancies = [occupancy(mdp, pi) for pi in known.policies]
    rho = np.tensordot(share, occupancies, axes=1)
    return Mixture(
        rho=rho,
        pi=policy_of(rho),
        value=float((rho * mdp.reward).sum()),
        cost=float((rho * c).sum()),
        lam=lam,
        mean_lam=float(np.mean(lams)),
        lams=np.array(lams),
        costs=np.array(known.costs)[played],
        plans=len(known.costs),
    )


def _check(mdp: FiniteMDP, c: Array, delta: float, steps: int) -> None:
    if c.shape != mdp.reward.shape:
        raise InvalidInput(f"cost has shape {c.shape}, the reward {mdp.reward.shape}")
    if not (np.isfinite(c).all() and np.isfinite(delta)):
        raise InvalidInput("cost and limit must be finite")
    if steps < 1:
        raise InvalidInput(f"Algorithm 1 needs at least one step, got {steps}")
    least = least_cost(mdp, c)
    if delta < least - COST_TOLERANCE:
        raise InfeasibleLimit(
            f"no policy keeps the cost within {delta:.6g}: the least achievable is {least:.6g}"
        )


def least_cost(mdp: FiniteMDP, c: Array) -> float:
    """min_pi J(pi, c)."""
    V = plan(mdp, -c, 0.0)[1]
    return -float(mdp.start @ (V[0] if V.ndim == 2 else V))


class _Responses:
    """The best responses found so far, and the intervals of multipliers that they answer."""

    def __init__(self, mdp: FiniteMDP, c: Array) -> None:
        self._mdp, self._c = mdp, c
        self.policies: list[Array] = []
        self.costs: list[float] = []
        self._lows: list[float] = []  # sorted
        self._answers: list[tuple[float, int]] = []  # (high, index) of each interval in _lows

    def index(self, lam: float) -> int:
        """Which policy answers lam."""
        place = bisect_right(self._lows, lam)
        if place and lam <= self._answers[place - 1][0]:
            return self._answers[place - 1][1]
        pi, cost, low, high = best_response(self._mdp, self._c, lam)
        self.policies.append(pi)
        self.costs.append(cost)
        place = bisect_right(self._lows, low)
        self._lows.insert(place, low)
        self._answers.insert(place, (high, len(self.costs) - 1))
        return len(self.costs) - 1


def best_response(mdp: FiniteMDP, c: Array, lam: float) -> tuple[Array, float, float, float]:
    """RL(r - lam c): the policy, its J(pi, c), and the multipliers [low, high] that it is best for.

    Reward and cost are valued apart, Q[s, a, :] = (Q_r, Q_c). An action a that is not taken loses
    V_r - Q_r - mu (V_c - Q_c) under the multiplier mu, which must not become negative anywhere.
    """
    trade = np.array([1.0, -lam])
    pairs = np.stack([mdp.reward, c], axis=-1)
    respond = _respond_discounted if mdp.horizon is None else _respond
    actions, loss, V = respond(mdp, pairs, trade)
    in_reward, in_cost = loss[..., 0], loss[..., 1]
    up, down = in_cost > ROUNDING, in_cost < -ROUNDING
    high = (in_reward[up] / in_cost[up]).min(initial=np.inf)
    low = (in_reward[down] / in_cost[down]).max(initial=0.0)
    pi = np.eye(mdp.num_actions)[actions]
    return pi, float(mdp.start @ V[:, 1]), min(float(low), lam), max(float(high), lam)


Best = tuple[NDArray[np.intp], Array, Array]


def _respond(mdp: FiniteMDP, pairs: Array, trade: Array) -> Best:
    """Backward induction: actions [T, S], their lead over each action [T, S, A, 2], V_0 [S, 2]."""
    assert mdp.horizon is not None
    S, A, _ = pairs.shape
    states = np.arange(S)
    actions = np.empty((mdp.horizon, S), dtype=np.intp)
    loss = np.empty((mdp.horizon, S, A, 2))
    V = np.zeros((S, 2))
    for t in reversed(range(mdp.horizon)):
        Q = pairs + (mdp.transition @ V).reshape(pairs.shape)
        actions[t] = (Q @ trade).argmax(axis=1)
        V = Q[states, actions[t]]
        loss[t] = V[:, None] - Q
    return actions, loss, V


def _respond_discounted(mdp: FiniteMDP, pairs: Array, trade: Array) -> Best:
    """Policy iteration: actions [S], their lead over each action [S, A, 2], V [S, 2]."""
    S, A, _ = pairs.shape
    states, P = np.arange(S), mdp.transition.toarray().reshape(S, A, S)
    actions = np.zeros(S, dtype=np.intp)
    while True:
        here = np.eye(S) - mdp.discount * P[states, actions]
        V = np.asarray(np.linalg.solve(here, pairs[states, actions]), dtype=np.float64)
        Q: Array = pairs + mdp.discount * (mdp.transition @ V).reshape(pairs.shape)
        total = Q @ trade
        best = total.argmax(axis=1)
        better = total[states, best] > total[states, actions] + ROUNDING
        if not better.any():
            return actions, V[:, None] - Q, V
        actions = np.where(better, best, actions)
