"""What is forbidden hangs together: the cut is exact, and it does what it is for."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.cell_grid import CellConstraint, Grid
from ringfence.constraints.family import make_family
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature
from ringfence.players import patches
from ringfence.players.patches import (
    Config,
    Mask,
    Patches,
    apart,
    best_set,
    charged,
    edge_distance,
    fine_grid,
    places,
)
from ringfence.players.player import Ground

PLANE = (Feature("x", "m"), Feature("y", "m"))
MOVES = np.array([0.1, 0.1])
T = 60.0


def worth(chosen: Mask, gain: Array, edges: Array) -> float:
    """Gains less edges, those around everything included."""
    wide = np.pad(chosen, 1).astype(int)
    cut = [np.abs(np.diff(wide, axis=axis)).sum() for axis in range(gain.ndim)]
    return float(gain[chosen].sum() - edges @ np.array(cut))


def sets(shape: tuple[int, ...]) -> list[Mask]:
    every = product((False, True), repeat=int(np.prod(shape)))
    return [np.array(one).reshape(shape) for one in every]


@pytest.mark.parametrize("shape", [(9,), (3, 3), (2, 2, 2)])
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_no_set_of_cells_is_worth_more(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    gain = rng.uniform(-1, 2, shape).round(3)
    edges, never = rng.uniform(0, 0.6, len(shape)).round(3), rng.random(shape) < 0.2
    found = best_set(gain, edges, never)
    assert not (found & never).any()
    allowed = [s for s in sets(shape) if not (s & never).any()]
    values = np.array([worth(s, gain, edges) for s in allowed])
    assert worth(found, gain, edges) == pytest.approx(values.max(), abs=1e-9)
    best = [s for s, v in zip(allowed, values, strict=True) if v > values.max() - 1e-9]
    assert found.sum() == min(s.sum() for s in best)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_the_cut_is_the_upper_half_of_the_regularised_leader(seed: int) -> None:
    """{c > 1/2} of argmax sum g c - idle |c|^2 - sum b |c_u - c_v| over [0, 1]^n: c is put together
    from its level sets, each a cut, and no step of a subgradient's sign improves it."""
    rng = np.random.default_rng(seed)
    gain, b, idle = rng.uniform(-0.5, 2, 6).round(3), 0.3, 0.5
    levels = (np.arange(100) + 0.5) / 100
    never = np.zeros(6, np.bool_)
    cuts = np.array([best_set(gain - 2 * idle * level, np.array([b]), never) for level in levels])
    assert (np.diff(cuts.astype(int), axis=0) <= 0).all()  # nested, so they are level sets
    c = cuts.mean(axis=0)

    def objective(c: Array) -> float:
        wide = np.pad(c, 1)
        return float(gain @ c - idle * np.square(c).sum() - b * np.abs(np.diff(wide)).sum())

    other = np.clip(c + rng.normal(0, 0.2, (200, 6)), 0, 1)
    assert max(map(objective, other)) <= objective(c) + 1e-3
    assert np.array_equal(cuts[50], best_set(gain - 2 * idle * 0.505, np.array([b]), never))


def test_a_thinly_met_place_is_filled_and_strays_between_visits_are_none() -> None:
    rng = np.random.default_rng(0)
    x, y = np.mgrid[:40, :40]
    inside = (x - 20) ** 2 + (y - 20) ** 2 < 10**2
    gain = np.where(rng.random((40, 40)) < np.where(inside, 0.4, 0.2), 0.95, -0.05)
    visited = ~inside & (rng.random((40, 40)) < 0.3)
    found = best_set(gain, np.array([1.0, 1.0]), visited)
    assert (found & inside).sum() / inside.sum() > 0.95
    assert (found & inside).sum() / found.sum() > 0.9


def test_a_point_charges_what_is_near_whatever_the_size_of_cells() -> None:
    at = np.array([[0.5034, 0.5071]])
    shares = []
    for size in (0.1, 0.005, 0.002):
        grid = Grid((0, 1), np.zeros(2), np.full(2, size), (round(1 / size),) * 2)
        shares.append(charged(grid, at, MOVES).sum() * size**2)
    assert shares[0] == pytest.approx(0.01)  # its own cell
    assert shares[1:] == pytest.approx([np.pi * 0.02**2] * 2, rel=0.1)


def test_only_wide_gaps_between_visits_are_apart() -> None:
    visited = np.zeros((60, 60), np.bool_)
    visited[::4, ::4] = True  # everywhere, but for a disc
    x, y = np.mgrid[:60, :60] - 30
    visited &= x**2 + y**2 > 15**2
    wide = apart(visited, 0.75, np.full(2, 0.1))
    assert not (wide & visited).any()
    assert wide[x**2 + y**2 < 14**2].all()
    assert not wide[x**2 + y**2 > 20**2].any()
    assert np.array_equal(apart(visited, 0.0, np.full(2, 0.1)), ~visited)
    assert not apart(visited, 100.0, np.full(2, 0.1)).any()


