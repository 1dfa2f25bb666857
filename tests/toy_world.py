"""A world in one file: two round floors with a lift in every room, some rooms of which are locked.

All that Ringfence needs to know of it is `make` and its settings; kind "toy_world:make".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Demonstrations, Feature, Finding, Solution
from ringfence.worlds.finite import FiniteTask, from_tensor
from ringfence.worlds.finite_checks import check
from ringfence.worlds.world import Cells, Tables, View

FEATURES = (Feature("floor", "floor"), Feature("room", "room"))
FLOORS, HORIZON = 2, 9


@dataclass(frozen=True)
class Config:
    """rooms: on each floor; locked: [floor, room] of each that nobody may enter."""

    kind: Literal["toy_world:make"] = "toy_world:make"
    rooms: int = 6
    locked: tuple[tuple[int, int], ...] = ((0, 1), (0, 2))


def make(config: Config) -> Carousel:
    if config.rooms < 4:
        raise InvalidInput(f"[world] rooms: {config.rooms} is not at least 4")
    return Carousel(config)


@dataclass(frozen=True)
class Truth:
    locked: frozenset[tuple[int, int]]

    @property
    def known(self) -> bool:
        return bool(self.locked)

    def true_cost(self, pi: Behaviour) -> float:
        return float(sum(n for phi, n in zip(pi.features, pi.visits, strict=True)
                         if (int(phi[0]), int(phi[1])) in self.locked))  # fmt: skip

    def true_raw(self, pi: Behaviour) -> float:
        return self.true_cost(pi)


@dataclass(frozen=True, eq=False)
class Carousel:
    config: Config
    name: ClassVar[str] = "carousel"
    features: ClassVar[tuple[Feature, ...]] = FEATURES
    packages: ClassVar[tuple[str, ...]] = ("scipy",)
    experts: ClassVar[str] = "optimal"

    @property
    def shape(self) -> tuple[int, int]:
        return FLOORS, self.config.rooms

    @property
    def truth(self) -> Truth:
        return Truth(frozenset(self.config.locked))

    @cached_property
    def tasks(self) -> tuple[FiniteTask, ...]:
        """To the room across, and to the one before it, on the first floor."""
        half = self.config.rooms // 2
        return tuple(self._to((0, room), (0, 0)) for room in (half, half + 1))

    def _to(self, goal: tuple[int, int], start: tuple[int, int]) -> FiniteTask:
        rooms, S = self.config.rooms, FLOORS * self.config.rooms
        P, r = np.zeros((S, 4, S)), np.zeros((S, 4))
        for s, (floor, room) in enumerate(np.ndindex(self.shape)):
            ways = (room + 1) % rooms, (room - 1) % rooms
            onward = (floor, ways[0]), (floor, ways[1]), (1 - floor, room), (floor, room)
            for a, (f, m) in enumerate(onward):
                P[s, a, rooms * f + m if (floor, room) != goal else s] = 1.0
        r[rooms * goal[0] + goal[1]] = 1.0
        begin = np.eye(S)[rooms * start[0] + start[1]]
        phi = np.indices(self.shape).reshape(2, -1).T[:, None].repeat(4, axis=1).astype(float)
        mdp = from_tensor(P, begin, r, HORIZON)
        return FiniteTask(f"to {goal[0]}.{goal[1]}", mdp, FEATURES, phi)

    @cached_property
    def cells(self) -> Cells:
        points = np.indices(self.shape).reshape(2, -1).T.astype(float)
        walls = np.zeros(self.shape, bool)
        for place in self.config.locked:
            walls[place] = True
        return Cells(
            self.tasks,
            self.shape,
            lambda phi: (self.config.rooms * phi[:, 0] + phi[:, 1]).astype(np.intp),
            lambda c: (c.cost(points) > 0).reshape(self.shape),
            walls if self.truth.known else None,
        )

    def check(self, demos: Demonstrations) -> list[Finding]:
        return check(demos, self.tasks)

    def new_task(self, spec: Mapping[str, Any]) -> FiniteTask:
        goal, start = (tuple(map(int, spec[name])) for name in ("goal", "start"))
        return self._to(goal, start)  # type: ignore[arg-type]

    def defaults(self, given: Tables) -> Tables:
        return {"game": {"iterations": 4}}

    def views(self) -> list[View]:
        walls = self.cells.walls
        return [{
            "kind": "map", "columns": [0, 1], "shape": list(self.shape), "starts": [[0, 0]],
            "goals": [], "walls": None if walls is None else walls.astype(int).tolist(),
        }]  # fmt: skip

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        return {}
