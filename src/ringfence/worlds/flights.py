"""Climbs and descents through a band of altitudes: how fast to fly in each row of it.

    state    a row of altitude and a cell of speed (calibrated airspeed)
    action   how much faster or slower the next row is flown, within what aircraft were seen to do
    reward   less time: minus the minutes for the row's miles
    task     up or down, with so many miles to a row: a steep departure, a long arrival

The vertical path is the task's: who flies here decides about speed only, as the pilot does who was
cleared for a climb or descent. A flight enters by a gate, a row outside of the band, with any speed
that flights were seen to enter with, and should leave no faster than they do: an arrival that is
too fast at the bottom goes around. `FlightEnv` is the same with real numbers for speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.atmosphere import true
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Demonstrations, Feature, Finding, Solution, Trajectory
from ringfence.worlds.finite import FiniteMDP, FiniteTask
from ringfence.worlds.world import Cells, Tables, Truth, Unknown, View

FEATURES = (Feature("altitude", "ft"), Feature("speed", "kt"))
DEPARTURE, ARRIVAL = "departure", "arrival"
#: What leaving the band too fast costs: the minutes of a go-around.
GO_AROUND = 10.0


@dataclass(frozen=True)
class FlightTask:
    """name: in reports and demonstrations; kind: up or down; miles: nm through the air in a row;
    gain, loss: the most that speed rises or falls from one row to the next, kt; fastest: the
    highest speed, kt; entry: the lowest and highest in the first row; leaves: in the last one."""

    name: str
    kind: Literal["departure", "arrival"]
    miles: float
    gain: float
    loss: float
    fastest: float
    entry: tuple[float, float]
    leaves: tuple[float, float]


@dataclass(frozen=True)
class Config:
    """Climbs and descents through a band of altitudes.

    tasks: what aircraft can do in each; bottom, top: of the band, ft; height: of a row of it, ft;
    slowest, fastest: of all speeds, kt; width: of a cell of them, kt.
    """

    kind: Literal["flights"] = "flights"
    tasks: tuple[FlightTask, ...] = ()
    bottom: float = 4000.0
    top: float = 13000.0
    height: float = 250.0
    slowest: float = 140.0
    fastest: float = 340.0
    width: float = 5.0

    def __post_init__(self) -> None:
        if not (self.bottom < self.top and self.slowest < self.fastest):
            raise InvalidInput("[world] a band needs bottom < top, and speeds slowest < fastest")
        if not (self.height > 0 and self.width > 0):
            raise InvalidInput("[world] height and width of a cell must be above 0")

    @property
    def rows(self) -> int:
        return round((self.top - self.bottom) / self.height)

    @property
    def speeds(self) -> Array:
        """The middle of each cell, kt [V]."""
        count = round((self.fastest - self.slowest) / self.width)
        return np.asarray(self.slowest + self.width * (np.arange(count) + 0.5), np.float64)

    @property
    def altitudes(self) -> Array:
        """The middle of each row, ft [rows + 2]; the first and last are the gates."""
        rows = np.arange(-1, self.rows + 1, dtype=np.float64)
        return self.bottom + self.height * (rows + 0.5)

    def cell(self, speed: Any) -> NDArray[np.intp]:
        at = np.floor((np.asarray(speed) - self.slowest) / self.width)
        return np.clip(at, 0, len(self.speeds) - 1).astype(np.intp)


def make(config: Config) -> FlightWorld:
    if not config.tasks:
        raise InvalidInput("[world] kind flights needs tasks: what aircraft can do in each")
    return FlightWorld(config)


@dataclass(frozen=True, eq=False)
class FlightWorld:
    """Tasks over the same cells, (rows + 2) x speeds: row by row, the gates first and last."""

    settings: Config
    name: ClassVar[str] = "flights"
    packages: ClassVar[tuple[str, ...]] = ("scipy",)
    experts: ClassVar[str] = "optimal"
    features: ClassVar[tuple[Feature, ...]] = FEATURES

    @property
    def truth(self) -> Truth:
        return Unknown()

    @property
    def shape(self) -> tuple[int, int]:
        return self.settings.rows + 2, len(self.settings.speeds)

    @cached_property
    def points(self) -> Array:
        """(altitude, speed) of each state [S, 2]. Gates have the slowest speed: nobody is there."""
        speed = np.tile(self.settings.speeds, (self.shape[0], 1))
        speed[[0, -1]] = self.settings.speeds[0]
        altitude = np.repeat(self.settings.altitudes, self.shape[1])
        return np.stack([altitude, speed.ravel()], axis=1)

    @cached_property
    def tasks(self) -> tuple[FiniteTask, ...]:
        return tuple(self._task(task) for task in self.settings.tasks)

    @cached_property
    def _changes(self) -> int:
        """Actions: the changes of speed, in cells, that any task allows, from the largest loss."""
        return 1 + max(self._cells(t.gain) + self._cells(t.loss) for t in self.settings.tasks)

    def _task(self, task: FlightTask) -> FiniteTask:
        (rows, V), A = self.shape, self._changes
        first, last, step = (0, rows - 2, 1) if task.kind == DEPARTURE else (rows - 1, 1, -1)
        row, speed = np.divmod(np.arange(rows * V), V)
        gate, inside = row == first, (row >= 1) & (row <= rows - 2)
        change = np.minimum(np.arange(A) - self._cells(task.loss), self._cells(task.gain))
        next_speed = np.minimum(speed[:, None] + change, self.settings.cell(task.fastest))
        low, high = self.settings.cell(task.entry)
        next_speed[gate] = np.linspace(low, high, A).round()
        target = (row[:, None] + step) * V + np.clip(next_speed, 0, V - 1)
        source = np.flatnonzero(np.repeat((gate | inside) & (row != last), A))
        P = csr_array(
            (np.ones(len(source)), (source, target.ravel()[source])), (rows * V * A, rows * V)
        )
        minutes = np.where(inside, self.minutes(task, self.points), 0.0)
        too_fast = (row == last) & (speed > self.settings.cell(task.leaves[1]))
        reward = -minutes - GO_AROUND * too_fast
        start = np.zeros(rows * V)
        start[first * V] = 1.0
        mdp = FiniteMDP(P, start, np.repeat(reward[:, None], A, axis=1), rows - 1)
        phi = np.repeat(self.points[:, None], A, axis=1)
        return FiniteTask(task.name, mdp, FEATURES, phi)

    def _cells(self, change: float) -> int:
        """A change of speed in whole cells, at least one."""
        return max(1, round(change / self.settings.width))

    @staticmethod
    def minutes(task: FlightTask, points: Array) -> Array:
        """For the miles of a row at (altitude, speed) [n, 2]."""
        return 60 * task.miles / true(points[:, 1], points[:, 0])

    def trajectory(self, name: str, rows: NDArray[np.intp], speed: Array) -> Trajectory:
        """A flight that passed these rows of the band at these speeds [n], lowest first.

        Its features are the speeds as they were, its states those of their cells, its rewards the
        minutes there, its actions the nearest that the world has. Only one that enters at the
        band's edge has passed the gate.
        """
        task = next(t for t in self.settings.tasks if t.name == name)
        order = slice(None) if task.kind == DEPARTURE else slice(None, None, -1)
        V, cell = self.shape[1], self.settings.cell(speed)[order]
        states = (rows[order] + 1) * V + cell
        features = np.stack([self.settings.altitudes[rows[order] + 1], speed[order]], axis=1)
        gate = 0 if task.kind == DEPARTURE else self.shape[0] - 1
        if abs(int(rows[order][0]) + 1 - gate) == 1:
            states = np.append(gate * V, states)
            features = np.vstack([self.points[gate * V], features])
        changes = np.diff(states % V, append=states[-1] % V) + self._cells(task.loss)
        return Trajectory(
            np.append(states, states[-1])[:, None].astype(np.float64),
            np.clip(changes, 0, self._changes - 1)[:, None].astype(np.float64),
            np.where(states // V == gate, 0.0, -self.minutes(task, self.points[states])),
            features,
            terminated=True,
        )

    def left_too_fast(self, name: str, t: Trajectory) -> bool:
        """Would the task's learners have to go around after a flight like that?"""
        return bool(self._by_name[name].mdp.reward[int(t.observations[-1, 0]), 0] <= -GO_AROUND)

    @cached_property
    def _by_name(self) -> Mapping[str, FiniteTask]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def cells(self) -> Cells:
        def index(phi: Array) -> NDArray[np.intp]:
            row = np.floor((phi[:, 0] - self.settings.bottom) / self.settings.height) + 1
            inside = np.clip(row, 0, self.shape[0] - 1).astype(np.intp)
            return np.asarray(inside * self.shape[1] + self.settings.cell(phi[:, 1]))

        return Cells(
            self.tasks,
            self.shape,
            index,
            lambda c: np.asarray((c.cost(self.points) > 0).reshape(self.shape)),
            None,
            lambda t: (t.observations[:-1, 0].astype(np.intp), float(t.rewards.sum())),
        )

    def check(self, demos: Demonstrations) -> list[Finding]:
        """Demonstrations are what `trajectory` makes of flights."""
        found = []
        for given in demos.tasks:
            label = f"task {given.task!r}"
            if given.task not in self._by_name:
                names = ", ".join(self._by_name)
                message = f"the world has no such task (there are: {names})"
                found.append(Finding("error", label, message))
            for where, t in given.labelled:
                same = t.features.shape[1] == 2 and np.array_equal(
                    self.cells.index(t.features)[1:], t.observations[1:-1, 0]
                )
                if not same:
                    message = "its states are not the cells of its speeds and altitudes"
                    found.append(Finding("error", where, message))
        return found

    def new_task(self, spec: Mapping[str, Any]) -> FiniteTask:
        try:
            return self._task(FlightTask(**{"name": "new task", **spec}))
        except TypeError as problem:
            raise InvalidInput(f"a new task of flights: {problem}") from None

    def defaults(self, given: Tables) -> Tables:
        return {"game": {"constraint": "speed <= ? while altitude <= ?"}}

    def views(self) -> list[View]:
        return [{"kind": "line", "columns": [k]} for k in range(len(FEATURES))]

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        return {}


