"""Algorithm 1 (CRL) on finite worlds: a policy player against a multiplier.

    lam_1 = 0;  for i = 1..N:   pi_i = argmax_pi J(pi, r - lam_i c)
                                lam_{i+1} from lam_i and e_i = J(pi_i, c) - delta
    return Unif(pi_1..pi_N)

The multiplier is updated by a PID controller (Stooke et al., 2020),

    I_i = [I_{i-1} + e_i]^+,   lam_{i+1} = [kp e_i + ki I_i + kd [J(pi_i, c) - J(pi_{i-1}, c)]^+]^+

of which the paper's classical gradient step lam <- [lam + eta e]^+ is the case ki = eta,
kp = kd = 0. The mixture converges, no single pi_i does: best responses are deterministic, and
where the limit binds they jump between two policies, one above the limit and one below it.

J(pi_lam, c) falls with lam, in steps. So where the two nearest multipliers that were planned for
have the same cost, their policy is a best response to every multiplier between them, and nothing
need be planned: a run of 20,000 steps plans some 30 times.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.lp import policy_of
from ringfence.solvers.soft import COST_TOLERANCE, pair_costs, plan
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, occupancy


@dataclass(frozen=True)
class Gains:
    """Of the multiplier's controller, in units of the world's `unit_gain`."""

    kp: float
    ki: float
    kd: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """Unif(pi_1..pi_N). T is absent in the shapes of a discounted problem.

    rho [T, S, A]: the mean occupancy; pi [T, S, A]: the policy that has it; value: J(pi, r);
    cost: J(pi, c); lam: the multiplier after the last step; mean_lam: of lam_1..lam_N;
    lams [N]: their course; costs [N]: that of J(pi_i, c); plans: how often a plan was made.
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


@dataclass
class BestResponse:
    """RL(r - lam c), remembered: `lams` are sorted, the other lists belong to them."""

    mdp: FiniteMDP
    c: Array
    lams: list[float] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    rhos: list[Array] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def __call__(self, lam: float) -> int:
        k = bisect_left(self.lams, lam)
        if k < len(self.lams):
            above = self.at[k]
            if self.lams[k] == lam:
                return above
            if k > 0 and abs(self.costs[self.at[k - 1]] - self.costs[above]) <= COST_TOLERANCE:
                return above
        rho = occupancy(self.mdp, plan(self.mdp, self.mdp.reward - lam * self.c, 0.0)[0])
        self.rhos.append(rho)
        self.costs.append(float((rho * self.c).sum()))
        self.lams.insert(k, lam)
        self.at.insert(k, len(self.rhos) - 1)
        return len(self.rhos) - 1


def crl(mdp: FiniteMDP, c: Array, delta: float, gains: Gains, steps: int) -> Mixture:
    respond = BestResponse(mdp, c)
    lams, index = [0.0] * steps, [0] * steps
    lam = integral = 0.0
    before = float("inf")
    kp, ki, kd = gains.kp, gains.ki, gains.kd
    for i in range(steps):
        k = respond(lam)
        lams[i], index[i] = lam, k
        cost = respond.costs[k]
        error = cost - delta
        integral = max(0.0, integral + error)
        lam = max(0.0, kp * error + ki * integral + kd * max(0.0, cost - before))
        before = cost
    weights = np.bincount(index, minlength=len(respond.rhos)) / steps
    rho = np.tensordot(weights, np.array(respond.rhos), axes=1)
    return Mixture(rho, policy_of(rho), float((rho * mdp.reward).sum()), float((rho * c).sum()),
        lam, float(np.mean(lams)), np.array(lams), np.array(respond.costs)[index], len(respond.rhos))


def unit_gain(mdp: FiniteMDP, c: Array) -> float:
    def span(x):
        a=plan(mdp,x,0.0)[1]; b=plan(mdp,-x,0.0)[1]
        if a.ndim==2: a,b=a[0],b[0]
        return float(mdp.start@(a+b))
    return span(mdp.reward)/span(c)**2