def one(points: Array, reward: float = 0.0) -> Behaviour:
    return Behaviour(points, np.ones(len(points)), reward, 0.0, float(len(points)), 10)


def around_a_disc(seed: int, n: int = 3000) -> tuple[Behaviour, Behaviour]:
    """Experts who stay out of the disc of radius 0.3, learners who go anywhere."""
    rng = np.random.default_rng(seed)
    everywhere, also = rng.uniform(-1, 1, (2, n, 2))
    return one(everywhere[np.linalg.norm(everywhere, axis=1) > 0.3]), one(also)


def ground(text: str, expert: Behaviour) -> Ground:
    family = make_family(text, (), PLANE, None, None, expert.features)
    return Ground(family, T, [expert], True, 5, 0, MOVES)


@pytest.mark.parametrize(("size", "recall"), [("0.05", 0.9), ("0.02", 0.95)])
def test_a_disc_is_found_and_no_expert_is_forbidden_anything(size: str, recall: float) -> None:
    expert, learner = around_a_disc(0)
    player = patches.make(Config(), ground(f"table(x by {size}, y by {size})", expert))
    c = player.update([expert], [[learner]])
    assert not c.cost(expert.features).any()
    grid = np.stack(np.meshgrid(*[np.arange(-0.97, 1, 0.02)] * 2), -1).reshape(-1, 2)
    found, true = c.cost(grid) > 0, np.linalg.norm(grid, axis=1) < 0.3
    assert (found & true).sum() / true.sum() > recall
    assert (found & true).sum() / found.sum() > 0.9


def test_a_conflict_is_explained_by_a_place_that_would_be_too_small_otherwise() -> None:
    expert, _ = around_a_disc(0)
    stray = np.array([[0.0, 0.0], [0.01, 0.0]])
    player = patches.make(Config(), ground("table(x by 0.02, y by 0.02)", expert))
    assert not player.update([expert], [[one(stray)]]).forbidden.any()
    c = player.update([expert], [[one(stray, reward=1.0)]])
    assert c.cost(stray).any()


def test_where_a_learner_strays_who_earns_less_shows_nothing() -> None:
    expert, learner = around_a_disc(0)
    player = patches.make(Config(), ground("table(x by 0.05, y by 0.05)", expert))
    first, poor = one(np.array([[0.9, 0.9]])), one(learner.features, reward=-1.0)
    assert not player.update([expert], [[first], [poor]]).forbidden.any()
    # The first are heard: nothing kept them from anything.
    assert player.update([expert], [[poor]]).forbidden.any()


def test_units_change_nothing() -> None:
    expert, learner = around_a_disc(1)
    metres = places(ground("mlp", expert), [0, 1])
    thousand = [one(1000 * pi.features) for pi in (expert, learner)]
    own = make_family("mlp", (), PLANE, None, None, thousand[0].features)
    millimetres = places(Ground(own, T, thousand[:1], True, 5, 0, 1000 * MOVES), [0, 1])
    assert isinstance(metres, Patches)
    assert isinstance(millimetres, Patches)
    a = metres.update([expert], [[learner]])
    b = millimetres.update(thousand[:1], [[thousand[1]]])
    at = np.random.default_rng(3).uniform(-1, 1, (2000, 2))
    assert (a.cost(at) == b.cost(1000 * at)).mean() > 0.995


def test_the_distance_to_the_edge_is_in_usual_moves() -> None:
    grid = Grid((0,), np.zeros(1), np.array([0.01]), (100,))
    c = CellConstraint(PLANE, grid, (np.arange(100) >= 50).astype(np.float64))
    distance = edge_distance(c, MOVES)
    at = np.array([[0.46, 0], [0.5, 0], [0.55, 0], [0.1, 0], [0.9, 0]])
    assert distance(at) == pytest.approx([-0.4, 0.0, 0.5, -1.0, 1.0])


def test_fine_cells_are_a_fifth_of_a_move_and_not_too_many() -> None:
    points = np.array([[0.0, 0.0], [2.0, 100.0]])
    grid = fine_grid(points, [0, 1], MOVES)
    assert grid.size == pytest.approx([0.02, 100 / 160])
    assert fine_grid(points, [1], np.zeros(2)).size == pytest.approx([0.1])


def test_other_classes_are_refused_in_words() -> None:
    expert, _ = around_a_disc(0, 100)
    with pytest.raises(InvalidInput, match="tables over cells of continuous features"):
        patches.make(Config(), ground("x <= ?", expert))
    with pytest.raises(InvalidInput, match="edge and gap must be at least 0"):
        Config(edge=-1.0)
