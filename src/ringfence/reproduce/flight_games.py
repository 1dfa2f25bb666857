"""From recorded flights to the rule that they keep: "speed <= ? while altitude <= ?".

    legs ──► wind, airspeeds ──► tasks: what aircraft can do ──► free learners ──► answer
         ──► without those who stand apart ──► answer ──► calibrated: the rule

The answer is that of the game's payoff player to learners without a constraint: the tightest limit
under the widest condition that leaves demonstrators a budget. It is calibrated by what the same
steps say of demonstrators that are known: the world's own best flights under a rule, seen with the
measured error. What they would be taken for, less the rule, is the method's bias: from aircraft
that need height to accelerate, from errors of measurement, from the budget. The rule that is handed
back is the one whose flights would have got the answer that the real ones got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ringfence.analysis.saturation import standing_apart
from ringfence.attempts import failed
from ringfence.constraints.template import parse_template
from ringfence.constraints.written import ConditionalForm, nothing_forbidden, parse_class
from ringfence.demos.flights.airspeed import Wind
from ringfence.demos.flights.passages import Band, Leg, Passage, passages, shared_wind
from ringfence.errors import InvalidInput
from ringfence.objects import (
    Array,
    Behaviour,
    Demonstrations,
    Problem,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.players.payoff import PayoffPlayer
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.flights import (
    ARRIVAL,
    DEPARTURE,
    FEATURES,
    GO_AROUND,
    Config,
    FlightTask,
    FlightWorld,
    fastest,
)

KINDS = (DEPARTURE, ARRIVAL)
CLASS = "speed <= ? while altitude <= ?"
SPEED, ALTITUDE = 0, 1  # of the class's numbers
#: One flight in so many is held out from a game, for its selection.
HELD_OUT = 5
CALIBRATING = 10  # a stream of random numbers
#: Normal errors that are drawn where they are stated, and corrections of the calibrated rule.
KNOWN, ROUNDS = 200, 4


@dataclass(frozen=True)
class Settings:
    """All choices, which are made without the truth.

    half: of the aircraft that are looked at (None: all); bottom, top, height: of the band and its
    rows, ft; knots: of the wind, ft apart (0: no wind); reach: quantile of what flights do that
    counts as what aircraft can do; width: of a learner's cells of speed, kt; budgets: of a flight,
    of whose answers the median is taken; drop_apart: leave out who stands apart; error_kt: of a
    measured speed, normal (0: as in the row in which flights are most alike); warmer: standard
    deviation of the air's temperature around the standard, K; resamples: of the bootstrap;
    temperature: of the learners; spare_fast: flights that leave the band faster than learners may
    are not taken for slow ones.
    """

    half: int | None = None
    bottom: float = 4000.0
    top: float = 13000.0
    height: float = 250.0
    knots: float = 3000.0
    reach: float = 0.95
    width: float = 5.0
    budgets: tuple[float, ...] = (4.32, 5.76, 8.64)
    drop_apart: bool = True
    error_kt: float = 0.0
    warmer: float = 5.0
    resamples: int = 100
    temperature: float = 0.01
    spare_fast: bool = False

    @property
    def band(self) -> Band:
        knots = np.arange(self.bottom, self.top + 1, self.knots or self.top - self.bottom)
        return Band(self.bottom, self.top, self.height, tuple(map(float, knots)))


# Demonstrations ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shown:
    """Legs as demonstrations of a world's tasks. task_of [n]: the task's name of each passage."""

    settings: Settings
    legs: tuple[Leg, ...]
    wind: Wind
    passages: tuple[Passage, ...]
    world: FlightWorld
    task_of: tuple[str, ...]

    @cached_property
    def trajectories(self) -> tuple[Trajectory, ...]:
        pairs = zip(self.passages, self.task_of, strict=True)
        return tuple(self.world.trajectory(task, p.rows, p.speed) for p, task in pairs)

    def names(self, kinds: Sequence[str] = KINDS) -> list[str]:
        return [t.name for t in self.world.settings.tasks if t.kind in kinds]

    def of_task(self, name: str) -> list[int]:
        return [n for n, task in enumerate(self.task_of) if task == name]

    @cached_property
    def slack(self) -> frozenset[int]:
        """Flights that are far slower than the others of their task, by their time."""
        found: list[int] = []
        for name in self.names():
            mine = self.of_task(name)
            slow = failed([self._timed(n) for n in mine])
            found += [n for n, is_slow in zip(mine, slow, strict=True) if is_slow]
        return frozenset(found)

    def _timed(self, n: int) -> Trajectory:
        """A flight with its time, and a go-around more where it left as no learner may."""
        t = self.trajectories[n]
        if self.settings.spare_fast or not self.world.left_too_fast(self.task_of[n], t):
            return t
        return replace(t, rewards=t.rewards - GO_AROUND / len(t))

    @cached_property
    def table(self) -> Array:
        """Speeds [n, rows], NaN where a flight was not heard."""
        found = np.full((len(self.passages), self.settings.band.rows), np.nan)
        for n, p in enumerate(self.passages):
            found[n, p.rows] = p.speed
        return found

    def errors(self, kept: Sequence[int]) -> Array:
        """How far the measured speeds of these flights are from their median, kt [n], in the row
        in which they are most alike.

        If one rule holds them there, this is how it looks in measured speeds: errors of the wind,
        of instruments and pilots.
        """
        table = self.table[list(kept)]
        low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
        row = int(np.argmin(high - low))
        if self.settings.error_kt:
            rng = np.random.default_rng([0, CALIBRATING])
            return np.asarray(self.settings.error_kt * rng.standard_normal(KNOWN))
        found = table[:, row] - middle[row]
        return np.asarray(found[np.isfinite(found)])


def show(legs: Sequence[Leg], settings: Settings) -> Shown:
    """Airspeeds in the legs' own wind, and tasks: by kind, and by miles to a row."""
    if not legs:
        raise InvalidInput("no flight of the table passes the band of altitudes")
    band = settings.band
    wind = shared_wind(legs, band)
    if not settings.knots:
        wind = replace(wind, east=0 * wind.east, north=0 * wind.north)
    found = passages(legs, band, wind)
    tasks: list[FlightTask] = []
    task_of = [""] * len(found)
    for kind in KINDS:
        mine = [n for n, p in enumerate(found) if p.kind == kind]
        middle = np.median([found[n].pace for n in mine]) if mine else 0.0
        for name, far in (("short", False), ("long", True)):
            chosen = [n for n in mine if (found[n].pace > middle) == far]
            if chosen:
                pace = float(np.median([found[n].pace for n in chosen]))
                able = what_aircraft_do([found[n] for n in mine], found, band, settings.reach)
                tasks.append(FlightTask(f"{name} {kind}", kind, pace, **able))  # type: ignore[arg-type]
            for n in chosen:
                task_of[n] = f"{name} {kind}"
    config = Config(
        tasks=tuple(tasks), bottom=settings.bottom, top=settings.top, height=settings.height,
        width=settings.width,
    )  # fmt: skip
    return Shown(settings, tuple(legs), wind, tuple(found), FlightWorld(config), tuple(task_of))


