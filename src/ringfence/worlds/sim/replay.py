"""One environment of a task, driven by given actions: to try it out, and to replay logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput, RingfenceError
from ringfence.objects import Array
from ringfence.worlds.gym import GymTask
from ringfence.worlds.named import blame
from ringfence.worlds.patience import waiting_for
from ringfence.worlds.sim.shapes import Shaped
from ringfence.worlds.sim.sources import FeatureReader

#: A trial's steps, and the seed of its reset and its actions.
TRIAL_STEPS, TRIAL_SEED = 25, 0
#: Observations and rewards are the same up to this share of their own size (logs are often
#: float32, whose numbers have 7 digits).
SAME = 1e-5
#: Up to this share they were rounded when they were recorded (goals to four digits, say).
ROUNDED = 1e-3


@dataclass(frozen=True, eq=False)
class Replay:
    """What the environment answered: observations [t+1, o], rewards [t], features [t, d]."""

    observations: Array
    rewards: Array
    features: Array
    terminated: bool

    def __len__(self) -> int:
        return len(self.rewards)


def replay(task: GymTask, seed: int, actions: Array) -> Replay:
    """Reset with the seed and take the actions [T, a], until the episode ends or they do."""
    return replay_in_order(task, [(seed, actions)])[0]


def replay_in_order(task: GymTask, episodes: Sequence[tuple[int, Array]]) -> list[Replay]:
    """Episodes (seed, actions) one after the other in one environment, as they were recorded: some
    environments' first step depends on the resets before."""
    env = Shaped(task.make())
    try:
        with waiting_for(f"an episode of {task.name}"):
            return [_run(task, env, seed, actions) for seed, actions in episodes]
    except RingfenceError as problem:
        raise InvalidInput(str(problem)) from problem
    except (Exception, SystemExit) as problem:  # anyone's environment may raise anything
        raise InvalidInput(f"{task.name}: an episode failed with {blame(problem)}") from problem
    finally:
        env.close()


def _run(task: GymTask, env: Any, seed: int, actions: Array) -> Replay:
    reader = FeatureReader(task.features, task.transition or task.sources, task.name)
    # copies: an environment may write its next observation into the same array
    after = np.array(env.reset(seed=seed)[0], np.float64)
    seen, rewards, features, terminated = [after], [], [], False
    for action, given in zip(actions, task.given(actions), strict=True):
        before = after
        raw, reward, terminated, truncated, info = env.step(given)
        after = np.array(raw, np.float64)
        seen.append(after)
        if task.reward is not None:
            step = (x[None].astype(np.float64) for x in (before, action, after))
            reward = np.asarray(task.reward(*step), np.float64).reshape(1)[0]
        rewards.append(float(reward))
        features.append(reader.one(before, action, after, info)[0])
        if not (np.isfinite(after).all() and np.isfinite(reward)):
            raise InvalidInput(f"{task.name}: a step gave an observation or reward not finite")
        if terminated or truncated:
            break
    return Replay(np.array(seen), np.array(rewards), np.array(features), bool(terminated))


def trial(task: GymTask) -> Replay:
    """A few random steps, the same ones for every task with the same actions."""
    shape = (TRIAL_STEPS, len(task.action_low))
    share = np.random.default_rng(TRIAL_SEED).random(shape)
    if task.choices:
        return replay(task, TRIAL_SEED, task.action_low + np.floor(share * task.choices))
    actions = task.action_low + share * (task.action_high - task.action_low)
    return replay(task, TRIAL_SEED, actions)


def first_difference(one: Array, two: Array, share: float = SAME) -> int | None:
    """The first row in which two arrays differ by more than a share of their size, or None."""
    n = min(len(one), len(two))
    one, two = (np.asarray(x[:n], np.float64).reshape(n, -1) for x in (one, two))
    size = np.maximum(1.0, np.maximum(np.abs(one), np.abs(two)))
    rows = np.flatnonzero((np.abs(one - two) > share * size).any(axis=1))
    return int(rows[0]) if len(rows) else None
