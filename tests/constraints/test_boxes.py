"""The largest boxes in a table of booleans."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ringfence.constraints.boxes import largest_boxes


def largest_volume(region: np.ndarray) -> int:
    """By trying every box."""
    best = 0
    for first in product(*(range(n) for n in region.shape)):
        for end in product(
            *(range(a + 1, n + 1) for a, n in zip(first, region.shape, strict=True))
        ):
            box = region[tuple(slice(a, b) for a, b in zip(first, end, strict=True))]
            best = max(best, box.size if box.all() else 0)
    return best


@pytest.mark.parametrize("shape", [(12,), (6, 7), (4, 3, 5)])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_box_is_the_largest_there_is(shape: tuple[int, ...], seed: int) -> None:
    region = np.random.default_rng(seed).random(shape) < 0.8
    ((first, end),) = largest_boxes(region, 1)
    box = region[tuple(slice(a, b) for a, b in zip(first, end, strict=True))]
    assert box.all()
    assert box.size == largest_volume(region)


def test_boxes_cover_the_region_and_nothing_else_and_do_not_overlap() -> None:
    region = np.random.default_rng(7).random((9, 11)) < 0.5
    covered = np.zeros(region.shape, int)
    for first, end in largest_boxes(region, 1000):
        covered[first[0] : end[0], first[1] : end[1]] += 1
    assert np.array_equal(covered, region.astype(int))


def test_an_empty_region_has_no_box() -> None:
    assert largest_boxes(np.zeros((3, 3), bool), 5) == []
