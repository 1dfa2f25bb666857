"""One setting for all worlds: what depends on a training's length, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.solvers.ppo_settings import (
    LAST_NOISE,
    LONG,
    SHORT,
    Pace,
    PPOConfig,
)


def test_a_short_training_makes_smaller_rollouts_and_learns_more_from_each() -> None:
    short, long = PPOConfig(env_steps=100_000), PPOConfig(env_steps=3_000_000)
    assert short.rollout < long.rollout
    assert short.pace.passes > long.pace.passes
    assert PPOConfig(passes=3).pace.passes == 3
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


@pytest.mark.parametrize("pace", [LONG, SHORT])
def test_noise_stays_until_limits_are_kept_and_then_falls(pace: Pace) -> None:
    first, loud = -1.0, pace.least_falls[0]
    assert pace.noise_bounds(loud, 0.0, first) == pytest.approx((np.log(pace.least_noise), first))
    shares = (0.0, 0.1, 0.3, pace.quiet_for)
    low, high = zip(*(pace.noise_bounds(loud, calm, first) for calm in shares), strict=True)
    assert list(low) == sorted(low, reverse=True)
    assert list(high) == sorted(high, reverse=True)
    assert high[-1] == pytest.approx(np.log(LAST_NOISE))


@pytest.mark.parametrize("pace", [LONG, SHORT])
def test_noise_may_fall_at_the_end_where_limits_are_never_kept(pace: Pace) -> None:
    least, most = pace.noise_bounds(pace.least_falls[1], 0.0, -1.0)
    assert least == pytest.approx(np.log(0.01 * pace.least_noise))
    assert most == -1.0
