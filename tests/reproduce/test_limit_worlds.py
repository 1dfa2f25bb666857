"""Each small world's threshold is broken by who goes for the reward alone, and can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from ringfence.constraints.written import parse_constraint
from ringfence.objects import Array, Feature
from ringfence.reproduce import limit_worlds
from ringfence.reproduce.experiment import Variant, read
from ringfence.worlds.named import find

Policy = Callable[[Array], Any]
#: Of the slow road fewer.
EPISODES, DRIVES = 20, 4


def made(world: dict[str, Any]) -> Any:
    name = world["env"]
    return find(name)() if ":" in name else gymnasium.make(name, max_episode_steps=-1)


def beyond(variant: Variant, policy: Policy) -> list[int]:
    """How many steps of each episode are beyond the constraint."""
    world, counts = variant.get("world"), []
    features = [Feature(f["name"], f["unit"]) for f in world["features"]]
    c = parse_constraint(variant.get("training")["constraint"], features)
    env = made(world)
    steps = world.get("steps", 200)
    for seed in range(DRIVES if "highway" in world["env"] else EPISODES):
        seen, count = flat(env.reset(seed=seed)[0]), 0
        for _ in range(steps):
            observation, _, ended, _, info = env.step(policy(seen))
            seen = flat(observation)
            phi = [
                seen[f["column"]] if "column" in f else info[f["name"]] for f in world["features"]
            ]
            count += int(c.raw([phi])[0] > 0)
            if ended:
                break
        counts.append(count)
    env.close()
    return counts


def flat(observation: Any) -> Array:
    """A goal environment's as the task has it: by the order of its keys."""
    if isinstance(observation, dict):
        return np.concatenate([observation[key] for key in sorted(observation)])
    return np.asarray(observation)


def to_the_goal(seen: Array) -> Array:
    return np.clip((seen[2:4] - seen[:2]) / limit_worlds.STRIDE, -1, 1)


def swing_up(seen: Array) -> Array:
    """Pumps energy into a pendulum (cos, sin, speed) until it would reach the top."""
    energy = 0.5 * seen[2] ** 2 + 15 * seen[0]
    return np.array([2.0 * np.sign(seen[2]) * np.sign(15 - energy)])


def balance(target: float) -> Policy:
    """A cart that goes to a place, and keeps its pole upright."""

    def act(seen: Array) -> int:
        x, v, angle, turn = seen
        return int(angle + 0.25 * turn + 0.1 * np.clip(x - target, -1, 1) + 0.15 * v > 0)

    return act


WORLDS: dict[str, tuple[Policy, Policy]] = {
    "point-0": (to_the_goal, lambda _: np.zeros(2)),
    "pendulum-0": (swing_up, lambda seen: np.clip(-5 * seen[2:3], -2, 2)),
    "car-0": (lambda seen: np.sign(seen[1:2]), lambda _: np.zeros(1)),
    "cart-0": (balance(2.0), balance(0.5)),
    "maze-0": (lambda seen: np.array([1.0, 0.0]), lambda _: np.zeros(2)),
    "highway-0": (lambda _: np.ones(1), lambda _: -np.ones(1)),
}
NEEDED = {"maze-0": "gymnasium_robotics", "highway-0": "highway_env"}


@pytest.mark.parametrize("name", WORLDS)
def test_a_threshold_is_broken_by_the_reckless_and_kept_by_the_careful(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    variant = read("limits").variants[name]
    reckless, careful = (np.array(beyond(variant, policy)) for policy in WORLDS[name])
    assert (reckless > 0).mean() >= 0.5
    assert not careful.any()


@pytest.mark.parametrize("name", WORLDS)
def test_a_seed_and_actions_give_the_same_episode_again(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    env = made(read("limits").variants[name].get("world"))
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(10)]

    def episode(seed: int) -> list[Array]:
        seen = [flat(env.reset(seed=seed)[0])]
        return seen + [flat(env.step(action)[0]) for action in actions]

    first, *others = [episode(seed) for seed in (2, 3, 4)]
    assert not all(np.array_equal(first, other) for other in others)
    assert np.array_equal(first, episode(2))


def test_the_limit_that_is_too_strict_is_beyond_the_fastest_walk() -> None:
    variant = read("limits").variants["point-unkeepable"]
    counts = beyond(variant, lambda _: np.array([1.0, 0.0]))
    assert min(counts) >= 13 > variant.get("training")["delta"]


def test_a_point_stays_on_its_floor_and_is_paid_for_its_distance() -> None:
    env = limit_worlds.Point()
    first, _ = env.reset(seed=3)
    assert np.array_equal(first, env.reset(seed=3)[0])
    for _ in range(60):
        seen, reward, *ended, _ = env.step(np.array([5.0, -5.0]))
        assert reward == pytest.approx(-np.hypot(*(seen[2:] - seen[:2])))
        assert ended == [False, False]
    assert seen[:2].tolist() == [1.0, -1.0]
    assert np.array_equal(seen[2:], first[2:])


def test_a_noisy_point_is_paid_as_much_more_or_less_each_time_and_the_same_from_a_seed() -> None:
    def extra(noise: float) -> Array:
        env = limit_worlds.Point((0.8, 0.8), [(0.0, 0.0)], noise=noise)
        env.reset(seed=1)
        return np.array([env.step(np.zeros(2))[1] for _ in range(500)]) + np.hypot(0.8, 0.8)

    assert np.abs(extra(0.0)).max() < 1e-12
    assert extra(0.5).std() == pytest.approx(0.5, rel=0.1)
    assert abs(extra(0.5).mean()) < 0.07
    assert np.array_equal(extra(0.5), extra(0.5))


def test_speed_in_the_plane_is_of_both_velocities() -> None:
    class Told(limit_worlds.Point):
        def step(self, action: Array) -> Any:
            *rest, _ = super().step(action)
            return *rest, {"x_velocity": -3.0, "y_velocity": 4.0}

    env = limit_worlds.PlanarSpeed(Told())
    env.reset(seed=0)
    assert env.step(np.zeros(2))[-1] == {"x_velocity": -3.0, "y_velocity": 4.0, "speed": 5.0}


def test_rewards_are_for_place_and_height() -> None:
    after = np.array([[0.5, 0.0], [-np.pi / 6, 0.0]])
    assert limit_worlds.cart_reward(after, after, after).tolist() == [1.5, 1 - np.pi / 6]
    force = np.array([[0.0], [2.0]])
    assert limit_worlds.car_reward(after, force, after) == pytest.approx([1 + np.sin(1.5), -0.4])
