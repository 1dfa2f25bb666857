"""One environment driven by given actions: the same as it ever was, or an error in words."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from own_cart import Cart
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.worlds.gym import GymTask
from ringfence.worlds.named import Named
from ringfence.worlds.sim.replay import TRIAL_STEPS, first_difference, replay, trial


def cart(env: str = "own_cart:make_cart", **changes: Any) -> GymTask:
    return GymTask(env, (Feature("speed", "m/s"),), steps=50, **changes)


class Ends(Cart):
    """It ends by itself above 0.5 m/s."""

    def step(self, action):
        seen, reward, _, _, info = super().step(action)
        return seen, reward, self.speed > 0.5, False, info


class Breaks(Cart):
    def step(self, action):
        raise RuntimeError("motor driver lost")


class Vanishes(Cart):
    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float("nan"), *rest


class OneArray(Cart):
    """It writes every observation into one array, as some do to be fast."""

    def reset(self, *, seed=None, options=None):
        self.seen, info = super().reset(seed=seed)
        return self.seen, info

    def step(self, action):
        seen, *rest = super().step(action)
        self.seen[:] = seen
        return self.seen, *rest


def made(kind: type[gymnasium.Env]) -> GymTask:
    return cart(kind.__name__, maker=kind)


def test_a_replay_is_what_the_environment_answers() -> None:
    actions = np.linspace(-1, 1, 10)[:, None]
    env = Cart()
    seen = [env.reset(seed=3)[0]]
    seen += [env.step(a.astype(np.float32))[0] for a in actions]
    found = replay(cart(), 3, actions)
    np.testing.assert_array_equal(found.observations, np.array(seen, np.float64))
    np.testing.assert_allclose(found.features[:, 0], found.rewards)
    assert (len(found), found.terminated) == (10, False)


def test_it_stops_where_the_episode_ends() -> None:
    found = replay(made(Ends), 0, np.ones((20, 1)))
    assert found.terminated
    assert len(found) == len(found.observations) - 1 < 20


def test_the_tasks_reward_stands_in_the_environments_place() -> None:
    task = cart(reward=Named("own_cart:slowly"))
    found = replay(task, 0, np.ones((5, 1)))
    np.testing.assert_allclose(found.rewards, -found.observations[1:, 0], rtol=1e-6)


def test_observations_are_copies() -> None:
    found = replay(made(OneArray), 0, np.ones((5, 1)))
    assert len(np.unique(found.observations)) == 6


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Breaks, "an episode failed with RuntimeError: motor driver lost .*test_replay.py, line"),
        (Vanishes, "a step gave an observation or reward not finite"),
    ],
)
def test_what_goes_wrong_is_one_line(kind: type[gymnasium.Env], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replay(made(kind), 0, np.ones((5, 1)))


def test_a_trial_is_the_same_steps_for_every_task() -> None:
    one, two = trial(cart()), trial(cart(reward=Named("own_cart:slowly")))
    assert len(one) == TRIAL_STEPS
    np.testing.assert_array_equal(one.observations, two.observations)
    assert not np.array_equal(one.rewards, two.rewards)


def test_arrays_differ_from_where_more_than_rounding_is_between_them() -> None:
    one = np.arange(12.0).reshape(6, 2)
    two = one.copy()
    two[4, 1] += 0.01
    assert first_difference(one, two) == 4
    assert first_difference(one, one.astype(np.float32) * (1 + 1e-7)) is None
    assert first_difference(one, one[:3]) is None
    assert first_difference(np.zeros(3), np.array([0.0, 1.0, 0.0])) == 1
