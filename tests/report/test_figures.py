"""Pictures: not blank, deterministic, of the right kind; numbers where they belong."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.image
import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.report import figures
from ringfence.report.draw import Curve
from ringfence.report.figures import Panel
from ringfence.report.read import read_run

WALLS = np.zeros((4, 6), dtype=bool)
WALLS[:3, 2] = True
COST = WALLS.astype(float)
PATHS = [
    np.array([[0, 0], [1, 0], [2, 1], [3, 1], [3, 2], [3, 3], [2, 4]]),
    np.array([[0, 0], [0, 1], [1, 1], [2, 1], [3, 1], [3, 2], [3, 3]]),
]
PLACES = {(0, 0): "S", (2, 5): "0"}
CURVES = [
    Curve("restricted", [1, 2, 5], [0.8, 0.9, 0.95], [0.02, 0.02, 0.01]),
    Curve("regression", [1, 2, 5], [0.8, 0.85, 0.9]),
]
PANELS = [
    Panel("truth", walls=WALLS),
    Panel("one task", paths=PATHS[:1]),
    Panel("ten tasks", paths=PATHS),
    Panel("single-task", cost=np.ones((4, 6)), walls=WALLS, note="IoU 0.13"),
    Panel("average", cost=COST * 0.3, walls=WALLS),
    Panel("maximum", cost=COST, walls=WALLS),
    Panel("multi-task, 1", cost=COST, walls=WALLS),
    Panel("multi-task, last", cost=COST, walls=WALLS),
]


def maze(path: Path) -> Path:
    return figures.maze_figure(PANELS, path, shape=(4, 6), places=PLACES)


def curves(path: Path) -> Path:
    return figures.curve_figure(CURVES, path, "paths per start", "IoU", "a title")


def solved(path: Path) -> Path:
    path.write_bytes(figures.path_picture(WALLS, COST, PATHS, "goal (2,5)", PLACES))
    return path


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(matplotlib.image.imread(io.BytesIO(picture), format="png"))


def require_picture(picture: bytes) -> None:
    """A picture varies, and has more than a few colours."""
    image = pixels(picture)
    assert image[..., :3].std() > 0.03
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 20


@pytest.mark.parametrize("draw", [maze, curves, solved])
def test_pictures_are_not_blank(draw: Callable[[Path], Path], tmp_path: Path) -> None:
    path = draw(tmp_path / "picture.png")
    require_picture(path.read_bytes())
    assert [p.name for p in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize("draw", [maze, curves])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_data_give_the_same_bytes(
    draw: Callable[[Path], Path], suffix: str, tmp_path: Path
) -> None:
    first, second = (draw(tmp_path / f"{n}{suffix}").read_bytes() for n in (1, 2))
    assert first == second
    assert not any(word in first for word in (b"dc:date", b"dc:creator", b"Software"))


def test_the_user_s_settings_do_not_matter(tmp_path: Path) -> None:
    plain = curves(tmp_path / "plain.png").read_bytes()
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 20, "savefig.dpi": 30}):
        assert curves(tmp_path / "again.png").read_bytes() == plain


def test_run_figure_shows_map_evidence_and_curves(finished: Path, tmp_path: Path) -> None:
    first = figures.run_figure(finished, tmp_path / "1.png").read_bytes()
    require_picture(first)
    assert figures.run_figure(finished, tmp_path / "2.png").read_bytes() == first


def test_run_figure_works_without_a_truth(without_truth: Path, tmp_path: Path) -> None:
    require_picture(figures.run_figure(without_truth, tmp_path / "run.png").read_bytes())


def test_run_figure_works_for_a_linear_constraint(linear: Path, tmp_path: Path) -> None:
    require_picture(figures.run_figure(linear, tmp_path / "run.png").read_bytes())


def test_what_is_drawn_changes_the_picture() -> None:
    nothing = figures.path_picture(None, np.zeros((4, 6)), [], "")
    truth = figures.path_picture(WALLS, np.zeros((4, 6)), [], "")
    cost = figures.path_picture(None, COST, [], "")
    paths = figures.path_picture(None, np.zeros((4, 6)), PATHS, "")
    assert len({nothing, truth, cost, paths}) == 4


def test_signed_and_standing_paths_are_drawn() -> None:
    cost = np.where(WALLS, 0.5, -0.5)
    standing = [np.array([[0, 0]]), np.array([[1, 1], [1, 1]])]
    require_picture(figures.path_picture(None, cost, standing, "stays"))


def test_a_name_with_a_dollar_is_no_formula() -> None:
    require_picture(figures.path_picture(None, COST, [], "costs $ and _ and \\frac{1}{$"))


def test_bad_requests_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        curves(tmp_path / "picture.doc")
    with pytest.raises(InvalidInput, match="at least one panel"):
        figures.maze_figure([], tmp_path / "a.png")
    with pytest.raises(InvalidInput, match="at least one curve"):
        figures.curve_figure([], tmp_path / "a.png", "x", "y")
    assert not list(tmp_path.iterdir())


def test_report_data_are_those_of_the_run(finished: Path) -> None:
    run = read_run(finished)
    assert run.walls is not None
    assert run.walls.sum() == 3
    assert [len(paths) for paths in run.paths] == [3, 3]
    # A path ends where it comes to rest: at its task's goal.
    for goal, paths in zip(run.world.goals, run.paths, strict=True):
        assert all(tuple(path[-1]) == goal for path in paths)