def what_aircraft_do(
    kind: Sequence[Passage], every: Sequence[Passage], band: Band, reach: float
) -> dict[str, Any]:
    """The speeds and changes of speed that are seen, as quantiles: of the kind, and the highest
    speed of all."""
    order = 1 if kind[0].kind == DEPARTURE else -1
    changes = np.concatenate([np.diff(p.speed[::order]) for p in kind])
    whole = [p.speed[::order] for p in kind if len(p.rows) == band.rows]
    low, high = 1 - reach, reach
    return {
        "gain": max(float(np.quantile(changes, high)), 0.0),
        "loss": max(-float(np.quantile(changes, low)), 0.0),
        "fastest": float(np.quantile(np.concatenate([p.speed for p in every]), high)),
        "entry": tuple(map(float, np.quantile([s[0] for s in whole], [low, high]))),
        "leaves": tuple(map(float, np.quantile([s[-1] for s in whole], [low, high]))),
    }


def demonstrations(
    shown: Shown, kinds: Sequence[str], without: frozenset[int] = frozenset()
) -> Demonstrations:
    """For a game: training and held-out flights."""
    tasks = []
    for name in shown.names(kinds):
        mine = [shown.trajectories[n] for n in shown.of_task(name) if n not in without]
        held = set(range(HELD_OUT - 1, len(mine), HELD_OUT)) or {len(mine) - 1}
        split = [tuple(t for n, t in enumerate(mine) if (n in held) == out) for out in (0, 1)]
        tasks.append(TaskDemos(name, *split))
    return Demonstrations(tuple(tasks), FEATURES, {"world": "flights"})


# The answer --------------------------------------------------------------------------------------


def form() -> ConditionalForm:
    found = parse_class(CLASS, FEATURES)
    assert isinstance(found, ConditionalForm)
    return found


