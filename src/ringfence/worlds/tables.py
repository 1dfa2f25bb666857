"""Any finite Markov decision process, from its tables: P[s, a, s'], r[s, a], a start, a horizon.

Several tasks share P and differ in reward and start. A constraint is about features of a state
(and, where they are given per action, of the action); by default about the state itself.
Gymnasium's toy environments keep such tables as dictionaries, `env.unwrapped.P`, which
`from_gymnasium` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Demonstrations, Feature, Finding, Solution
from ringfence.worlds.finite import FiniteMDP, FiniteTask
from ringfence.worlds.finite_checks import check as check_finite
from ringfence.worlds.named import Named, find
from ringfence.worlds.world import Cells, Tables, Truth, Unknown, View, require_fields


@dataclass(frozen=True)
class TableTask:
    """One task of the tables.

    name: in reports and demonstrations; reward: r[s][a]; start: a state, or a probability for each.
    """

    name: str
    reward: tuple[tuple[float, ...], ...]
    start: int | tuple[float, ...] = 0


@dataclass(frozen=True)
class Config:
    """A finite Markov decision process.

    name: in reports; make: "module:function" that returns a world of `table_world`, in the place of
    all else; transition: P[s][a] as [[next state, probability], ..]; tasks: rewards and starts;
    horizon: steps of an episode (None: there is a discount); discount: below 1, in the place of a
    horizon; states: their names; features: units by name (empty: the state's number); values: of
    the features, values[s] = [..]; forbidden: states, where the truth is known (for reports and for
    making demonstrations).
    """

    kind: Literal["tables"] = "tables"
    name: str = "tables"
    make: str = ""
    transition: tuple[tuple[tuple[tuple[float, float], ...], ...], ...] = ()
    tasks: tuple[TableTask, ...] = ()
    horizon: int | None = None
    discount: float = 1.0
    states: tuple[str, ...] = ()
    features: dict[str, str] = field(default_factory=dict)
    values: tuple[tuple[float, ...], ...] = ()
    forbidden: tuple[int, ...] = ()


def make(config: Config) -> TableWorld:
    if config.make:
        find(config.make)
        made = Named(config.make)()
        if not isinstance(made, TableWorld):
            raise InvalidInput(
                f"[world] make: {config.make} returned {type(made).__name__}, not a table_world"
            )
        return made
    if not config.transition or not config.tasks:
        raise InvalidInput('[world] kind "tables" needs transition and tasks, or make')
    S, A = len(config.transition), len(config.transition[0])
    P = np.zeros((S, A, S))
    for s, row in enumerate(config.transition):
        if len(row) != A:
            raise InvalidInput(f"[world] transition: state {s} has {len(row)} actions, not {A}")
        for a, outcomes in enumerate(row):
            for target, chance in outcomes:
                P[s, a, _state("transition", target, S)] += chance
    return table_world(
        P,
        {t.name: np.array(t.reward) for t in config.tasks},
        {t.name: t.start if isinstance(t.start, int) else np.array(t.start) for t in config.tasks},
        horizon=config.horizon,
        discount=config.discount,
        name=config.name,
        states=config.states,
        features=tuple(Feature(name, unit) for name, unit in config.features.items()) or None,
        values=np.array(config.values) if config.values else None,
        forbidden=config.forbidden,
    )


def table_world(
    P: ArrayLike,
    rewards: Mapping[str, ArrayLike],
    start: ArrayLike | Mapping[str, Any] = 0,
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    name: str = "tables",
    states: Sequence[str] = (),
    features: Sequence[Feature] | None = None,
    values: ArrayLike | None = None,
    forbidden: Sequence[int] = (),
) -> TableWorld:
    """A world of finite tasks.

    P [S, A, S]: a row that sums to less than 1 ends the episode with the rest. rewards: r [S, A]
    (or [S]) by task name. start: a state or a distribution [S], one for all tasks or by name.
    Either horizon T, the steps of an episode, or a discount below 1. features with values [S, d]
    (or [S, A, d]): what constraints are about, by default the state's number. forbidden: the truly
    forbidden states, where they are known: they are for reports and for making demonstrations.
    """
    tensor = np.asarray(P, np.float64)
    if tensor.ndim != 3 or tensor.shape[0] != tensor.shape[2]:
        raise InvalidInput(f"P has shape {tensor.shape}; it must be [states, actions, states]")
    S, A, _ = tensor.shape
    if (horizon is None) == (discount == 1.0):
        raise InvalidInput("give either a horizon (steps of an episode) or a discount below 1")
    if not rewards:
        raise InvalidInput("give the rewards of at least one task, by its name")
    if states and len(states) != S:
        raise InvalidInput(f"{len(states)} names for {S} states; give one each")
    if isinstance(start, Mapping) and set(start) != set(rewards):
        raise InvalidInput(f"start: of {', '.join(start)}, but the tasks are {', '.join(rewards)}")
    labels = tuple(features) if features is not None else (Feature("state", "1"),)
    points = np.arange(S, dtype=float)[:, None] if values is None else np.asarray(values, float)
    if points.shape not in ((S, len(labels)), (S, A, len(labels))):
        raise InvalidInput(
            f"values have shape {points.shape}; {S} states with {len(labels)} features need "
            f"({S}, {len(labels)}), or ({S}, {A}, {len(labels)}) by action"
        )
    if points.ndim == 2:
        points = np.broadcast_to(points[:, None], (S, A, points.shape[1]))
    transition = csr_array(tensor.reshape(S * A, S))
    tasks = []
    for task, reward in rewards.items():
        r = np.asarray(reward, np.float64)
        r = np.repeat(r[:, None], A, axis=1) if r.ndim == 1 else r
        begin = start[task] if isinstance(start, Mapping) else start
        mdp = FiniteMDP(transition, _start(begin, S), r, horizon, discount)
        tasks.append(FiniteTask(task, mdp, labels, points))
    walls = np.zeros(S, np.bool_)
    walls[[_state("forbidden", s, S) for s in forbidden]] = True
    return TableWorld(tuple(tasks), name, tuple(states), TableTruth(walls, points))


def _start(start: Any, S: int) -> Array:
    """A distribution over states, from one or from a state's number."""
    if np.ndim(start) == 0:
        found = np.zeros(S)
        found[_state("start", start, S)] = 1.0
        return found
    return np.asarray(start, np.float64)


def _rows(table: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _state(what: str, number: Any, S: int) -> int:
    if number != int(number) or not 0 <= int(number) < S:
        raise InvalidInput(f"{what}: {number!r} is none of the states 0 to {S - 1}")
    return int(number)


def from_gymnasium(P: Mapping[int, Mapping[int, Sequence[Any]]]) -> tuple[Array, Array]:
    """Gymnasium's `env.unwrapped.P[s][a] = [(probability, next state, reward, ends), ..]` as
    P [S, A, S] and r [S, A].

    A step that ends the episode leads to a state that is never left and pays nothing: its next
    state, if every way into it ends there (FrozenLake, CliffWalking); else an added last state
    (Taxi, whose 500 become 501).
    """
    S, A = len(P), len(P[0])
    ends = {o[1] for row in P.values() for outcomes in row.values() for o in outcomes if o[3]}
    goes_on = {
        o[1] for row in P.values() for outcomes in row.values() for o in outcomes if not o[3]
    }
    extra = bool((ends & goes_on) - {s for s in ends if _absorbing(P, s)})
    size = S + extra
    tensor, reward = np.zeros((size, A, size)), np.zeros((size, A))
    for s, row in P.items():
        for a, outcomes in row.items():
            for chance, target, paid, over in outcomes:
                tensor[s, a, S if extra and over else target] += chance
                reward[s, a] += chance * paid
    for s in {S} if extra else ends:
        tensor[s], reward[s] = 0.0, 0.0
        tensor[s, :, s] = 1.0
    return tensor, reward


def _absorbing(P: Mapping[int, Mapping[int, Sequence[Any]]], s: int) -> bool:
    """Is it never left, and pays nothing?"""
    return all(o[1] == s and not o[2] for outcomes in P[s].values() for o in outcomes)


@dataclass(frozen=True, eq=False)
class TableTruth:
    """The evaluator: which states are forbidden."""

    walls: NDArray[np.bool_]
    points: Array

    @property
    def known(self) -> bool:
        return bool(self.walls.any())

    def true_cost(self, pi: Behaviour) -> float:
        """Expected steps of an episode in forbidden states."""
        bad = {tuple(p) for p in self.points[self.walls].reshape(-1, self.points.shape[-1])}
        inside = np.array([tuple(phi) in bad for phi in pi.features])
        return float(pi.visits @ inside)

    def true_raw(self, pi: Behaviour) -> float:
        return self.true_cost(pi)


@dataclass(frozen=True, eq=False)
class TableWorld:
    """Finite tasks over the same states."""

    tasks: tuple[FiniteTask, ...]
    name: str
    states: tuple[str, ...]
    true: TableTruth
    packages: ClassVar[tuple[str, ...]] = ("scipy", "highspy")
    experts: ClassVar[str] = "optimal"

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.tasks[0].features

    @property
    def truth(self) -> Truth:
        return self.true if self.true.known else Unknown()

    @property
    def settings(self) -> Config | None:
        """The settings that make this world again; None where features depend on the action."""
        first = self.tasks[0]
        if (first.phi != first.phi[:, :1]).any():
            return None
        S, A = first.mdp.reward.shape
        P = first.mdp.transition
        rows = [
            tuple(zip(P.indices[a:b].tolist(), P.data[a:b].tolist(), strict=True))
            for a, b in zip(P.indptr[:-1], P.indptr[1:], strict=True)
        ]
        return Config(
            name=self.name,
            transition=tuple(tuple(rows[s * A : (s + 1) * A]) for s in range(S)),
            tasks=tuple(
                TableTask(
                    t.name, tuple(map(tuple, t.mdp.reward.tolist())), tuple(t.mdp.start.tolist())
                )
                for t in self.tasks
            ),
            horizon=first.mdp.horizon,
            discount=first.mdp.discount,
            states=self.states,
            features={f.name: f.unit for f in self.features},
            values=_rows(first.phi[:, 0]),
            forbidden=tuple(int(s) for s in np.flatnonzero(self.true.walls)),
        )

    @cached_property
    def cells(self) -> Cells | None:
        """The states, where a constraint can tell each of them from the others."""
        points = self.tasks[0].phi[:, 0]
        shape = self._shape(points)
        if shape is None:
            return None
        return Cells(
            self.tasks,
            shape,
            lambda phi: np.ravel_multi_index(tuple(phi.astype(np.intp).T), shape),
            lambda c: (c.cost(points) > 0).reshape(shape),
            self.true.walls.reshape(shape) if self.true.known else None,
        )

    def _shape(self, points: Array) -> tuple[int, ...] | None:
        """Of a table over the features, if states in order are its cells in order."""
        phi = self.tasks[0].phi
        whole = (points == np.floor(points)).all() and (points >= 0).all()
        if not whole or (phi != phi[:, :1]).any():
            return None
        shape = tuple(int(n) + 1 for n in points.max(axis=0))
        order = np.indices(shape).reshape(len(shape), -1).T
        return shape if np.array_equal(order, points) else None

    def check(self, demos: Demonstrations) -> list[Finding]:
        return check_finite(demos, self.tasks)

    def new_task(self, spec: Mapping[str, Any]) -> FiniteTask:
        """reward [S, A] or [S], and start: a state or a distribution."""
        require_fields("a world of tables", spec, ("reward", "start"))
        S, A = self.tasks[0].mdp.reward.shape
        r = np.asarray(spec["reward"], np.float64)
        r = np.repeat(r[:, None], A, axis=1) if r.ndim == 1 else r
        mdp = replace(self.tasks[0].mdp, reward=r, start=_start(spec["start"], S))
        return replace(self.tasks[0], name="new task", mdp=mdp)

    def defaults(self, given: Tables) -> Tables:
        return {} if self.cells is not None else {"game": {"constraint": "linear"}}

    def views(self) -> list[View]:
        """A map where the table has two axes, a row of states where it has one."""
        if self.cells is None:
            return [{"kind": "line", "columns": [k]} for k in range(len(self.features))]
        shape = self.cells.shape
        if len(shape) > 2:
            return []
        starts = np.unique(np.concatenate([np.flatnonzero(t.mdp.start) for t in self.tasks]))
        flat = (1, *shape)[-2:]
        walls = self.true.walls.reshape(flat).astype(int).tolist() if self.true.known else None
        return [
            {
                "kind": "map",
                "columns": list(range(len(shape))),
                "shape": list(flat),
                "starts": [[int(i) for i in np.unravel_index(s, flat)] for s in starts],
                "goals": [],
                "walls": walls,
            }
        ]

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        return {}
