"""What saturating experts determine about a constraint, and what no expert ever can.

The paper's identifiability lemma reads: |S||A| distinct optimal experts in the relative interior
of the occupancy measures, none a mixture of the others, leave c* as the only vector (up to scale)
in the null space of their occupancies' differences. It can't hold:

- Occupancies obey the flow equations, so differences span at most the tangent space of the flow
  polytope, of dimension m = |S|(|A| - 1), and its part orthogonal to c*, of dimension m - 1. The
  null space has at least |S| + 1 dimensions: constants and potential shaping never leave it.
- That no expert is a mixture of others says that they are in convex position, not that they
  are affinely independent: on a small circle there is room for any number of them.
- Optimal experts are generically not in the relative interior but on edges of the polytope.
  That does no harm: only saturation and affine span count.

What can be had: where saturating experts affinely span the facet <rho, c*> = delta of the safe
occupancies (rank m - 1), the component of c* in the tangent space up to positive scale, and its
level. That is enough to tell every safe policy from every unsafe one. With features phi [d] a
constraint on features takes the place of one on pairs, and d that of |S||A|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array

#: Singular values below this share of the largest occupancy are rounding (the LP's is 1e-9).
RANK_TOLERANCE = 1e-8

Status = Literal["determined", "not determined", "contradicted"]


# The space of occupancies


def tangent_space(
    transition: csr_array | Array,
    start: Array,
    horizon: int | None,
    discount: float = 1.0,
    phi: Array | None = None,
) -> Array:
    """An orthonormal basis [m, d] of the directions in which occupancies can differ.

    transition: P[s * A + a, s'], [S * A, S]; start [S]; phi [S * A, d] maps pairs to
    features (d = S * A without). With a horizon occupancies are summed over the steps.
    """
    deviations = _deviations(_dense(transition), start, horizon, discount)
    if phi is not None:
        deviations = deviations @ phi
    _, size, Vt = np.linalg.svd(deviations, full_matrices=False)
    return cast(Array, Vt[size > RANK_TOLERANCE * max(size.max(), 1.0)])


def never_recovered(tangent: Array) -> Array:
    """An orthonormal basis [d - m, d] of what no demonstration can reveal.

    Any of these vectors, added to a constraint, shifts J by the same amount for all policies:
    constants, potential shaping f(s) - discount * E[f(s')], pairs that can't be reached.
    """
    return null_space(tangent).T if len(tangent) else np.eye(tangent.shape[1])


def _deviations(P: Array, start: Array, horizon: int | None, discount: float) -> Array:
    """What choosing a in s once changes in the uniform policy's visits, [n, S * A].

    One row per pair that can be met (at each step t, with a horizon). Together these span the
    tangent space: a policy's difference from the uniform one is a sum of such choices.
    """
    S, pairs = len(start), len(P)
    A = pairs // S
    uniform = np.kron(np.eye(S), np.full((1, A), 1 / A))
    met = _met(P, start, horizon)
    if horizon is None:
        ahead = _visits_ahead(P, uniform, discount)
        change = np.eye(pairs) + discount * P @ ahead - np.repeat(ahead, A, axis=0)
        return cast(Array, change[np.repeat(met[0], A)])
    rows, ahead = [], np.zeros((S, pairs))
    for t in reversed(range(horizon)):
        visits = np.eye(pairs) + P @ ahead  # after (s, a), to the end
        ahead = uniform @ visits
        rows.append((visits - np.repeat(ahead, A, axis=0))[np.repeat(met[t], A)])
    return np.concatenate(rows)


def _visits_ahead(P: Array, pi: Array, discount: float) -> Array:
    """Discounted visits from each state on, [S, S * A], under pi [S, S * A]."""
    try:
        return np.asarray(np.linalg.solve(np.eye(len(pi)) - discount * pi @ P, pi), np.float64)
    except np.linalg.LinAlgError:
        raise InvalidInput(
            "visits have no finite sum: give a horizon or a discount below 1"
        ) from None


def _met(P: Array, start: Array, horizon: int | None) -> NDArray[np.bool_]:
    """The states that can be met at step t, [T, S]; without a horizon ever, [1, S]."""
    S = len(start)
    possible = (P.reshape(S, -1, S) > 0).any(axis=1)
    layers = [start > 0]
    for _ in range((horizon or S) - 1):
        layers.append(layers[-1] @ possible)
    return np.array(layers) if horizon else np.any(layers, axis=0)[None]


def _dense(transition: csr_array | Array) -> Array:
    return transition.toarray() if isinstance(transition, csr_array) else transition


# The rank condition


@dataclass(frozen=True, eq=False)
class Identification:
    """What experts that saturate one shared limit say about it.

    determined: rank == needed; `direction` [d] is the unit vector along the tangent component of
    c* and `limit` its level: a policy with moments rho is safe iff <rho, direction> <= limit.
    not determined: rank < needed; c*'s tangent component lies in the span of `undetermined`
    [m - rank, d], orthonormal, and that is all that is known. contradicted: rank > needed; the
    experts lie on no common boundary, so they can't all saturate the same limit.
    `never` [d - m, d]: see `never_recovered`. `weakest`: the smallest singular value that was
    counted; errors of the occupancies reach the direction divided by it.
    """

    status: Status
    rank: int
    needed: int
    direction: Array | None
    limit: float | None
    undetermined: Array
    never: Array
    weakest: float

    def safe(self, rho: Array) -> NDArray[np.bool_]:
        """Which policies keep the limit; rho [n, d] -> [n]."""
        if self.direction is None or self.limit is None:
            raise InvalidInput(f"no policy can be told safe: {self.describe()}")
        return rho @ self.direction <= self.limit

    def describe(self) -> str:
        """The finding in words."""
        known = f"rank {self.rank} of the {self.needed} needed"
        if self.status == "determined":
            return f"determined up to positive scale ({known})"
        if self.status == "contradicted":
            return f"contradicted ({known}): the experts don't saturate one shared limit"
        return f"not determined ({known}): {len(self.undetermined)} directions remain possible"


def identify(rho: Array, tangent: Array, unsafe: Array) -> Identification:
    """The constraint behind saturating experts, as far as they determine it.

    rho [K, d]: the experts' occupancies (or feature moments); tangent [m, d] as from
    `tangent_space`; unsafe [d]: an occupancy beyond the limit, e.g. of a policy that earns
    more than an optimal expert does. It fixes the sign, which the boundary alone can't.
    """
    if rho.ndim != 2 or not len(rho) or not rho.shape[1] == tangent.shape[1] == len(unsafe):
        raise InvalidInput("rho [K, d], tangent [m, d] and unsafe [d] don't fit, or K = 0")
    m = len(tangent)
    differences = (rho[1:] - rho[0]) @ tangent.T
    size, Vt = _spectrum(differences, m)
    rank = int((size > RANK_TOLERANCE * np.abs(rho).max()).sum())
    weakest = float(size[rank - 1]) if rank else 0.0
    left = Vt[rank:] @ tangent
    never = never_recovered(tangent)
    if rank != m - 1:
        status: Status = "contradicted" if rank >= m else "not determined"
        return Identification(status, rank, m - 1, None, None, left, never, weakest)
    beyond = float((unsafe - rho[0]) @ left[0])
    if abs(beyond) <= RANK_TOLERANCE * np.abs(rho).max():
        raise InvalidInput("the unsafe policy lies on the experts' boundary: it can't fix the sign")
    direction = left[0] * np.sign(beyond)
    limit = float((rho @ direction).mean())
    return Identification("determined", rank, m - 1, direction, limit, left[:0], never, weakest)


def _spectrum(differences: Array, m: int) -> tuple[Array, Array]:
    """All m right singular vectors [m, m] and their singular values [m] (0 where there's none)."""
    _, size, Vt = np.linalg.svd(differences, full_matrices=True)
    return np.concatenate([size, np.zeros(m - len(size))]), Vt


# The lemma as stated


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A world and experts that meet each condition of the paper's lemma, not its conclusion.

    transition [S * A, S], start [S], discount; c_star [S * A] and its limit; experts
    [S * A, S * A], one occupancy per row, each optimal for the reward r = c_star.
    """

    transition: Array
    start: Array
    discount: float
    c_star: Array
    limit: float
    experts: Array

    @property
    def null_space(self) -> Array:
        """An orthonormal basis of what the lemma says is the line of c_star, [n, S * A]."""
        return null_space(np.diff(self.experts, axis=0), rcond=RANK_TOLERANCE).T

    @property
    def impostor(self) -> Array:
        """The constant constraint, [S * A]: in the null space too, though it says nothing."""
        return np.ones_like(self.c_star)


def lemma_counterexample(planar: bool = False) -> Counterexample:
    """|S||A| = 6 experts around the uniform policy, inside the facet <rho, c_star> = limit.

    They are the corners of an octahedron in the facet's three dimensions: the tangent component
    of c_star is determined, yet the null space has three dimensions. With `planar` they are the
    corners of a hexagon, and not even the tangent component is determined.
    """
    S, A, discount = 2, 3, 0.5
    stay, move, toss = [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]
    P = np.array([stay, move, toss, move, stay, toss])
    start = np.array([0.5, 0.5])
    c_star = np.array([0.0, 0.5, 1.0, 0.0, 1.0, 0.25])
    uniform = np.kron(np.eye(S), np.full((1, A), 1 / A))
    centre = start @ _visits_ahead(P, uniform, discount)
    tangent = tangent_space(P, start, None, discount)
    facet = null_space((tangent @ c_star)[None]).T @ tangent  # [3, 6], orthonormal
    around = _hexagon() if planar else np.vstack([np.eye(3), -np.eye(3)])
    experts = centre + 0.5 * centre.min() * around @ facet
    return Counterexample(P, start, discount, c_star, float(centre @ c_star), experts)


def _hexagon() -> Array:
    angle = np.arange(6) * np.pi / 3
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(6)], axis=1)


def mixture_margin(points: Array) -> float:
    """How far the points [n, d] are from one being a mixture of the others (0: one is).

    For each point an LP: the widest gap, along a w in [-1, 1]^d, between it and the rest.
    """
    return min(_separation(np.delete(points, k, axis=0) - points[k]) for k in range(len(points)))


def _separation(others: Array) -> float:
    """max_w min_j -w . others[j], at least 0 (w = 0)."""
    n, d = others.shape
    found = linprog(
        c=np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([others, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, None)],
    )
    if found.fun is None:
        raise SolverFailed(f"the separation program failed: {found.message}")
    return max(0.0, -float(found.fun))
