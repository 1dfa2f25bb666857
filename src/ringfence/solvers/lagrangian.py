from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Problem, Solution
from ringfence.solvers.lp import policy_of
from ringfence.solvers.soft import COST_TOLERANCE, pair_costs, plan
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, occupancy


@dataclass(frozen=True)
class Gains:
    kp: float
    ki: float
    kd: float


@dataclass(frozen=True, eq=False)
class Mixture:
    rho: Array
    pi: Array
    value: float
    cost: float
    lam: float
    mean_lam: float
    lams: Array
    costs: Array
    plans: int


def response(mdp, c, lam):
    """action [t,s], J_c, lo, hi"""
    S, A = c.shape
    rc = np.stack([mdp.reward.ravel(), c.ravel()], axis=1)  # [S*A, 2]
    trade = np.array([1.0, -lam])
    rows = np.arange(S)
    if mdp.horizon is None:
        P = mdp.transition.toarray().reshape(S, A, S)
        act = np.zeros(S, dtype=np.intp)
        while True:
            V = np.linalg.solve(np.eye(S) - mdp.discount * P[rows, act], rc.reshape(S,A,2)[rows, act])
            Q = (rc + mdp.discount * (mdp.transition @ V)).reshape(S, A, 2)
            total = Q @ trade
            best = total.argmax(1)
            better = total[rows, best] > total[rows, act] + 1e-12
            if not better.any(): break
            act = np.where(better, best, act)
        acts = act[None]; gaps = (Q[rows, act][:, None] - Q)[None]
    else:
        T = mdp.horizon
        acts = np.empty((T, S), dtype=np.intp); gaps = np.empty((T, S, A, 2))
        V = np.zeros((S, 2))
        for t in reversed(range(T)):
            Q = (rc + mdp.transition @ V).reshape(S, A, 2)
            act = (Q @ trade).argmax(1)
            V = Q[rows, act]
            acts[t] = act; gaps[t] = V[:, None] - Q
    g_r, g_c = gaps[..., 0], gaps[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = g_r / g_c
    lo = max(0.0, edge[g_c < -1e-12].max(initial=0.0)); hi = edge[g_c > 1e-12].min(initial=np.inf)
    return acts, float(mdp.start @ V[:, 1]), min(lo, lam), max(hi, lam)


def crl(mdp: FiniteMDP, c: Array, delta: float, gains: Gains, steps: int, decay=0.0) -> Mixture:
    lows=[]; known=[]
    lams, index = [0.0] * steps, [0] * steps
    acts=[]; costs=[]
    lam = integral = 0.0
    before = float("inf")
    kp, ki, kd = gains.kp, gains.ki, gains.kd
    lo,hi,k,cost=1.,0.,0,0.
    for i in range(steps):
        if not lo <= lam <= hi:
            j = bisect_right(lows, lam) - 1
            if j >= 0 and lam <= known[j][0]:
                hi,k=known[j]; lo=lows[j]
            else:
                a,cost,lo,hi=response(mdp,c,lam)
                k=len(acts); acts.append(a); costs.append(cost)
                j = bisect_right(lows,lo)
                lows.insert(j,lo); known.insert(j,(hi,k))
            cost = costs[k]
        lams[i], index[i] = lam, k
        error = cost - delta
        eta = (i+1)**-decay
        integral = max(0.0, integral + error*eta)
        lam = max(0.0, (kp * error  + kd * max(0.0, cost - before))*eta+ ki * integral)
        before = cost
    weights = np.bincount(index, minlength=len(acts)) / steps
    rhos=[occupancy(mdp,(np.eye(c.shape[1])[a] if mdp.horizon else np.eye(c.shape[1])[a[0]])) for a in acts]
    rho = np.tensordot(weights, np.array(rhos), axes=1)
    return Mixture(rho, policy_of(rho), float((rho * mdp.reward).sum()), float((rho * c).sum()),
        lam, float(np.mean(lams)), np.array(lams), np.array(costs)[index], len(acts))


def unit_gain(mdp: FiniteMDP, c: Array) -> float:
    free = occupancy(mdp, plan(mdp, mdp.reward, 0.0)[0]); careful = occupancy(mdp, plan(mdp, -c, 0.0)[0])
    R=((free-careful)*mdp.reward).sum(); C=((free-careful)*c).sum()
    return R/C**2 if C > 1e-9 else 0.0
