"""Worlds without physics for policy players: reward, features and death depend on the action and on
the time alone, so that each shows one difficulty and is learned in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.activated import Activated
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Feature, Problem
from ringfence.worlds.sim.rollouts import CollectorSpec, LocalCollector, Step


@dataclass(frozen=True)
class Toy:
    """move: (share of the episode that is over [N], actions [N, a]) -> (reward [N], the features
    [N] each, dead [N]); what is seen is that share, and 1. pay: what rewards are multiplied with.
    """

    name: str
    features: tuple[Feature, ...]
    move: Callable
    actions: int = 1
    horizon: int = 50
    choices: tuple[int, ...] = ()
    pay: float = 1.0
    observation_dim: int = 2

    @property
    def action_low(self):
        return np.zeros(len(self.choices)) if self.choices else -np.ones(self.actions)

    @property
    def action_high(self):
        return np.array(self.choices) - 1.0 if self.choices else np.ones(self.actions)

    def collector(self, spec: CollectorSpec):
        return LocalCollector(self, ToySimulator(self, spec.copies), spec)


class ToySimulator:
    def __init__(self, task: Toy, copies: int) -> None:
        self.copies, self._task, self._over = copies, task, np.zeros(copies)

    def reset(self, which, rngs):
        self._over[which] = 0.0
        return self._observe()

    def step(self, actions):
        reward, features, dead = self._task.move(self._over, actions)
        self._over = self._over + 1 / self._task.horizon
        return Step(self._observe(), self._task.pay * reward, np.column_stack(features), dead)

    def save(self):
        return {"over": self._over.copy()}

    def restore(self, saved):
        self._over = saved["over"].copy()
        return self._observe()

    def close(self):
        pass

    def _observe(self):
        return np.column_stack([self._over, np.ones(self.copies)])


def alive(over):
    return np.zeros(len(over), np.bool_)


def gain(speed):
    """The most is 1, at a speed of 1 (the middle of what can be gone forwards); 0.51 at 0.3."""
    return speed * (2 - speed)


def drive(over, a):
    speed = 2 * a[:, 0]
    return gain(speed), [speed], alive(over)


def drive_to_the_edge(over, a):
    return a[:, 0], [a[:, 0]], alive(over)


def drive_two(over, a):
    return gain(2 * a).sum(axis=1), [2 * a[:, 0], 2 * a[:, 1]], alive(over)


def drive_late(over, a):
    """Only the last fifth of an episode is looked at."""
    speed = 2 * a[:, 0]
    return gain(speed), [np.where(over > 0.8, speed, 0.0)], alive(over)


def drive_in_gusts(over, a):
    """A wind moves the speed by up to 0.5 m/s, so that single steps are over a limit."""
    speed = 2 * a[:, 0] + 0.5 * np.sin(97 * over)
    return gain(speed), [speed], alive(over)


def drive_mortal(over, a):
    """The second action ends the episode, and with it all that the first might cost."""
    speed = 2 * a[:, 0]
    return gain(speed), [speed], a[:, 1] > 0.8


def choose_speed(over, a):
    """Speeds of -1, -0.5, 0, 0.5 and 1; a second choice, if there is one, is right at 1."""
    speed = a[:, 0] / 2 - 1
    return speed + (a[:, 1] == 1 if a.shape[1] > 1 else 0.0), [speed], alive(over)


SPEED = Feature("speed", "m/s")
ROAD = Toy("road", (SPEED,), drive)
TWO = Toy("two", (SPEED, Feature("climb", "m/s")), drive_two, actions=2)
GUSTY = Toy("gusty", (SPEED,), drive_in_gusts)
LATE = Toy("late", (SPEED,), drive_late)
MORTAL = Toy("mortal", (SPEED,), drive_mortal, actions=2)
FIVE = Toy("five", (SPEED,), choose_speed, choices=(5,))
FIVE_BY_THREE = Toy("five by three", (SPEED,), choose_speed, choices=(5, 3))


def limited(task: Toy, *limits: tuple[str, float], counted: bool = False, **more) -> Problem:
    """The task under an inequality with its limit, or several; counted: a step beyond costs 1."""
    parts = [parse_inequality(text, task.features) for text, _ in limits]
    parts = [Activated(part, "steps") for part in parts] if counted else parts
    deltas = tuple(delta for _, delta in limits)
    c = parts[0] if len(parts) == 1 else Conjunction(tuple(parts))
    return Problem(task, c, sum(deltas), None, (0,), deltas=deltas, **more)