def free_learners(shown: Shown, names: Sequence[str]) -> list[Behaviour]:
    """What the world's best flights do where nothing is forbidden, exactly."""
    none, solver = nothing_forbidden(FEATURES), SoftSolver(shown.settings.temperature)
    tasks = [t for t in shown.world.tasks if t.name in names]
    return [solver(Problem(task, none, 0.0, None, (0,))).behaviour for task in tasks]


def answer(experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float) -> Array:
    """The payoff player's, as numbers of the class [2]."""
    found = form()
    c = PayoffPlayer(found, 1.0, budget).update(experts, [tuple(learners)])
    theta = found.theta_of(c)
    assert theta is not None
    return theta


def experts_of(shown: Shown, names: Sequence[str], without: frozenset[int]) -> list[Behaviour]:
    return [
        behaviour_of([shown.trajectories[n] for n in shown.of_task(name) if n not in without])
        for name in names
    ]


def apart(shown: Shown, names: Sequence[str], until: float, budget: float) -> frozenset[int]:
    """Flights that are far faster up to that altitude than where the others of their task stop."""
    template = parse_template("speed <= ?", FEATURES)
    found: list[int] = []
    for name in names:
        labelled = [
            (str(n), _below(shown.trajectories[n], until))
            for n in shown.of_task(name)
            if n not in shown.slack
        ]
        found += [int(finding.where) for finding in standing_apart(template, labelled, budget)]
    return frozenset(found)


def _below(t: Trajectory, until: float) -> Trajectory:
    """The steps of an episode up to an altitude."""
    steps = np.flatnonzero(t.features[:, 0] <= until)
    states = np.append(steps, steps[-1] + 1)
    return Trajectory(
        t.observations[states], t.actions[steps], t.rewards[steps], t.features[steps], t.terminated
    )


@dataclass(frozen=True, eq=False)
class Learned:
    """Of some kinds of flights: per budget [B, 2] the player's answer to all but the slack flights,
    then without those apart, and the rule, of which the median is handed back; errors: kt, with
    which speeds are seen."""

    kinds: tuple[str, ...]
    flights: int
    slack: frozenset[int]
    apart: frozenset[int]
    errors: Array
    first: Array
    answers: Array
    rules: Array

    @property
    def rule(self) -> Array:
        return np.median(self.rules, axis=0)

    @property
    def bias(self) -> Array:
        """What the method adds to a rule [B, 2]."""
        return self.answers - self.rules


def learn(shown: Shown, kinds: Sequence[str] = KINDS) -> Learned:
    """The rule that flights of these kinds keep."""
    names = shown.names(kinds)
    mine = [n for name in names for n in shown.of_task(name)]
    slack = shown.slack & frozenset(mine)
    learners, budgets = free_learners(shown, names), shown.settings.budgets
    experts = experts_of(shown, names, slack)
    first = np.array([answer(experts, learners, b) for b in budgets])
    gone: frozenset[int] = frozenset()
    if shown.settings.drop_apart:
        gone = apart(shown, names, float(np.median(first[:, ALTITUDE])), min(budgets))
        experts = experts_of(shown, names, slack | gone)
    answers = np.array([answer(experts, learners, b) for b in budgets])
    everybody = range(len(shown.legs))  # errors are not of a kind of flight
    errors = shown.errors([n for n in everybody if n not in shown.slack | gone])
    rules = [
        calibrated(shown, names, learners, given, b, errors)
        for given, b in zip(answers, budgets, strict=True)
    ]
    return Learned(tuple(kinds), len(mine), slack, gone, errors, first, answers, np.array(rules))


def calibrated(
    shown: Shown,
    names: Sequence[str],
    learners: Sequence[Behaviour],
    given: Array,
    budget: float,
    errors: Array,
) -> Array:
    """The rule whose own best flights, seen with errors, would have got the given answer."""
    config = shown.world.settings
    tasks = [t for t in config.tasks if t.name in names]
    rule = given
    for _ in range(ROUNDS):
        known = [seen(config, fastest(config, t, *rule) + errors[:, None]) for t in tasks]
        rule = rule + given - answer(known, learners, budget)
    return rule


def seen(config: Config, speeds: Array) -> Behaviour:
    """Flights through the whole band, speeds [n, rows], as a behaviour."""
    n, rows = speeds.shape
    features = np.stack([np.tile(config.altitudes[1:-1], n), speeds.ravel()], axis=1)
    return Behaviour(features, np.full(n * rows, 1 / n), 0.0, 0.0, float(rows), n)
