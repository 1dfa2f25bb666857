"""Exact binomial intervals, by their definition."""

from __future__ import annotations

from math import comb

import pytest

from ringfence.binomial import binomial_interval
from ringfence.errors import InvalidInput


def at_most(count: int, trials: int, p: float) -> float:
    return sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count + 1))


@pytest.mark.parametrize(("count", "trials"), [(0, 1), (0, 20), (1, 2), (3, 20), (49, 50), (7, 7)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_beyond_its_ends_the_count_would_be_too_rare(count, trials, level) -> None:
    low, high = binomial_interval(count, trials, level)
    tail = (1 - level) / 2
    assert low <= count / trials <= high
    if count == 0:
        assert low == 0
    else:
        assert 1 - at_most(count - 1, trials, low) == pytest.approx(tail, rel=1e-6)
    if count == trials:
        assert high == 1
    else:
        assert at_most(count, trials, high) == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("wrong", [(2, 1), (-1, 3), (0, 0)])
def test_counts_that_cannot_be_are_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="no interval"):
        binomial_interval(*wrong)
