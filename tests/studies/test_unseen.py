"""Tasks never seen: cases by name, methods, outcomes, and files that can be resumed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from ringfence.cli.main import main
from ringfence.constraints.table import TableConstraint
from ringfence.runs.files import json_bytes
from ringfence.runs.transfer import planning_constraint, transfer
from ringfence.solvers.soft import SoftSolver
from ringfence.studies import unseen, unseen_report, unseen_summary
from ringfence.studies.unseen import METHODS, NEW_GOAL, NEW_START, Attempts, Case
from ringfence.worlds.grid import safe_distances


def small(name: str, tasks: int = 3, new: int = 4) -> Case:
    """A case with few goals."""
    case = unseen.make_case(name)
    world = replace(case.world, goals=case.world.goals[:tasks])
    return replace(case, world=world, new_goals=case.new_goals[:new])


@pytest.fixture(scope="module")
def case() -> Case:
    return small("random-1")


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    return [unseen.study(small(name)) for name in ("random-1", "random-2", "maze-0")]


@pytest.mark.parametrize("seed", range(10))
def test_a_random_case_is_connected_and_its_unseen_tasks_are_new(seed: int) -> None:
    one, again = unseen.make_case(f"random-{seed}"), unseen.make_case(f"random-{seed}")
    world, free = one.world, ~one.world.truth.walls
    assert (world.goals, one.new_goals) == (again.world.goals, again.new_goals)
    assert (safe_distances(~free, world.starts[0])[free] >= 0).all()
    cells = [*world.goals, *one.new_goals, *world.starts, *one.new_starts]
    assert len(set(cells)) == len(cells) == 24
    assert all(free[cell] for cell in cells)
    assert len(one.unseen(1)[NEW_GOAL]) == len(one.unseen(10)[NEW_START]) == 20


def test_the_mazes_new_goals_are_those_that_have_not_joined() -> None:
    one = unseen.make_case("maze-4")
    assert len(one.unseen(7)[NEW_GOAL]) == 6
    assert not {goal for goal, _ in one.unseen(7)[NEW_GOAL]} & set(one.world.goals[:7])
    assert one.unseen(10)[NEW_GOAL] == []
    assert sorted(one.world.goals) == [(k, 9) for k in range(10)]
    assert all(goal != start for goal, start in one.unseen(10)[NEW_START])


def test_forbidding_the_unvisited_is_what_avoid_does(case: Case) -> None:
    for _, evidence, forbidden, _ in unseen.constraints(case.world):
        c = TableConstraint(case.world.features, forbidden["multi-task"].astype(float))
        avoid = planning_constraint(c, evidence, "avoid")
        assert (avoid.forbidden == forbidden["unvisited"]).all()
        assert not (c.forbidden & evidence.allowed.reshape(case.world.shape)).any()


def test_with_one_task_all_learned_maps_are_one(case: Case) -> None:
    K, _, forbidden, _ = next(unseen.constraints(case.world))
    assert K == 1
    for method in ("single-task", "average", "maximum"):
        assert (forbidden[method] == forbidden["multi-task"]).all()


def test_an_attempt_is_what_transfer_does(case: Case) -> None:
    """Planning once for all starts must not change what comes of each."""
    world = case.world
    attempts = Attempts(world, (*world.starts, *case.new_starts))
    outcomes = set()
    for K, evidence, forbidden, _ in unseen.constraints(world):
        pairs = [pair for of in case.unseen(K).values() for pair in of]
        for method, (goal, start) in product(("multi-task", "unvisited"), pairs):
            c = TableConstraint(world.features, forbidden[method].astype(float))
            done = transfer(world, c, evidence, goal, start, "allow", SoftSolver())
            attempt = attempts((goal, start), c.forbidden)
            assert (attempt is not None) == done.success
            assert attempts.covered(evidence, (goal, start)) == done.covered
            if attempt is not None and done.solution is not None:
                cost = world.truth.true_cost(done.solution.behaviour)
                assert attempt.true_cost == pytest.approx(cost, abs=1e-8)
                assert cost > 0 or attempt.more_moves >= 0
            outcomes.add(None if attempt is None else attempt.true_cost > 0)
    assert outcomes == {None, True, False}


def test_visited_cells_do_exactly_what_is_covered_and_never_violate(
    results: list[dict[str, Any]],
) -> None:
    rows = [row for result in results for row in result["rows"]]
    for row in [row for row in rows if row["method"] == "unvisited"]:
        assert row["unsafe"] == 0
        assert row["safe"] == (row["tasks"] if row["covered"] else 0)
    assert any(row["unsafe"] for row in rows if row["method"] == "multi-task")


def test_the_multi_task_map_shuts_out_nothing_that_is_covered(
    results: list[dict[str, Any]],
) -> None:
    for row in [row for result in results for row in result["rows"]]:
        if row["method"] == "multi-task" and row["covered"]:
            assert row["safe"] + row["unsafe"] == row["tasks"]


def test_a_worker_process_and_a_second_start_leave_the_same_bytes(tmp_path: Path) -> None:
    said: list[str] = []
    unseen.results(["random-2"], tmp_path, 2, said.append)
    file = tmp_path / "random-2.json"
    assert file.read_bytes() == json_bytes(unseen.study(unseen.make_case("random-2")))
    stamp = file.stat().st_mtime_ns
    unseen.results(["random-2"], tmp_path, 2, said.append)
    assert file.stat().st_mtime_ns == stamp
    assert said[-1] == "1 cases, 1 of them done before"


def test_a_result_of_other_settings_is_not_taken(tmp_path: Path) -> None:
    result = {"settings": {**unseen.SETTINGS, "side": 9}, "name": "random-0"}
    (tmp_path / "random-0.json").write_bytes(json_bytes(result))
    assert unseen.stored(tmp_path, "random-0") is None
    (tmp_path / "random-0.json").write_bytes(json_bytes({**result, "settings": unseen.SETTINGS}))
    assert unseen.stored(tmp_path, "random-0") is not None


def test_counts_are_pooled_over_cases_and_violations_counted_by_case() -> None:
    def part(covered: bool, tasks: int, safe: int, unsafe: int) -> dict[str, Any]:
        counts = {"tasks": tasks, "safe": safe, "unsafe": unsafe}
        return {"covered": covered, **counts, "true_cost": 2.0 * unsafe, "more_moves": 1.0 * safe}

    parts = [[part(True, 6, 6, 0), part(False, 4, 1, 2)], [part(True, 10, 10, 0)]]
    got = unseen_summary.pooled(parts)
    assert (got["tasks"], got["safe"], got["unsafe"], got["declined"]) == (20, 17, 2, 1)
    assert (got["violating_cases"], got["true_cost"], got["more_moves"]) == (1, 0.2, 1.0)
    assert got["over_cases"]["unsafe"] == pytest.approx([0.02, 0.1, 0.18])
    assert got["uncovered"] == {"tasks": 4, "safe": 1, "unsafe": 2, "declined": 1}


def test_the_theorys_number_of_tasks_is_the_formulas_and_ten_are_vacuous() -> None:
    rows = unseen_summary.theory_rows()
    log = math.log(2 * 2**100 / 0.05)
    for row in rows["tasks_needed"]:
        assert row["K"] == math.ceil(4 * log / (2 * row["epsilon"] ** 2))
    assert rows["not_vacuous_from"] == math.ceil(log / 2)
    assert all(row["vacuous"] for row in rows["epsilon_of_K"])


def test_table_and_picture_say_what_was_counted(
    results: list[dict[str, Any]], tmp_path: Path
) -> None:
    summary = unseen_summary.summarise(results, "ringfence reproduce unseen")
    assert {row["method"] for row in summary["rows"]} > set(METHODS)
    text = unseen_report.table(summary)
    of = [r for r in summary["rows"] if (r["world"], r["kind"], r["K"]) == ("random", NEW_GOAL, 3)]
    ours = next(row for row in of if row["method"] == "multi-task")
    assert "| " + " | ".join(unseen_report.outcome_line(ours)) + " |" in text
    unseen_report.figure(summary, tmp_path / "unseen.png")
    picture = imread(tmp_path / "unseen.png")
    assert picture.std() > 0.02


def test_no_workers_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "unseen", "--workers", "0"]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err
