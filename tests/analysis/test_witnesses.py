"""Who beats the demonstrators: bounds, not luck; and whose returns can be compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ringfence.analysis.evidence.witnesses import (
    ERROR,
    Claim,
    Shown,
    Statement,
    Tried,
    beats,
    beyond_best,
    bounds_by_start,
    claims,
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
    assert beats(least_return(steady, HORIZON, 2), bar.bar)
    assert not beats(least_return(lucky, HORIZON, 2), bar.bar)


def test_equal_returns_beat_nobody() -> None:
    (bar,) = statements([shown(*[0.1 + 0.2] * 5)], [], slack=0.0)
    assert not beats(
        least_return(Tried(0, "same", shown(*[0.3] * 5).episodes), HORIZON, 1), bar.bar
    )


# By start ----------------------------------------------------------------------------------------

#: Two demonstrations from each of four starts, and one from a fifth; where they begin is all that
#: their returns depend on.
FROM_FIVE = Shown("task", HORIZON, [earning(10.0 * s, s) for s in (1, 1, 2, 2, 3, 3, 4, 4, 5)])


def claimed(group: Shown, episodes: list[Trajectory], slack: float = 0.0) -> list[Claim]:
    one = Tried(0, "policy", episodes)
    (statement,) = statements([group], [], slack)
    return claims(group, one, statement, 1, slack, ERROR)


def test_one_demonstration_of_a_start_is_beaten_where_others_show_that_there_is_no_chance() -> None:
    better = [earning(10.0 * s + (s == 5), s) for s in (1, 2, 3, 4, 5) * 2]
    (claim,) = claimed(FROM_FIVE, better)  # over all starts it is beyond no bar
    assert (claim.start, claim.least, claim.bar) == ((5.0,), 51.0, 50.0)
    assert [t.rewards.sum() for t in claim.episodes] == [51.0, 51.0]
    assert not claimed(FROM_FIVE, better, slack=0.05)
    assert not claimed(FROM_FIVE, [earning(10.0 * s, s) for s in (1, 2, 3, 4, 5) * 2])


def test_starts_tell_nothing_where_hardly_any_is_repeated_or_there_is_one() -> None:
    better = [earning(10.0 * s + 1, s) for s in (1, 2, 3, 4, 5)]
    assert not claimed(FROM_FIVE, better)
    assert bounds_by_start([earning(1.0)] * 9, 1, ERROR) == {}


def test_any_of_the_bounds_by_start_is_wrong_no_oftener_than_it_says() -> None:
    rng, starts = np.random.default_rng(0), [1, 1, 1, 2, 2, 3, 3, 4, 5, 6]
    wrong = []
    for _ in range(2000):
        episodes = [earning(10.0 * s + rng.normal(), s) for s in starts]
        bounds = bounds_by_start(episodes, 1, 0.05)
        wrong.append(any(bound < 10.0 * start for (start,), bound in bounds.items()))
    assert 0.02 < np.mean(wrong) < 0.062


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
