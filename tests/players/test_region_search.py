"""Discs and boxes are found again from simulated visits of those who avoid them."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.regions import Box, Disc, RegionConstraint
from ringfence.constraints.written import parse_class, parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint, Feature, J
from ringfence.players.form_search import fit

XY = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
T = 200.0
DISC = "disc(x, y) at (0.6, 0.5) of radius 0.5"
SMALL = "disc(x, y) at (-1, -0.8) of radius 0.3"
BOX = "box(x, y) from (-1.2, 0.4) to (-0.2, 1)"


def visits(points: Array) -> Behaviour:
    return Behaviour(points, np.full(len(points), T / len(points)), 0.0, 0.0, T, 10)


def anywhere(seed: int, n: int = 4000) -> Behaviour:
    rng = np.random.default_rng(seed)
    return visits(np.column_stack([rng.uniform(-2, 2, (n, 2)), rng.uniform(0, 1, n)]))


def kept(c: Constraint, seed: int, n: int = 20_000) -> Behaviour:
    """Everywhere where c allows it."""
    points = anywhere(seed, n).features
    return visits(points[c.cost(points) == 0])


LEARNERS = [anywhere(5), anywhere(6)]


def same(found: RegionConstraint, true: Constraint, within: float) -> None:
    """Each true shape has a found one of its kind, whose numbers differ by a share of its size."""
    assert isinstance(true, RegionConstraint)
    assert len(found.shapes) == len(true.shapes)
    for shape in true.shapes:
        alike = [s for s in found.shapes if type(s) is type(shape)]
        near = min(alike, key=lambda s: float(np.abs(s.numbers - shape.numbers).max()))
        size = (
            2 * shape.radius if isinstance(shape, Disc) else float((shape.high - shape.low).max())
        )
        assert np.abs(near.numbers - shape.numbers).max() <= within * size


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("outside disc(x, y)", f"outside {DISC}"),
        ("outside box(x, y)", f"outside {BOX}"),
        ("outside up to 2 discs(x, y) or box(x, y)", f"outside {DISC} or {SMALL} or {BOX}"),
        ("outside up to 5 shapes(x, y)", f"outside {DISC} or {SMALL} or {BOX}"),
        ("inside box(x, y)", "inside box(x, y) from (-1, -0.5) to (1.5, 1)"),
        ("inside disc(x, y)", "inside disc(x, y) at (0.2, -0.1) of radius 1.4"),
    ],
)
def test_a_region_is_found_again_within_a_twentieth_of_its_size(text: str, truth: str) -> None:
    true = parse_constraint(truth, XY)
    experts = [kept(true, 0), kept(true, 1)]
    c = fit(parse_class(text, XY), experts, LEARNERS, 0.0)
    assert isinstance(c, RegionConstraint)
    same(c, true, 0.05)
    assert max(J(pi, c) for pi in experts) == 0


@pytest.mark.parametrize("text", ["outside disc(x, y)", "outside box(x, y)", "inside box(x, y)"])
def test_experts_use_a_stated_budget_and_keep_it(text: str) -> None:
    experts = [kept(parse_constraint(f"outside {DISC}", XY), 0, 3000)]
    exact, loose = (fit(parse_class(text, XY), experts, LEARNERS, b) for b in (0.0, 1.0))
    assert J(experts[0], exact) == 0
    assert 0.5 < J(experts[0], loose) <= 1.0
    assert sum(J(pi, loose) for pi in LEARNERS) > sum(J(pi, exact) for pi in LEARNERS)


def test_no_other_disc_on_a_grid_costs_learners_more() -> None:
    true = parse_constraint(f"outside {DISC}", XY)
    experts = [kept(true, 0, 2000)]
    form = parse_class("outside disc(x, y)", XY)
    best = sum(J(pi, fit(form, experts, LEARNERS, 0.0)) for pi in LEARNERS)
    for x in np.linspace(-2, 2, 15):
        for y in np.linspace(-2, 2, 15):
            away = np.hypot(*(experts[0].features[:, :2] - [x, y]).T).min()
            c = form.constraint(np.array([x, y, away]))
            assert sum(J(pi, c) for pi in LEARNERS) <= best + 1e-9


def test_features_of_other_units_have_boxes() -> None:
    true = parse_constraint("outside box(x, speed) from (0, 0.5) to (1, 0.8)", XY)
    c = fit(parse_class("outside box(x, speed)", XY), [kept(true, 0)], LEARNERS, 0.0)
    (shape,) = c.shapes  # type: ignore[attr-defined]
    assert isinstance(shape, Box)
    assert shape.numbers == pytest.approx([0, 0.5, 1, 0.8], abs=0.03)


def test_a_region_and_a_limit_at_once() -> None:
    true = parse_constraint(f"outside {DISC} and speed <= 0.5", XY)
    form = parse_class("outside disc(x, y) and speed <= ?", XY)
    c = fit(form, [kept(true, 0)], LEARNERS, 0.0)
    theta, goal = form.theta_of(c), form.theta_of(true)
    assert theta == pytest.approx(goal, abs=0.03)


def test_the_same_visits_give_the_same_region() -> None:
    experts = [kept(parse_constraint(f"outside {DISC} or {BOX}", XY), 0, 2000)]
    form = parse_class("outside up to 3 shapes(x, y)", XY)
    one, two = (fit(form, experts, LEARNERS, 0.0).describe() for _ in range(2))
    assert one == two


def test_a_region_that_experts_cannot_be_in_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no region was found"):
        fit(parse_class("inside disc(x, y)", XY), [anywhere(0)], LEARNERS, -1.0)
