"""bench exact: the figures it promises, and one program per task."""

from __future__ import annotations

import pytest

from ringfence.bench import exact as bench
from ringfence.solvers import lp
from ringfence.worlds.grid import scaled_maze


def test_each_task_has_one_program_that_only_gets_new_cost_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = []
    build = lp.OccupancyLP.__init__

    def counted(self: lp.OccupancyLP, mdp: object) -> None:
        built.append(mdp)
        build(self, mdp)  # type: ignore[arg-type]

    monkeypatch.setattr(lp.OccupancyLP, "__init__", counted)
    row = bench.measure(scaled_maze(10))
    assert len(built) == 10
    assert row.lp_solves > len(built)  # more than one iteration


def test_bench_grows_until_the_budget_and_is_flat() -> None:
    said: list[str] = []
    numbers = bench.bench_exact(budget_s=0.0, report=said.append)
    assert set(numbers) == {f"{n}_10x10" for n in ("game_s", "lp_game_s", "lp_build_s", "lp_per_s")}
    assert all(isinstance(value, float) and value > 0 for value in numbers.values())
    header, row = said
    assert header == bench.HEADER
    assert row.startswith("| 10 x 10 |")
    assert row.count("|") == header.splitlines()[0].count("|")
