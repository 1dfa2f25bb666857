"""A finite world of altitudes and speeds, where flying fast is forbidden below."""

from __future__ import annotations

from itertools import product

import numpy as np

from ringfence.objects import Demonstrations, Feature, TaskDemos
from ringfence.solvers import soft
from ringfence.worlds.finite import rollout
from ringfence.worlds.tables import TableWorld, table_world

ALTITUDES, SPEEDS = np.arange(0, 16_000, 2000), np.arange(200, 400, 25)
FEATURES = (Feature("altitude", "ft"), Feature("speed", "kt"))
MOVES = tuple(product((-1, 0, 1), (-1, 0, 1)))


def altitude_world(limit: float = 250, below: float = 8000) -> TableWorld:
    """States (altitude, speed); a step changes either by one. The tasks are paid for speed, and for
    staying low or climbing beside it."""
    states = list(product(range(len(ALTITUDES)), range(len(SPEEDS))))
    number = {state: n for n, state in enumerate(states)}
    P = np.zeros((len(states), len(MOVES), len(states)))
    for (a, v), (k, (up, faster)) in product(states, enumerate(MOVES)):
        then = np.clip([a + up, v + faster], 0, [len(ALTITUDES) - 1, len(SPEEDS) - 1])
        P[number[(a, v)], k, number[(int(then[0]), int(then[1]))]] = 1
    values = np.array([[ALTITUDES[a], SPEEDS[v]] for a, v in states], np.float64)
    high, fast = values[:, 0] / 16_000, values[:, 1] / 400
    rewards = {"fast": fast, "low": fast - high, "climb": fast + high}
    forbidden = np.flatnonzero((values[:, 0] <= below) & (values[:, 1] > limit))
    return table_world(
        P, rewards, start=number[(0, 0)], horizon=20, features=FEATURES, values=values,
        forbidden=forbidden.tolist(),
    )  # fmt: skip


def flights(world: TableWorld, paths: int = 8, temperature: float = 0.1) -> Demonstrations:
    """Nearly optimal flights that keep the rule, half of them held out."""
    tasks = []
    for k, task in enumerate(world.tasks):
        cost = np.repeat(world.true.walls[:, None], len(MOVES), axis=1).astype(float)
        pi, _ = soft.solve(task.mdp, cost, 0.0, temperature)
        rngs = [np.random.default_rng([k, n]) for n in range(2 * paths)]
        start = int(np.argmax(task.mdp.start))
        flown = [rollout(task, pi, start, rng, 0.0) for rng in rngs]
        tasks.append(TaskDemos(task.name, tuple(flown[:paths]), tuple(flown[paths:])))
    return Demonstrations(tuple(tasks), world.features, {})
