"""Exact intervals for what was counted."""

from __future__ import annotations

from scipy.special import betaincinv

from ringfence.errors import InvalidInput


def binomial_interval(count: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a chance seen `count` times in `trials`.

    Whatever the chance is, an interval made in this way holds it at least that often,
    if the trials are independent.
    """
    if not 0 <= count <= trials or trials < 1 or not 0 < level < 1:
        raise InvalidInput(f"{count} of {trials} trials at level {level}: no interval")
    tail = (1 - level) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return low, high
