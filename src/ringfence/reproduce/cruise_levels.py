"""A second rule that no column names: which flight levels are flown in which direction.

Aircraft in cruise choose a level; neighbouring ones are 1,000 ft apart, odd and even thousands in
turn. A finite world of one task: a flight with a track in one of twelve sectors picks an odd or an
even level. All levels pay the same, so who knows of no rule takes either. What pilots avoid that
such learners do is the table that ICL learns; slips are paid by the demonstrators' own limit
(Algorithm 2). The truth is read last, in `levels`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ringfence import api
from ringfence.demos.flights import cleaning, positions
from ringfence.demos.flights.cleaning import Flight
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.rows import Found, Row
from ringfence.reproduce.study import Study, Summary
from ringfence.worlds.tables import TableWorld, table_world

SECTORS = 12
#: Not chosen yet, and the two kinds of levels: the rows of the table.
OPEN, EVEN, ODD = 0, 1, 2
#: A cruise: within so many ft of a full thousand, in this band (ft), for so many rows.
NEAR, BAND, FEWEST = 60.0, (28500.0, 41500.0), 10
HELD_OUT = 5


def cruises(flights: Sequence[Flight]) -> list[tuple[int, int]]:
    """(sector of the mean track, EVEN or ODD) of every level that a flight kept."""
    found = []
    for flight in flights:
        level = np.round(flight.altitude / 1000)
        steady = np.abs(flight.altitude - 1000 * level) <= NEAR
        steady &= (flight.altitude > BAND[0]) & (flight.altitude < BAND[1])
        for one in np.unique(level[steady]):
            rows = steady & (level == one)
            if rows.sum() >= FEWEST:
                mean = np.angle(np.exp(1j * flight.track[rows]).mean()) % (2 * np.pi)
                sector = int(mean / (2 * np.pi) * SECTORS) % SECTORS
                found.append((sector, ODD if one % 2 else EVEN))
    return found


def world_of(chosen: Sequence[tuple[int, int]]) -> TableWorld:
    """Cells (OPEN, EVEN, ODD) x sectors: a flight starts in its sector and takes a level."""
    S = 3 * SECTORS
    P = np.zeros((S, 2, S))
    for sector in range(SECTORS):
        for action, kind in enumerate((EVEN, ODD)):
            P[sector, action, kind * SECTORS + sector] = 1.0
            P[kind * SECTORS + sector, :, kind * SECTORS + sector] = 1.0
    start = np.bincount([sector for sector, _ in chosen], minlength=S) / len(chosen)
    places = np.indices((3, SECTORS)).reshape(2, -1).T.astype(np.float64)
    features = (Feature("kind of level", "1"), Feature("sector", "1"))
    return table_world(
        P, {"cruise": np.zeros((S, 2))}, start, horizon=2, name="cruise levels",
        features=features, values=places,
    )  # fmt: skip


def demonstrations(world: TableWorld, chosen: Sequence[tuple[int, int]]) -> Demonstrations:
    made = []
    for sector, kind in chosen:
        states = np.array([sector, kind * SECTORS + sector])
        actions = np.array([[kind - EVEN], [0]], np.float64)
        path = np.append(states, states[-1])[:, None].astype(np.float64)
        made.append(Trajectory(path, actions, np.zeros(2), world.tasks[0].phi[states, 0], False))
    held = made[HELD_OUT - 1 :: HELD_OUT]
    train = [t for n, t in enumerate(made) if n % HELD_OUT != HELD_OUT - 1]
    return Demonstrations((TaskDemos("cruise", tuple(train), tuple(held)),), world.features, {})


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    began = time.monotonic()
    flights, dropped = cleaning.clean(positions.read(study.data, positions.SWITZERLAND))
    half = variant.get("flights").get("half")
    chosen = cruises(flights if half is None else cleaning.of_half(flights, half))
    if not chosen:
        raise InvalidInput("no aircraft of the table is in cruise")
    world = world_of(chosen)
    learned = api.learn(
        world,
        demonstrations(world, chosen),
        "table",
        seed=seed,
        settings={
            "game": {"method": "icl", "iterations": 2, "extra": 0},
            "player": {"kind": "regression", "restricted": False},  # pilots slip
        },
    )
    counts = np.zeros((3, SECTORS), int)
    np.add.at(counts, ([k for _, k in chosen], [s for s, _ in chosen]), 1)
    c = None if learned.constraint is None else learned.constraint.constraint
    forbidden = np.zeros((3, SECTORS), bool)
    if c is not None:
        forbidden = c.cost(world.tasks[0].phi[:, 0]).reshape(3, SECTORS) > 0
    summary = {
        "schema": 2,
        "cruises": len(chosen),
        "rows_used": dropped.used,
        "odd": counts[ODD].tolist(),
        "even": counts[EVEN].tolist(),
        "forbidden_odd": forbidden[ODD].tolist(),
        "forbidden_even": forbidden[EVEN].tolist(),
        "doubts": learned.summary["doubts"],
    }
    return summary, time.monotonic() - began


def levels(study: Study) -> Found:
    """Sector by sector, held against the rule: options.odd, the tracks (degrees) of odd levels."""
    first, last = study.options["odd"]
    rows = []
    for variant in study.variants:
        for summary in study.summaries(variant).values():
            for sector in range(SECTORS):
                low, high = (360 // SECTORS * n for n in (sector, sector + 1))
                odd, even = summary["odd"][sector], summary["even"][sector]
                no_odd, no_even = (summary[f"forbidden_{k}"][sector] for k in ("odd", "even"))
                said = {(False, True): "odd", (True, False): "even"}.get((no_odd, no_even), "any")
                true = "odd" if first <= low and high - 1 <= last else "even"
                rows.append({
                    "half": variant.name, "track": f"{low:03d} to {high - 1:03d}", "odd": odd,
                    "even": even, "share_odd": odd / max(odd + even, 1), "learned": said,
                    "rule": true,
                })  # fmt: skip
    right, unsaid = (sum(f(r) for r in rows) for f in (_right, lambda r: r["learned"] == "any"))
    facts = {"sectors": len(rows), "right": right, "open": unsaid}
    return Found(rows, {**facts, "wrong": len(rows) - right - unsaid})


def _right(row: Row) -> bool:
    return bool(row["learned"] == row["rule"])
