"""The network player: it separates, obeys the restriction exactly, and repeats itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.constraint_files import load, to_bytes
from ringfence.constraints.mlp import MLPConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature, J
from ringfence.players.network import MLPRegression, within

PLANE = (Feature("x", "m"), Feature("y", "m"))
T = 100.0
QUICK = MLPRegression(PLANE, T, seed=(7,), hidden=(32, 32), learning_rate=3e-3, steps=600)


def visiting(points: Array) -> Behaviour:
    return Behaviour(points, np.full(len(points), T / len(points)), 0.0, 0.0, T, None)


def ring(rng: np.random.Generator, low: float, high: float, n: int = 2000) -> Array:
    """Points between two radii around (30, -5), which no line separates from others."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.uniform(low, high, n)
    return np.column_stack([30 + radius * np.cos(angle), -5 + radius * np.sin(angle)])


@pytest.fixture(scope="module")
def seen() -> tuple[list[Behaviour], list[list[Behaviour]]]:
    """Two tasks: experts keep within radius 2, learners go everywhere within 4."""
    rng = np.random.default_rng(0)
    experts = [visiting(ring(rng, 0, 2)) for _ in range(2)]
    history = [[visiting(ring(rng, 0, 4)) for _ in experts] for _ in range(2)]
    return experts, history


def test_the_first_constraint_is_zero() -> None:
    c = QUICK.initial()
    assert not c.cost(np.random.default_rng(0).normal(size=(100, 2)) * 50).any()
    assert QUICK.best_payoff([visiting(np.zeros((1, 2)))], [visiting(np.ones((1, 2)))]) == 0


def test_it_separates_a_disc_from_the_ring_around_it(seen) -> None:
    experts, history = seen
    player = replace(QUICK)
    c = player.update(experts, history)
    rng = np.random.default_rng(1)
    inside, outside = c.raw(ring(rng, 0, 1.7)), c.raw(ring(rng, 2.3, 4))
    assert (inside < 0).mean() > 0.99
    assert (outside > 0).mean() > 0.99
    # The regression's fit far from the edge: the share of learners, minus that of experts.
    assert np.median(outside) == pytest.approx(1, abs=0.1)
    assert np.median(inside) == pytest.approx((0.5 - 1) / 1.5, abs=0.1)
    gap = np.mean([J(pi, c) - J(e, c) for pi, e in zip(history[-1], experts, strict=True)])
    assert player.best_payoff(experts, history[-1]) == pytest.approx(gap / T)
    assert gap > 0


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 1.0])
def test_restricted_experts_stay_within_the_tolerance_exactly(seen, tolerance: float) -> None:
    experts, history = seen
    c = replace(QUICK, tolerance=tolerance).update(experts, history)
    assert max(J(pi, c) for pi in experts) <= tolerance
    assert np.mean([J(pi, c) for pi in history[-1]]) > 5  # and it still forbids the ring


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_the_offset_is_the_smallest(seen, tolerance: float) -> None:
    experts, history = seen
    unrestricted = replace(QUICK, steps=100).update(experts, history)
    c = within(unrestricted, experts, tolerance)
    assert max(J(pi, c) for pi in experts) <= tolerance
    assert c.offset > 0
    less = replace(c, offset=float(np.nextafter(c.offset, 0)))
    assert max(J(pi, less) for pi in experts) > tolerance
    assert within(c, experts, tolerance) is c


def test_only_the_named_features_are_used(seen) -> None:
    experts, history = seen
    c = replace(QUICK, used=("y",), steps=50).update(experts, history)
    assert [f.name for f in c.used] == ["y"]
    phi = ring(np.random.default_rng(2), 0, 4, 50)
    assert np.array_equal(c.raw(phi), c.raw(phi * [3, 1]))


def test_a_feature_that_never_varies_does_no_harm() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 1))
    experts = [visiting(np.hstack([x - 1, np.full_like(x, 1e6)]))]
    learners = [visiting(np.hstack([x + 1, np.full_like(x, 1e6)]))]
    c = replace(QUICK, steps=200).update(experts, [learners])
    assert J(learners[0], c) > 10 * J(experts[0], c)


def test_same_seed_same_bytes_and_another_seed_others(seen) -> None:
    experts, history = seen

    def files(seed: int) -> dict[str, bytes]:
        return to_bytes(replace(QUICK, seed=(seed,), steps=60).update(experts, history), 0.0, {})

    assert files(1) == files(1)
    assert files(1) != files(2)


def test_a_later_update_does_not_depend_on_earlier_calls(seen) -> None:
    experts, history = seen
    player = replace(QUICK, steps=60)
    player.update(experts, history[:1])
    later, alone = player.update(experts, history), replace(player).update(experts, history)
    assert to_bytes(later, 0.0, {}) == to_bytes(alone, 0.0, {})


def test_saved_and_loaded_gives_the_same_outputs(seen, tmp_path: Path) -> None:
    experts, history = seen
    c = replace(QUICK, steps=60, tolerance=0.1).update(experts, history)
    for name, content in to_bytes(c, 0.1, {}).items():
        (tmp_path / name).write_bytes(content)
    again = load(tmp_path)
    assert isinstance(again, MLPConstraint)
    phi = ring(np.random.default_rng(3), 0, 4)
    assert np.array_equal(again.raw(phi), c.raw(phi))
    assert again.offset == c.offset
    assert again.describe() == c.describe()


def test_wrong_settings_and_points_are_refused(seen) -> None:
    with pytest.raises(InvalidInput, match="can't use z; features are x, y"):
        replace(QUICK, used=("z",))
    with pytest.raises(InvalidInput, match="no feature at all"):
        replace(QUICK, used=())
    with pytest.raises(InvalidInput, match="tolerance"):
        replace(QUICK, tolerance=-1.0)
    for wrong in ({"steps": 0}, {"batch": 1}, {"hidden": (8, 0)}):
        with pytest.raises(InvalidInput, match="a network needs"):
            replace(QUICK, **wrong)
    experts, _ = seen
    broken = visiting(np.array([[np.nan, 0.0]]))
    with pytest.raises(InvalidInput, match="finite"):
        QUICK.update(experts, [[broken, broken]])
