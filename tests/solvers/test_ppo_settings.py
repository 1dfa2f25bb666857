"""One setting for all worlds: what depends on a training's length, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.solvers.ppo_settings import (
    LAST_NOISE,
    LEAST_NOISE,
    NOISY_FROM,
    NOISY_UNTIL,
    QUIET_FOR,
    PPOConfig,
    noise_bounds,
)


def test_a_short_training_makes_smaller_rollouts_and_learns_more_from_each() -> None:
    short, long = PPOConfig(env_steps=100_000), PPOConfig(env_steps=3_000_000)
    assert short.rollout < long.rollout
    assert short.rollout_passes > long.rollout_passes
    assert PPOConfig(passes=3).rollout_passes == 3
    assert PPOConfig(steps=7, minibatches=7).rollout == 7 * PPOConfig().copies


def test_there_is_at_least_one_update() -> None:
    assert PPOConfig(env_steps=1).updates == 1
    assert PPOConfig(env_steps=1_000_000).updates == 1_000_000 // PPOConfig().rollout


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"env_steps": 0}, "env_steps must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"evaluation_episodes": 1}, "evaluation_episodes must be at least 2"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"discount": -1.0}, r"discount must be in \[0, 1\], got -1.0"),
        ({"margin": 1.0}, r"margin must be in \[0, 1\)"),
        ({"copies": 3, "steps": 3}, "does not divide into 8 minibatches"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(settings: dict, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        PPOConfig(**settings)


def test_noise_stays_until_limits_are_kept_and_then_falls() -> None:
    first, least = -1.0, np.log(LEAST_NOISE)
    assert noise_bounds(NOISY_FROM, 0.0, first) == pytest.approx((least, first))
    shares = (0.0, 0.1, 0.3, QUIET_FOR)
    low, high = zip(*(noise_bounds(NOISY_FROM, calm, first) for calm in shares), strict=True)
    assert list(low) == sorted(low, reverse=True)
    assert list(high) == sorted(high, reverse=True)
    assert noise_bounds(1.0, QUIET_FOR, first)[1] == pytest.approx(np.log(LAST_NOISE))


def test_noise_may_fall_at_the_end_where_limits_are_never_kept() -> None:
    least, most = noise_bounds(NOISY_UNTIL, 0.0, -1.0)
    assert least == pytest.approx(np.log(0.01 * LEAST_NOISE))
    assert most == -1.0
