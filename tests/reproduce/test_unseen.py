"""Tasks never seen: cases by name, methods, outcomes, and files that can be resumed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from small_study import study_of

from ringfence.disk import json_bytes
from ringfence.reproduce import pictures, unseen
from ringfence.reproduce.unseen import METHODS, NEW_GOAL, NEW_START, Case
from ringfence.worlds.grid import safe_distances


def small(name: str, tasks: int = 3, new: int = 4) -> Case:
    """A case with few goals."""
    case = unseen.make_case(name)
    world = replace(case.world, goals=case.world.goals[:tasks])
    return replace(case, world=world, new_goals=case.new_goals[:new])


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    return [unseen.result_of(small(name)) for name in ("random-1", "random-2", "maze-0")]


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


def test_the_multi_task_map_forbids_nothing_that_was_visited() -> None:
    case = small("random-1")
    for K, evidence, forbidden, _ in unseen.constraints(case.world):
        allowed = evidence.allowed.reshape(case.world.shape)
        assert not (forbidden["multi-task"] & allowed).any()
        assert (forbidden["unvisited"] == ~allowed).all()
        if K == 1:  # all learned maps are one
            for method in ("single-task", "average", "maximum"):
                assert (forbidden[method] == forbidden["multi-task"]).all()


def test_visited_cells_do_exactly_what_is_covered_and_never_violate(
    results: list[dict[str, Any]],
) -> None:
    rows = [row for result in results for row in result["rows"]]
    for row in rows:
        if row["method"] == "unvisited":
            assert row["unsafe"] == 0
            assert row["safe"] == (row["tasks"] if row["covered"] else 0)
        if row["method"] == "multi-task" and row["covered"]:  # shuts out nothing that is covered
            assert row["safe"] + row["unsafe"] == row["tasks"]
    assert any(row["unsafe"] for row in rows if row["method"] == "multi-task")


def test_worker_processes_and_a_second_start_leave_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    unseen.results(["random-2", "maze-0"], tmp_path, 2, said.append)
    file = tmp_path / "random-2.json"
    assert file.read_bytes() == json_bytes(unseen.result_of(unseen.make_case("random-2")))
    monkeypatch.setattr(unseen, "play_case", lambda *_: pytest.fail("played again"))
    unseen.results(["random-2", "maze-0"], tmp_path, 2, said.append)
    assert said[-1] == "2 cases, 2 of them done before"


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
    got = unseen.pooled(parts)
    assert (got["tasks"], got["safe"], got["unsafe"], got["declined"]) == (20, 17, 2, 1)
    assert (got["violating_cases"], got["true_cost"], got["more_moves"]) == (1, 0.2, 1.0)
    spread = [got[f"unsafe_q{q}"] for q in (10, 50, 90)]
    assert spread == pytest.approx([0.02, 0.1, 0.18])
    uncovered = [got[f"uncovered_{name}"] for name in ("tasks", "safe", "unsafe", "declined")]
    assert uncovered == [4, 1, 2, 1]


def test_the_theorys_number_of_tasks_is_the_formulas_and_ten_are_vacuous(tmp_path: Path) -> None:
    found = unseen.theory_rows(study_of(tmp_path, {}))
    log = math.log(2 * 2**100 / 0.05)
    for row in found.rows:
        if row["asked"] == "tasks":
            assert row["K"] == math.ceil(4 * log / (2 * row["epsilon"] ** 2))
        else:
            assert row["vacuous"]
    assert found.facts["not_vacuous_from"] == math.ceil(log / 2)


def test_rows_and_picture_say_what_was_counted(
    results: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unseen, "cases_of", lambda study: results)
    study = study_of(tmp_path, {})
    found = unseen.outcome_rows(study)
    assert [found.facts[name] for name in ("random", "maze", "games")] == [2, 1, 18]
    assert {row["method"] for row in found.rows} > set(METHODS)
    names = {"world": "random", "kind": NEW_GOAL, "K": 3, "method": "multi-task"}
    (ours,) = [row for row in found.rows if names.items() <= row.items()]
    assert ours["tasks"] == ours["safe"] + ours["unsafe"] + ours["declined"] == 16
    maps = unseen.map_rows(study).rows
    assert [m["cases"] for m in maps if m["world"] == "random"] == [2, 2, 2]
    table = [{"table": "unseen_outcomes", **row} for row in found.rows]
    (tmp_path / "table.json").write_text(json.dumps(table))
    pictures.unseen(study, tmp_path / "unseen.png")
    assert imread(tmp_path / "unseen.png").std() > 0.02
