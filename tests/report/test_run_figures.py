"""Pictures of finished runs: not blank, deterministic, and refused in words where they can't be."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import safetensors.numpy
from test_figures import require_picture
from written_runs import save_constraint

from ringfence.errors import InvalidInput
from ringfence.objects import NotHere
from ringfence.report.draw import run_figures
from ringfence.report.read import read_run


def test_the_readmes_picture_is_drawn_from_a_run_and_always_the_same(
    finished: Path, tmp_path: Path
) -> None:
    tool = Path(__file__).parents[2] / "tools" / "quickstart_picture.py"
    draw = runpy.run_path(str(tool))["picture"]
    first, second = (draw(finished, tmp_path / f"{n}.png").read_bytes() for n in "12")
    require_picture(first)
    assert first == second


def test_evidence_is_drawn_where_there_is_some(finished: Path, speed: Path, tmp_path: Path) -> None:
    require_picture(run_figures.evidence_figure(finished, tmp_path / "a.png").read_bytes())
    with pytest.raises(InvalidInput, match="no map with evidence"):
        run_figures.evidence_figure(speed, tmp_path / "b.png")


def test_paths_from_above_are_drawn_on_planes(finished: Path, speed: Path, tmp_path: Path) -> None:
    require_picture(run_figures.paths_figure(speed, tmp_path / "a.png").read_bytes())
    with pytest.raises(InvalidInput, match="no plane"):
        run_figures.paths_figure(finished, tmp_path / "b.png")


def test_iterations_are_drawn_over_seeds(speed: Path, finished: Path, tmp_path: Path) -> None:
    for run in (speed, finished):
        summary = read_run(run).summary
        shorter = {**summary, "iterations": summary["iterations"][:1]}
        path = run_figures.iterations_figure([summary, shorter], tmp_path / f"{run.name}.png")
        require_picture(path.read_bytes())


# Single problems ---------------------------------------------------------------------------------


def solve(run: Path, folder: Path) -> Path:
    """A solved problem with the run's constraint and experts in the place of its episodes."""
    data = read_run(run)
    folder.mkdir()
    save_constraint(folder / "constraint", data.learned[-1])
    summary = {"task": data.tasks[0], "views": data.summary["views"]}
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "solve.toml").write_text("[world]\nkind = 'a'\n")
    episodes = {str(n): phi.astype("float32") for n, phi in enumerate(data.experts[0])}
    safetensors.numpy.save_file(episodes, folder / "episodes.safetensors")
    return folder


@pytest.mark.parametrize("name", ["finished", "linear", "speed", "floor"])
def test_a_solved_problem_has_a_picture(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found = run_figures.solve_picture(solve(request.getfixturevalue(name), tmp_path / "solve"))
    assert isinstance(found, bytes)
    require_picture(found)


def test_what_can_not_be_drawn_says_why(speed: Path, tmp_path: Path) -> None:
    folder = solve(speed, tmp_path / "solve")
    (folder / "summary.json").write_text(
        json.dumps({"task": "a", "views": [{"kind": "line", "columns": [2]}]})
    )
    found = run_figures.solve_picture(folder)
    assert isinstance(found, NotHere)
    assert "no map or plane" in found.reason
    (folder / "episodes.safetensors").unlink()
    found = run_figures.solve_picture(folder)
    assert isinstance(found, NotHere)
    assert "no episodes" in found.reason
