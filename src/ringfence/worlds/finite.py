"""Finite Markov decision processes, and what a policy does in them, exactly.

Arrays are indexed P[s * A + a, s'], r[s, a], pi[t, s, a] (finite horizon) or pi[s, a]
(discounted), rho[t, s, a] or rho[s, a].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature, Trajectory

#: Visits per episode below this are rounding, not behaviour: a soft-optimal policy gives
#: every action some probability, however absurd. One visit in a million episodes.
NEGLIGIBLE_VISITS = 1e-6
#: How likely an episode may be to meet a state, at its time, for which no action is stored.
NOT_STORED = 1e-6


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """<S, A, P, r, T> with a start distribution.

    transition: P [S * A, S], rows sum to 1; a row that sums to less ends the episode with the
    rest of its probability. start [S]; reward [S, A]. Either `horizon` T is given (steps
    t = 0..T-1 are paid, discount must be 1) or `horizon` is None and `discount` in (0, 1]
    weighs step t with discount^t.
    """

    transition: csr_array
    start: Array
    reward: Array
    horizon: int | None
    discount: float = 1.0

    def __post_init__(self) -> None:
        S, A = self.reward.shape
        if self.transition.shape != (S * A, S):
            raise InvalidInput(
                f"transition has shape {self.transition.shape}, but reward [{S}, {A}] needs "
                f"({S * A}, {S}): one row per state-action pair"
            )
        if self.start.shape != (S,) or abs(self.start.sum() - 1) > 1e-9 or self.start.min() < 0:
            raise InvalidInput(f"start must be a distribution over {S} states")
        if not (np.isfinite(self.reward).all() and np.isfinite(self.transition.data).all()):
            raise InvalidInput("reward and transition must be finite: found NaN or infinity")
        rows = np.asarray(self.transition.sum(axis=1)).ravel()
        if self.transition.data.min(initial=0) < 0 or rows.max() > 1 + 1e-9:
            worst = int(rows.argmax())
            raise InvalidInput(
                f"transition row of state {worst // A}, action {worst % A} is not a distribution "
                f"(sum {rows[worst]:.6g})"
            )
        if self.horizon is not None and (self.horizon < 1 or self.discount != 1):
            raise InvalidInput("a finite horizon must be at least 1 and goes with discount 1")
        if not 0 < self.discount <= 1:
            raise InvalidInput(f"discount must be in (0, 1], got {self.discount}")

    @property
    def num_states(self) -> int:
        return int(self.reward.shape[0])

    @property
    def num_actions(self) -> int:
        return int(self.reward.shape[1])

    @cached_property
    def transition_t(self) -> csr_array:
        """P transposed, [S, S * A]: what forward passes multiply with."""
        return self.transition.T.tocsr()

    @cached_property
    def moves(self) -> NDArray[np.intp] | None:
        """The state [a, s] that each action leads to, where every one leads to one for sure."""
        P, S = self.transition, self.num_states
        if not (np.diff(P.indptr) == 1).all() or not (P.data == 1).all():
            return None
        return np.ascontiguousarray(P.indices.reshape(S, -1).T.astype(np.intp))

    def expected(self, V: Array, states: NDArray[np.intp] | None = None) -> Array:
        """P V [a, s], or [a, n] of some states; -inf where a step may lead to a value of -inf."""
        if self.moves is not None:
            return V.take(self.moves if states is None else self.moves[:, states])
        dead, shape = np.isneginf(V), self.reward.shape
        ahead = (self.transition @ np.where(dead, 0.0, V)).reshape(shape)
        if dead.any():
            ahead[(self.transition @ dead.astype(float)).reshape(shape) > 0] = -np.inf
        return ahead.T if states is None else ahead[states].T

    def after(self, here: NDArray[np.intp], rho: Array) -> Array:
        """The chance of each state [s] after visits rho[n, a] to the states `here` [n], which are
        in order: sums over pairs are made in that of `transition_t`."""
        if self.moves is not None:
            to = self.moves.T[here]
            found = np.bincount(to.ravel(), weights=rho.ravel(), minlength=self.num_states)
            return np.asarray(found, dtype=np.float64)
        pairs = np.zeros(self.reward.shape)
        pairs[here] = rho
        return np.asarray(self.transition_t @ pairs.ravel())


def from_tensor(
    transition: Array, start: Array, reward: Array, horizon: int | None, discount: float = 1.0
) -> FiniteMDP:
    """A finite MDP from a dense transition tensor P[s, a, s']."""
    S, A = reward.shape
    return FiniteMDP(csr_array(transition.reshape(S * A, S)), start, reward, horizon, discount)


@dataclass(frozen=True, eq=False)
class FiniteTask:
    """A finite MDP with a name and features phi[s, a, :] of its transitions."""

    name: str
    mdp: FiniteMDP
    features: tuple[Feature, ...]
    phi: Array

    def __post_init__(self) -> None:
        expected = (*self.mdp.reward.shape, len(self.features))
        if self.phi.shape != expected:
            raise InvalidInput(f"task {self.name}: phi has shape {self.phi.shape}, not {expected}")

    @property
    def horizon(self) -> int | None:
        return self.mdp.horizon

    @cached_property
    def points(self) -> tuple[Array, NDArray[np.intp]]:
        """The distinct rows of phi [n, d], and which of them each (s, a) has [S * A]."""
        flat = self.phi.reshape(-1, self.phi.shape[-1])
        features, index = np.unique(flat, axis=0, return_inverse=True)
        return features, index.ravel()


def occupancy(mdp: FiniteMDP, pi: Array) -> Array:
    """rho_pi: expected visits. pi[t, s, a] -> rho[t, s, a]; pi[s, a] -> discounted rho[s, a]."""
    if mdp.horizon is None:
        return _discounted_occupancy(mdp, pi)
    rho = np.empty((mdp.horizon, *mdp.reward.shape))
    state = mdp.start
    for t in range(mdp.horizon):
        rho[t] = state[:, None] * pi[t]
        state = mdp.transition_t @ rho[t].ravel()
    return rho


def _discounted_occupancy(mdp: FiniteMDP, pi: Array) -> Array:
    """Solve d = start + discount * P_pi^T d, then rho = d * pi."""
    S, A = mdp.reward.shape
    P = mdp.transition.toarray().reshape(S, A, S)
    P_pi = np.einsum("sa,sax->sx", pi, P)
    visits = np.linalg.solve(np.eye(S) - mdp.discount * P_pi.T, mdp.start)
    return cast(Array, visits[:, None] * pi)


class Policy(Protocol):
    """pi[t, s, a] that tells pi[t, s] of a state, or of several: an array, or what works it out."""

    def __getitem__(self, place: tuple[int, Any], /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Met:
    """What a policy meets.

    pi, rho: its actions and visits [n, a] at the pairs (t, s) that an episode can come to, `at` [n]
    as t * S + s in their order; without a horizon of all states [s, a], and `at` is None. per_pair:
    visits [s, a], summed over time.
    """

    pi: Array
    rho: Array
    at: NDArray[np.intp] | None
    per_pair: Array

    def policy(self) -> dict[str, Array]:
        """As `stored`."""
        return {"pi": self.pi} if self.at is None else _kept(self.at, self.pi, self.rho)


def met(mdp: FiniteMDP, pi: Policy) -> Met:
    """`occupancy` where it isn't 0: on a large map episodes meet a small part of all pairs."""
    if mdp.horizon is None:
        whole = cast(Array, pi)
        rho = occupancy(mdp, whole)
        return Met(whole, rho, None, rho)
    S, state, per_pair = mdp.num_states, mdp.start, np.zeros(mdp.reward.shape)
    at, rows, visits = [], [], []
    for t in range(mdp.horizon):
        here = np.flatnonzero(state)
        rows.append(np.asarray(pi[t, here]))
        visits.append(state[here, None] * rows[-1])
        at.append(t * S + here)
        per_pair[here] += visits[-1]
        state = mdp.after(here, visits[-1])
    return Met(np.concatenate(rows), np.concatenate(visits), np.concatenate(at), per_pair)


def behaviour(task: FiniteTask, rho: Array) -> Behaviour:
    """What an occupancy measure does, as the game sees it: visits to distinct features."""
    per_pair = rho.sum(axis=0) if rho.ndim == 3 else rho
    features, index = task.points
    visits = np.zeros(len(features))
    np.add.at(visits, index, per_pair.ravel())
    seen = visits > NEGLIGIBLE_VISITS
    return Behaviour(
        features=features[seen],
        visits=visits[seen],
        reward=float((per_pair * task.mdp.reward).sum()),
        reward_se=0.0,
        length=float(per_pair.sum()),
        episodes=None,
    )


def stored(pi: Array, rho: Array) -> dict[str, Array]:
    """A policy as a solution keeps it: where its episodes come, for all but NOT_STORED of them.

    pi[t, s, a] becomes met [n], the pairs (t, s) as t * S + s, and pi [n, a]: of a map's T * S
    pairs an episode meets some hundreds. pi[s, a] stays as it is.
    """
    if pi.ndim == 2:
        return {"pi": pi}
    return _kept(
        np.arange(pi.shape[0] * pi.shape[1]), *(x.reshape(-1, pi.shape[2]) for x in (pi, rho))
    )


def _kept(at: NDArray[np.intp], pi: Array, rho: Array) -> dict[str, Array]:
    """Of pairs `at` [n] with their actions and visits [n, a] those that are kept."""
    visits = rho.sum(axis=1)
    rare = NOT_STORED
    while visits[visits <= rare].sum() > NOT_STORED:
        rare /= 10
    kept = np.flatnonzero(visits > rare)
    return {"met": at[kept].astype(np.int32), "pi": pi[kept]}


def whole_policy(mdp: FiniteMDP, policy: Mapping[str, NDArray[Any]]) -> Array:
    """pi[t, s, a] (or pi[s, a]) of a solution; uniform where `stored` left it out."""
    pi = np.asarray(policy["pi"], np.float64)
    if "met" not in policy:
        return pi
    assert mdp.horizon is not None
    S, A = mdp.reward.shape
    whole = np.full((mdp.horizon * S, A), 1 / A)
    whole[policy["met"]] = pi
    return whole.reshape(mdp.horizon, S, A)


def rollout(
    task: FiniteTask, pi: Policy, start: int, rng: np.random.Generator, noise: float = 0.0
) -> Trajectory:
    """One sampled episode of a finite-horizon policy pi[t, s, a] from state `start`.

    With probability `noise` a step's action is drawn uniformly instead. An episode that ends by
    itself, where a row of P sums to less than 1, has its last state once more after it.
    """
    mdp = task.mdp
    if mdp.horizon is None:
        raise InvalidInput("episodes can be sampled for finite-horizon tasks only")
    A, P = mdp.num_actions, mdp.transition
    states, actions, ended = [start], [], False
    for t in range(mdp.horizon):
        s = states[-1]
        a = int(rng.integers(A)) if rng.random() < noise else _draw(pi[t, s], rng)
        row = slice(P.indptr[s * A + a], P.indptr[s * A + a + 1])
        actions.append(a)
        if (left := 1 - P.data[row].sum()) > 1e-9 and rng.random() < left:
            states.append(s)
            ended = True
            break
        states.append(int(P.indices[row][_draw(P.data[row], rng)]))
    visited, taken = np.array(states[:-1]), np.array(actions)
    return Trajectory(
        observations=np.array(states, dtype=np.float64)[:, None],
        actions=taken.astype(np.float64)[:, None],
        rewards=mdp.reward[visited, taken],
        features=task.phi[visited, taken],
        terminated=ended,
    )


def _draw(weights: Array, rng: np.random.Generator) -> int:
    """An index drawn with probability proportional to weights."""
    total = np.cumsum(weights)
    return int(np.searchsorted(total, rng.random() * total[-1], side="right"))
