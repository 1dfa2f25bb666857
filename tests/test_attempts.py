"""Failed episodes are told by their returns alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringfence.attempts import failed
from ringfence.objects import Trajectory


def episode(reward: float, start: float | None = None) -> Trajectory:
    """Two steps; every start is another unless it is given."""
    first = reward if start is None else start
    return Trajectory(
        np.array([[first], [0.0], [0.0]]),
        np.zeros((2, 1)),
        np.array([reward, 0.0]),
        np.ones((2, 1)),
        False,
    )


def fails(*returns: float) -> list[float]:
    """The returns of those that failed."""
    found = failed([episode(r) for r in returns])
    return [r for r, f in zip(returns, found, strict=True) if f]


def test_those_far_below_the_others_failed() -> None:
    assert fails(1650, 1000, 1648, 1655, 1652, 1270, 1649, 1651) == [1000, 1270]
    assert fails(1650, 1500, 1648, 1655, 1652) == []  # slow, but it did its task
    assert fails(-10, -11, -10.5, -30, -10.2) == [-30]


def test_where_many_differ_none_failed() -> None:
    assert fails(1000, 1200, 1400, 1600, 1800, 2000) == []
    assert fails(1000, 1001, 1002, 1650, 1651, 1652) == []  # two ways, neither the exception
    assert fails(1650, 1000, 1648) == []  # too few to tell


def test_returns_are_compared_from_the_same_start() -> None:
    near, far = [episode(10 + n, 0.0) for n in range(4)], [episode(90 + n, 1.0) for n in range(4)]
    assert not failed([*near, *far]).any()
    assert failed([*near, *far, episode(20, 1.0)]).tolist() == [False] * 8 + [True]


def test_a_copied_episode_hides_no_failure() -> None:
    episodes = [episode(r) for r in (1650, 1000, 1648, 1655, 1652, 1270, 1649, 1651)]
    found = failed([*episodes, episodes[0]])
    assert found.tolist() == [False, True, False, False, False, True, False, False, False]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_fewer_than_half_fail_whatever_the_unit(returns: list[float]) -> None:
    found = failed([episode(r, 0.0) for r in returns])
    assert 2 * found.sum() < max(len(returns), 2)
    assert not found[np.argmax(returns)]
    if len(returns) > 1 and np.ptp(returns) > 1:
        scaled = failed([episode(2.0**7 * r, 0.0) for r in returns])
        assert scaled.tolist() == found.tolist()
