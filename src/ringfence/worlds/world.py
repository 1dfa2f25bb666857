"""What a world is to the rest of the system. One file per kind of world implements it.

A kind is a module of this package (kind "ant-maze" is worlds/ant_maze.py) or anyone's
"module:function": a function `make(config) -> World` whose parameter is annotated with the frozen
dataclass of its settings. Nothing else has to be told of a new world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import (
    Array,
    Behaviour,
    Constraint,
    Demonstrations,
    Feature,
    Finding,
    Solution,
    Task,
    Trajectory,
)
from ringfence.worlds.finite import FiniteTask

#: Settings by table of the configuration: {"game": {"iterations": 5}, ..}.
Tables = Mapping[str, Mapping[str, Any]]
#: How to draw a constraint on a world, as it stands in summary.json: {"kind": "map", ..}.
View = dict[str, Any]


class Truth(Protocol):
    """A world's evaluator: what its demonstrators keep, where that is known.

    Nothing that learns or selects receives it; the driver calls it afterwards.
    """

    @property
    def known(self) -> bool: ...

    def true_cost(self, pi: Behaviour) -> float | None:
        """The activated true cost of an episode."""
        ...

    def true_raw(self, pi: Behaviour) -> float | None:
        """The signed true raw value, summed over an episode."""
        ...


class Unknown:
    """The truth of a world that has none to tell."""

    known = False

    def true_cost(self, pi: Behaviour) -> None:
        return None

    def true_raw(self, pi: Behaviour) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Cells:
    """The finite world under a world's tasks: tables, evidence and coverage are exact over it.

    tasks: the finite tasks, under the world's names; shape: of the cells, in the states' order;
    index: of the state in which features [n, d] are, [n], -1 outside; forbidden: the cells [shape]
    that a constraint forbids, to which a policy with limit 0 doesn't go; walls: the truly forbidden
    ones, where they are known (for reports only); path: the states [n] and the return of a
    trajectory, where its observations are not the states themselves; towards: the task of going to
    a cell from others (None where the world has no such tasks).
    """

    tasks: Sequence[FiniteTask]
    shape: tuple[int, ...]
    index: Callable[[Array], NDArray[np.intp]]
    forbidden: Callable[[Constraint], NDArray[np.bool_]]
    walls: NDArray[np.bool_] | None
    path: Callable[[Trajectory], tuple[NDArray[np.intp], float]] | None = None
    towards: Callable[[tuple[int, ...], Sequence[tuple[int, ...]] | None], FiniteTask] | None = None

    def task(self, name: str) -> FiniteTask:
        return next(task for task in self.tasks if task.name == name)


class World(Protocol):
    """Tasks that share their answer to a state and an action, and what is known around them."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def tasks(self) -> Sequence[Task]: ...

    @property
    def truth(self) -> Truth: ...

    @property
    def cells(self) -> Cells | None:
        """The finite world underneath, where there is one."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """The installed packages, beside ours, whose versions a result depends on."""
        ...

    @property
    def experts(self) -> str:
        """How demonstrations are made here: a module of `ringfence.experts`."""
        ...

    def check(self, demos: Demonstrations) -> list[Finding]:
        """What speaks against demonstrations of this world; an error makes them unusable."""
        ...

    def new_task(self, spec: Mapping[str, Any]) -> Task:
        """A task that nobody demonstrated, for `transfer`."""
        ...

    def defaults(self, given: Tables) -> Tables:
        """Of the configuration, where this world's differ; `given` is what the user said."""
        ...

    def views(self) -> list[View]:
        """How to draw a constraint here, best first."""
        ...

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        """Columns of an iteration's row that only this world can tell (for reports only)."""
        ...


def require_fields(where: str, spec: Mapping[str, Any], names: Sequence[str]) -> None:
    """A new task is described by just these entries."""
    missing = [name for name in names if spec.get(name) is None]
    other = [name for name in spec if name not in names and spec[name] is not None]
    if missing or other:
        wanted = ", ".join(f"--{name}" for name in names) or "nothing"
        wrong = f"{other[0]!r} is unknown" if other else f"{missing[0]!r} is missing"
        raise InvalidInput(f"a new task of {where} is described by {wanted}; {wrong}")
