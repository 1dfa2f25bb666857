"""Remarks on demonstrations that need no world, and their description."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.demos import checks as demo_checks
from ringfence.demos.checks import check
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory
from trajectories import FEATURES, grid_path, trajectory


def on_grid(*paths: Trajectory, heldout: tuple[Trajectory, ...] = ()) -> Demonstrations:
    cells = (Feature("row", "cell"), Feature("col", "cell"))
    return Demonstrations((TaskDemos("a", paths, heldout),), cells, {})


ROUND = [(0, 0), (1, 0), (1, 1), (1, 2), (0, 2)]
OTHER = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]
ACROSS = [(0, 0), (0, 1), (0, 2), (0, 2), (0, 2)]


def test_clean_trajectories_have_no_findings() -> None:
    continuous = [trajectory(20, seed) for seed in range(12)]
    made = Demonstrations((TaskDemos("a", tuple(continuous), ()),), FEATURES, {})
    assert check(made) == []
    assert check(on_grid(grid_path(ROUND), grid_path(OTHER))) == []


def test_repeats_are_a_note_on_cells_and_a_warning_elsewhere() -> None:
    (found,) = check(on_grid(grid_path(ROUND), grid_path(OTHER), heldout=(grid_path(ROUND),)))
    assert (found.severity, found.where) == ("note", "task 'a', held-out trajectory 0")
    assert "1 of 3 trajectories repeat an earlier one (here: task 'a', training trajectory 0)" in (
        found.message
    )
    copied = TaskDemos("a", (trajectory(4, 1), trajectory(4, 2), trajectory(4, 1)), ())
    (found,) = check(Demonstrations((copied,), FEATURES, {}))
    assert (found.severity, found.where) == ("warning", "task 'a', training trajectory 2")
    assert "copied by mistake" in str(found)


def test_a_feature_that_never_varies_is_named() -> None:
    flat = trajectory(4, 1)
    flat.features[:, 1] = 2.5
    (found,) = check(Demonstrations((TaskDemos("a", (flat,), ()),), FEATURES, {}))
    assert (found.severity, found.where) == ("warning", "feature 'x'")
    assert found.message.startswith("it is 2.5 in every step")


def test_a_failed_attempt_stands_apart() -> None:
    good = [grid_path(ROUND if n % 2 else OTHER) for n in range(6)]
    warnings = [f for f in check(on_grid(*good, grid_path(ROUND, 0.5))) if f.severity != "note"]
    assert [f.where for f in warnings] == ["task 'a', training trajectory 6"]
    assert "its return is 2.5, the median from its start 5: a failed" in warnings[0].message


def test_many_failed_attempts_do_not_hide_one_another() -> None:
    good = [grid_path(ROUND if n % 2 else OTHER, 1 + n / 100) for n in range(6)]
    failed = [grid_path(ROUND, reward) for reward in (0.4, 0.5, 0.45)]
    (found,) = (f for f in check(on_grid(*good, *failed)) if f.severity != "note")
    assert (found.severity, found.where) == ("warning", "task 'a', training trajectory 6")
    assert "its return and 2 more of 9 (2 to 2.5) lie far below the others (5 to 5.25)" in (
        found.message
    )
    halves = [grid_path(ROUND, 0.4 + n / 100) for n in range(6)]  # two ways, neither the exception
    assert [f for f in check(on_grid(*good, *halves)) if f.severity != "note"] == []


def test_where_all_returns_vary_none_stands_apart() -> None:
    varied = [grid_path(ROUND, reward) for reward in (1.0, 0.9, 0.8, 1.1, 1.2, 0.85, 1.05)]
    assert check(on_grid(*varied)) == []


def test_those_who_gain_by_other_ways_stand_apart() -> None:
    good = [grid_path(ROUND if n % 2 else OTHER) for n in range(5)]
    bad = [grid_path(ACROSS, 1.5), grid_path(ACROSS, 1.5)]
    warnings = [f for f in check(on_grid(bad[0], *good, bad[1])) if f.severity != "note"]
    assert [f.where for f in warnings] == [
        "task 'a', training trajectory 0",
        "task 'a', training trajectory 6",
    ]
    assert "visits 1 cells that those don't ((0,1))" in warnings[0].message
    lucky = check(on_grid(*good, grid_path(ROUND, 1.5)))  # the same ways: no sign of a breach
    assert [f for f in lucky if f.severity != "note"] == []


def test_returns_are_compared_from_the_same_start() -> None:
    near = [[(1, 2), (0, 2), (0, 2), (0, 2), (0, 2)], [(1, 2), (1, 1), (0, 1), (0, 2), (0, 2)]]
    paths = (
        [grid_path(cells, 3.0) for cells in near * 2]
        + [grid_path(ROUND)] * 2
        + [grid_path(OTHER)] * 2
    )
    assert [f.severity for f in check(on_grid(*paths))] == ["note"]


def test_a_return_far_off_is_named_on_continuous_features() -> None:
    paths = [trajectory(20, seed) for seed in range(12)]
    paths[3] = trajectory(20, 3, rewards=np.full(20, 20.0))
    paths[5] = trajectory(20, 5, rewards=np.full(20, 1.0))
    found = check(Demonstrations((TaskDemos("a", tuple(paths), ()),), FEATURES, {}))
    assert [f.where[-2:].strip() for f in found] == ["3", "5"]
    assert "beats all the others" in found[0].message
    assert "failed or careless" in found[1].message


def test_summary_has_the_figures() -> None:
    made = on_grid(grid_path(ROUND), grid_path(OTHER, 2.0), heldout=(grid_path(ROUND),))
    (row,) = demo_checks.summarise(made)
    assert (row.task, row.train, row.heldout, row.length, row.cells) == ("a", 2, 1, 5.0, 8)
    assert (row.reward, row.reward_se) == (7.5, 2.5)


def test_description_shows_table_and_map() -> None:
    text = demo_checks.describe(on_grid(grid_path(ROUND), grid_path(OTHER)), (4, 4))
    lines = text.splitlines()
    assert lines[0] == "features: row (cell), col (cell)"
    assert lines[2].split() == ["a", "2", "0", "5.00", "0.00", "5.0", "8"]
    assert lines[-4:] == ["9.5.", "955.", "555.", "...."]


def test_map_is_for_cells_only() -> None:
    demos = Demonstrations((TaskDemos("a", (trajectory(),), ()),), FEATURES, {})
    assert demo_checks.visit_map(demos) == ""
    assert "tenths" not in demo_checks.describe(demos)
    text = demo_checks.describe(demos)
    points = demos.tasks[0].train[0].features
    assert "cells" not in text
    for feature, low, high in zip(FEATURES, points.min(0), points.max(0), strict=True):
        assert f"{feature.name}: {low:.4g} to {high:.4g} {feature.unit}" in text
    huge = on_grid(grid_path([(0, 0), (10**9, 0)]))
    assert demo_checks.visit_map(huge) == ""
    one = on_grid(grid_path(ROUND))
    assert demo_checks.visit_map(one, task="a") == "9.9\n999"
    with pytest.raises(InvalidInput, match=r"no task 'b'.*there are: a"):
        demo_checks.visit_map(one, task="b")


@pytest.mark.parametrize(("cost", "said"), [(19.9, 0), (35.8, 1)])
def test_experts_above_the_limit_they_were_trained_for_are_told(cost: float, said: int) -> None:
    demos = TaskDemos("a", tuple(trajectory(20, seed) for seed in range(3)), ())
    origin = {"delta": 20.0, "true_cost": {"a": cost}}
    found = check(Demonstrations((demos,), FEATURES, origin))
    assert len(found) == said
    assert all("its experts cost 35.8 an episode" in str(one) for one in found)
