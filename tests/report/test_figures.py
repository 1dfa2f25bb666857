"""Pictures: not blank, deterministic, of the right kind; numbers where they belong."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.image
import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.report.draw import figures
from ringfence.report.draw.canvas import Curve
from ringfence.report.draw.figures import Panel
from ringfence.worlds.sim.floor import Layout

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
    Panel("single-task", WALLS, np.ones((4, 6), bool), note="IoU 0.13"),
    Panel("average", WALLS, np.zeros((4, 6), bool)),
    Panel("maximum", WALLS, COST > 0),
    Panel("multi-task, 1", WALLS, COST > 0.5),
    Panel("multi-task, last", WALLS, WALLS),
]


def maze(path: Path) -> Path:
    return figures.maze_figure(PANELS, path, ground=(4, 6), places=PLACES)


def curves(path: Path) -> Path:
    return figures.curves_figure([("a title", CURVES)], path, "paths per start", "IoU")


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
        figures.curves_figure([("", [])], tmp_path / "a.png", "x", "y")
    assert not list(tmp_path.iterdir())


# Floors ------------------------------------------------------------------------------------------

LAYOUT = Layout((2, 3))
FLOOR = np.array([[False, True, False], [False, False, False]])
WALK = np.linspace([-4.0, 2.0], [-4.0, -2.0], 40)


def test_flagged_cells_paths_and_points_change_a_floor(tmp_path: Path) -> None:
    panels = {
        "bare": Panel("maze", FLOOR, points=np.zeros((0, 2))),
        "flagged": Panel("maze", FLOOR, FLOOR),
        "path": Panel("maze", FLOOR, paths=[WALK]),
        "points": Panel("maze", FLOOR, points=WALK),
    }
    drawn = {
        figures.maze_figure([panel], tmp_path / f"{name}.png", LAYOUT, columns=1).read_bytes()
        for name, panel in panels.items()
    }
    assert len(drawn) == 4
    for picture in drawn:
        assert pixels(picture).std() > 0.01


def test_a_walk_is_drawn_over_its_cells() -> None:
    on_floor = figures.path_picture(FLOOR, FLOOR * 1.0, [WALK], "walk", ground=LAYOUT)
    require_picture(on_floor)
    assert on_floor != figures.path_picture(FLOOR, FLOOR * 1.0, [], "walk", ground=LAYOUT)


# Episodes ----------------------------------------------------------------------------------------


def test_from_above_the_forbidden_side_is_shaded_where_it_can_be() -> None:
    features = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
    steps = np.linspace(0, 1, 50)
    episodes = [np.column_stack([steps, steps**2, steps])]
    drawn = {
        figures.top_view(episodes, parse_inequality(text, features), (0, 1), "from above")
        for text in ("x <= 0.5", "speed <= 0.5")
    }
    assert len(drawn) == 2
    for picture in drawn:
        require_picture(picture)


def test_a_strip_shows_its_frames() -> None:
    frames = np.random.default_rng(0).integers(0, 255, (3, 20, 30, 3), dtype=np.uint8)
    require_picture(figures.strip(frames, ["a", "b", "c"]))
