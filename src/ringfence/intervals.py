"""Exact intervals for what was counted."""

from __future__ import annotations

from scipy.special import betaincinv

from ringfence.errors import InvalidInput


def binomial_interval(count: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a chance seen `count` times in `trials`.

    Whatever the chance is, an interval made in this way holds it with at least that confidence,
    if the trials are independent.
    """
    if not 0 <= count <= trials or trials < 1 or not 0 < confidence < 1:
        raise InvalidInput(f"{count} of {trials} trials at confidence {confidence}: no interval")
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return low, high
