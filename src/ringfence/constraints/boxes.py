"""Boxes in a table of booleans: how a region of cells is said in words."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
#: First cell and end (the cell after the last), per axis.
Box = tuple[tuple[int, ...], tuple[int, ...]]

MOST_LAYERS = 16  # along the first axis of a table with three, in which boxes are sought exactly


def largest_boxes(region: Bools, most: int) -> list[Box]:
    """The largest box of true cells, then the largest of what is left, and so on."""
    found: list[Box] = []
    left = region.copy()
    while len(found) < most and left.any():
        first, end = _largest(left)
        left[tuple(slice(a, b) for a, b in zip(first, end, strict=True))] = False
        found.append((first, end))
    return found


def _largest(region: Bools) -> Box:
    """The largest box of true cells in a table of one to three axes."""
    if region.ndim == 1:
        (_, left), (_, right) = rectangle(region[None])
        return (left,), (right,)
    if region.ndim == 2:
        return rectangle(region)
    best, size = _layer(region, 0, 1), 0
    pairs = product(range(len(region)), range(1, MOST_LAYERS + 1))
    for first, count in pairs:
        if first + count <= len(region):
            box = _layer(region, first, first + count)
            volume = int(np.prod(np.subtract(box[1], box[0])))
            best, size = (box, volume) if volume > size else (best, size)
    return best


def _layer(region: Bools, first: int, end: int) -> Box:
    """The largest box that spans these layers."""
    low, high = rectangle(np.logical_and.reduce(region[first:end]))
    return (first, *low), (end, *high)


def rectangle(region: Bools) -> tuple[tuple[int, int], tuple[int, int]]:
    """The largest rectangle of true cells, by heights of columns that end in each row."""
    heights = np.zeros(region.shape[1] + 1, np.intp)
    best, size = ((0, 0), (0, 0)), 0
    for row, line in enumerate(region):
        heights[:-1] = np.where(line, heights[:-1] + 1, 0)
        if not line.any():
            continue
        open_: list[tuple[int, int]] = []  # (column, height), heights rising
        for column, height in enumerate(heights.tolist()):
            start = column
            while open_ and open_[-1][1] >= height:
                start, tall = open_.pop()
                if tall * (column - start) > size:
                    size = tall * (column - start)
                    best = (row + 1 - tall, start), (row + 1, column)
            open_.append((start, height))
    return best