# The same with real numbers ----------------------------------------------------------------------


def fastest(
    config: Config, task: FlightTask, limit: float = np.inf, until: float = np.inf
) -> Array:
    """The best that a flight can do, exactly: its speed in each row, kt [rows], lowest first, that
    keeps "speed <= limit while altitude <= until".

    Faster is better in every row, and what is within the bounds and the rates of change has a
    highest member: each row's bound, then what can be gained up to it, then what can be lost after.
    """
    altitude = config.altitudes[1:-1]
    speed = np.where(altitude <= until, min(limit, task.fastest), task.fastest)
    speed = speed if task.kind == DEPARTURE else speed[::-1]
    speed[0], speed[-1] = min(speed[0], task.entry[1]), min(speed[-1], task.leaves[1])
    for n in range(1, len(speed)):
        speed[n] = min(speed[n], speed[n - 1] + task.gain)
    for n in reversed(range(len(speed) - 1)):
        speed[n] = min(speed[n], speed[n + 1] + task.loss)
    return speed if task.kind == DEPARTURE else speed[::-1]


class FlightEnv(gymnasium.Env[Array, Array]):
    """One task as an environment: an observation is (altitude, speed) in units of the band, an
    action in [-1, 1] the share of what the speed can lose or gain until the next row; at the gate
    it chooses among the speeds of entry. info has speed and altitude."""

    def __init__(self, config: Config, task: FlightTask) -> None:
        self.config, self.task = config, task
        self.observation_space = spaces.Box(-0.5, 1.5, (2,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.step_size = 1 if self.task.kind == DEPARTURE else -1
        self.row = 0 if self.step_size > 0 else self.config.rows + 1
        self.speed = self.config.slowest
        return self._seen()

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        a = float(np.clip(np.asarray(action).ravel()[0], -1, 1))
        task = self.task
        if self.row in (0, self.config.rows + 1):
            low, high = task.entry
            self.speed = low + (a + 1) / 2 * (high - low)
        else:
            self.speed += a * (task.gain if a > 0 else task.loss)
        self.speed = float(np.clip(self.speed, self.config.slowest, task.fastest))
        self.row += self.step_size
        last = self.row == (self.config.rows if self.step_size > 0 else 1)
        observation, info = self._seen()
        point = np.array([[info["altitude"], info["speed"]]])
        reward = -float(FlightWorld.minutes(task, point)[0])
        reward -= GO_AROUND * (last and self.speed > task.leaves[1])
        return observation, reward, last, False, info

    def _seen(self) -> tuple[Array, dict[str, Any]]:
        c, altitude = self.config, float(self.config.altitudes[self.row])
        share = [(altitude - c.bottom) / (c.top - c.bottom),
                 (self.speed - c.slowest) / (c.fastest - c.slowest)]  # fmt: skip
        return np.array(share), {"altitude": altitude, "speed": self.speed}


def environment(task: Mapping[str, Any], **band: Any) -> FlightEnv:
    """A task's environment, for a world of kind "gym": both as they stand in [world] of kind
    "flights"."""
    return FlightEnv(Config(**band), FlightTask(**task))


def as_environments(config: Config) -> dict[str, Any]:
    """[world] of kind "gym" with the same tasks in continuous form."""
    band = {k: v for k, v in asdict(config).items() if k not in ("kind", "tasks")}
    return {
        "kind": "gym",
        "env": "ringfence.worlds.flights:environment",
        "kwargs": band,
        "steps": config.rows,
        "tasks": [{"name": t.name, "kwargs": {"task": asdict(t)}} for t in config.tasks],
        "features": [{"name": f.name, "unit": f.unit} for f in FEATURES],
    }
