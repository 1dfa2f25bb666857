"""Who beats the demonstrators: bounds, not luck; and whose returns can be compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ringfence.analysis.evidence.witnesses import (
    Shown,
    Statement,
    Tried,
    beats,
    beyond_best,
    least_return,
    mean_bound,
    other_starts,
    statements,
)
from ringfence.objects import Trajectory

HORIZON = 4


def earning(
    total: float, start: float = 0.0, steps: int = HORIZON, ended: bool = False
) -> Trajectory:
    """An episode with that return."""
    seen = np.full((steps + 1, 1), start)
    rewards = np.full(steps, total / steps)
    return Trajectory(seen, np.zeros((steps, 1)), rewards, np.zeros((steps, 1)), ended)


def shown(*returns: float) -> Shown:
    return Shown("task", HORIZON, [earning(r) for r in returns])


def test_bounds_are_students() -> None:
    returns = np.array([1.0, 2.0, 3.0, 4.0])
    width = stats.t.ppf(0.95, 3) * np.sqrt(5 / 3) / 2
    assert mean_bound(returns, 1, 0.05) == pytest.approx(2.5 + width)
    assert mean_bound(returns, -1, 0.05) == pytest.approx(2.5 - width)
    assert mean_bound(np.full(3, 7.0), -1, 0.01) == 7.0


def test_bounds_are_wrong_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    wrong = [mean_bound(rng.normal(0, 1, 8), -1, 0.05) > 0 for _ in range(4000)]
    assert 0.038 < np.mean(wrong) < 0.062


@pytest.mark.parametrize("best", [100.0, -100.0])
@pytest.mark.parametrize("slack", [0.0, 0.05, 0.5])
def test_the_bar_is_the_best_return_of_demonstrators_who_missed_the_slack(
    best: float, slack: float
) -> None:
    assert beyond_best(best - slack * abs(best), slack) == pytest.approx(best)


def test_more_candidates_and_more_spread_make_a_witness_harder() -> None:
    steady = Tried(0, "steady", [earning(r) for r in (9.9, 10.0, 10.1, 10.0)])
    lucky = Tried(0, "lucky", [earning(r) for r in (0.0, 0.0, 0.0, 100.0)])
    assert least_return(steady, HORIZON, 1) > least_return(steady, HORIZON, 50) > 9.5
    assert least_return(lucky, HORIZON, 1) < 0  # its mean is 25
    (bar,) = statements([shown(*[9.0] * 5)], [], slack=0.0)
    assert beats(least_return(steady, HORIZON, 2), bar)
    assert not beats(least_return(lucky, HORIZON, 2), bar)


def test_equal_returns_beat_nobody() -> None:
    (bar,) = statements([shown(*[0.1 + 0.2] * 5)], [], slack=0.0)
    assert not beats(least_return(Tried(0, "same", shown(*[0.3] * 5).episodes), HORIZON, 1), bar)


def told(group: Shown, *tried: Tried) -> Statement:
    (statement,) = statements([group], tried, slack=0.0)
    return statement


def test_cut_demonstrations_do_not_testify_and_cut_policies_are_no_witnesses() -> None:
    cut = earning(1.0, steps=3)
    found = told(Shown("task", HORIZON, [*shown(1, 1, 1, 1).episodes, cut]))
    assert not found.testifies
    assert "1 of 5 demonstrations stop before 4 steps" in found.reason
    ended = earning(1.0, steps=3, ended=True)
    assert told(Shown("task", HORIZON, [*shown(1, 1, 1, 1).episodes, ended])).testifies
    assert least_return(Tried(0, "cut", [cut, cut]), HORIZON, 1) == -np.inf


def test_a_few_demonstrations_do_not_testify() -> None:
    assert not told(shown(1, 1, 1, 1)).testifies
    assert not told(shown(1)).testifies
    assert told(shown(1, 1, 1, 1, 1)).testifies


def test_rounding_is_no_other_start() -> None:
    shown = [earning(1.0, start) for start in (0.1, -0.1) * 10]
    fresh = [earning(1.0, float(np.float32(start))) for start in (0.1, -0.1) * 10]
    assert not other_starts(shown, fresh)
    assert other_starts(shown, [earning(1.0, 0.3)] * 40)
    assert not other_starts([earning(1.0, 0.0)] * 5, [earning(1.0, 0.0)] * 5)


def test_demonstrators_who_start_elsewhere_do_not_testify() -> None:
    rng = np.random.default_rng(1)
    group = Shown("task", HORIZON, [earning(1.0, start) for start in rng.normal(0, 1, 20)])
    same = [earning(1.0, start) for start in rng.normal(0, 1, 50)]
    other = [earning(1.0, start) for start in rng.normal(3, 1, 50)]
    assert not other_starts(group.episodes, same)
    assert told(group, Tried(0, "same", same)).testifies
    found = told(group, Tried(0, "other", other))
    assert not found.testifies
    assert "start elsewhere" in found.reason
