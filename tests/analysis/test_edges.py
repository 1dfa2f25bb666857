"""Where demonstrations stop: edges of episodes, and of averages over them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ringfence.analysis.edges import critical, edges, loosens, one_sided, resampled_edges
from ringfence.constraints.template import Template, parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, Trajectory, behaviour_of
from ringfence.players.search import best_within

PLANE = (Feature("x", "m"), Feature("y", "m"))
CLASSES = ("x <= ?", "x >= ?", "|y| <= ?", "? x - y <= 0", "2 x + y <= ?")


def episodes(count: int = 6, steps: int = 40, seed: int = 0) -> list[Trajectory]:
    """Walks with x > 0, of different lengths."""
    rng, found = np.random.default_rng(seed), []
    for n in range(count):
        T = steps + 5 * n
        phi = np.column_stack([1 + rng.random(T), rng.normal(n / 3, 1, T)])
        nothing = np.zeros((T + 1, 1))
        found.append(Trajectory(nothing, nothing[1:], np.zeros(T), phi, False))
    return found


@pytest.mark.parametrize(
    ("text", "budget"), [*product(CLASSES, (0.0, 1.5)), ("x <= ?", 200.0), ("|y| <= ?", 200.0)]
)
def test_edges_are_what_the_search_finds(text: str, budget: float) -> None:
    template, shown = parse_template(text, PLANE), episodes()
    found = edges(template, shown, budget)
    for t, edge in zip(shown, found, strict=True):
        allowed = max(budget, 1e-9 * len(t))
        assert edge == pytest.approx(best_within(template, [behaviour_of([t])], [], allowed)[0])


@pytest.mark.parametrize("text", CLASSES)
@pytest.mark.parametrize("budget", [1.5, 200.0])
def test_an_edge_uses_the_budget_up(text: str, budget: float) -> None:
    template, shown = parse_template(text, PLANE), episodes()
    for t, edge in zip(shown, edges(template, shown, budget), strict=True):
        cost = template.constraint(np.array([edge])).cost(t.features).sum()
        assert cost == pytest.approx(budget)


def test_a_class_that_is_not_one_sided_is_searched() -> None:
    """Where x has both signs, a larger slope allows more on one side and less on the other."""
    template, (t,) = parse_template("? x - y <= 0", PLANE), episodes(1)
    phi = t.features * [1.0, 0.0] + [-1.5, 2.0]
    both = Trajectory(t.observations, t.actions, t.rewards, phi, False)
    assert not one_sided(template, [both])
    assert edges(template, [both], 1.0).shape == (1,)
    below = Trajectory(t.observations, t.actions, t.rewards, phi - [0.0, 4.0], False)
    with pytest.raises(InvalidInput, match="no constraint of it leaves"):
        edges(template, [below], 0.0)


def test_an_episode_that_is_the_same_under_every_parameter_is_refused_in_words() -> None:
    template, (t,) = parse_template("? x - y <= 0", PLANE), episodes(1)
    still = Trajectory(t.observations, t.actions, t.rewards, t.features * [0.0, 1.0], False)
    with pytest.raises(InvalidInput, match="is 0 in every step"):
        edges(template, [still], 1.0)


def test_critical_values_are_where_a_step_is_just_at_the_limit() -> None:
    template = parse_template("? x - y <= 0", PLANE)
    assert critical(template, np.array([[2.0, 1.0], [0.0, 3.0]])) == pytest.approx(
        [0.5, np.nan], nan_ok=True
    )


@pytest.mark.parametrize(("text", "side"), [("x <= ?", 1.0), ("x >= ?", -1.0)])
def test_a_larger_parameter_allows_more_or_less(text: str, side: float) -> None:
    assert loosens(parse_template(text, PLANE), episodes()) == side


def of_all(template: Template, tasks: list[list[Trajectory]], budget: float) -> float:
    return float(best_within(template, [behaviour_of(own) for own in tasks], [], budget)[0])


@pytest.mark.parametrize("text", CLASSES)
@pytest.mark.parametrize("budget", [0.0, 1.5])
def test_resampled_edges_begin_with_that_of_all_episodes(text: str, budget: float) -> None:
    template, tasks = parse_template(text, PLANE), [episodes(seed=0), episodes(seed=1)]
    found = resampled_edges(template, tasks, budget, 50, np.random.default_rng(0))
    assert found.shape == (51,)
    spread = float(np.ptp(np.concatenate([edges(template, own, budget) for own in tasks])))
    expected = of_all(template, tasks, max(budget, 1e-9))
    assert found[0] == pytest.approx(expected, abs=spread / 100)
    assert found.std() > 0


def test_resampled_edges_are_those_of_the_drawn_episodes() -> None:
    template, own = parse_template("x <= ?", PLANE), episodes(4)
    found = resampled_edges(template, [own], 1.5, 20, np.random.default_rng(3))
    drawn = np.random.default_rng(3).multinomial(4, np.full(4, 0.25), 20)
    for edge, counts in zip(found[1:], drawn, strict=True):
        picked = [t for t, n in zip(own, counts, strict=True) for _ in range(n)]
        assert edge == pytest.approx(of_all(template, [picked], 1.5), abs=1e-4)
