"""Intervals for shares that were counted."""

from __future__ import annotations

from scipy.stats import beta

from ringfence.errors import InvalidInput

LEVEL = 0.95


def clopper_pearson(count: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact binomial interval of a share that was seen `count` times in independent `trials`.

    The p at its ends would give a count at least (at most) that large with (1 - level) / 2:
    quantiles of Beta(count, trials - count + 1) and Beta(count + 1, trials - count).
    """
    if not (0 <= count <= trials and trials > 0 and 0 < level < 1):
        raise InvalidInput(f"no interval at level {level} for {count} of {trials} trials")
    tail = (1 - level) / 2
    low = 0.0 if count == 0 else float(beta.ppf(tail, count, trials - count + 1))
    high = 1.0 if count == trials else float(beta.ppf(1 - tail, count + 1, trials - count))
    return low, high
