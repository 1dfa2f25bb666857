"""Exact binomial intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.errors import InvalidInput
from ringfence.studies.intervals import clopper_pearson


@pytest.mark.parametrize(("count", "trials"), [(1, 10), (5, 10), (199, 200), (30, 4000)])
def test_at_the_ends_the_count_is_a_tail_of_a_fortieth(count: int, trials: int) -> None:
    low, high = clopper_pearson(count, trials)
    assert binom.sf(count - 1, trials, low) == pytest.approx(0.025)
    assert binom.cdf(count, trials, high) == pytest.approx(0.025)


def test_never_seen_and_always_seen_keep_one_end() -> None:
    assert clopper_pearson(0, 20)[0] == 0.0
    assert clopper_pearson(0, 20)[1] == pytest.approx(1 - 0.025 ** (1 / 20))
    assert clopper_pearson(20, 20)[1] == 1.0


def test_it_holds_the_true_share_at_least_as_often_as_it_says() -> None:
    trials = 15
    ends = np.array([clopper_pearson(count, trials) for count in range(trials + 1)])
    for p in np.linspace(0.01, 0.99, 50):
        holds = (ends[:, 0] <= p) & (p <= ends[:, 1])
        assert binom.pmf(np.arange(trials + 1), trials, p)[holds].sum() >= 0.95


@pytest.mark.parametrize(("count", "trials", "level"), [(0, 0, 0.95), (3, 2, 0.95), (1, 2, 1.0)])
def test_what_is_no_share_is_refused(count: int, trials: int, level: float) -> None:
    with pytest.raises(InvalidInput, match="no interval"):
        clopper_pearson(count, trials, level)
