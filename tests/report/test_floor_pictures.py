from __future__ import annotations

import io

import numpy as np
from matplotlib.image import imread

from ringfence.constraints.linear import LinearConstraint
from ringfence.report.animation import level_lines, walking
from ringfence.report.floor import FloorPanel, maze_picture
from ringfence.worlds.sim.floor import FEATURES, Layout

LAYOUT = Layout((2, 3))
WALLS = np.array([[False, True, False], [False, False, False]])
PATH = np.linspace([-4.0, 2.0], [-4.0, -2.0], 40)


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(imread(io.BytesIO(picture)))


def test_flagged_cells_and_paths_change_the_picture() -> None:
    panels = {
        "bare": FloorPanel("maze", WALLS),
        "flagged": FloorPanel("maze", WALLS, WALLS),
        "path": FloorPanel("maze", WALLS, paths=[PATH]),
    }
    drawn = {name: pixels(maze_picture([p], LAYOUT, ".png", 1)) for name, p in panels.items()}
    assert drawn["bare"].std() > 0.01
    assert not np.array_equal(drawn["bare"], drawn["flagged"])
    assert not np.array_equal(drawn["bare"], drawn["path"])


def test_the_same_panels_give_the_same_bytes() -> None:
    panels = [FloorPanel("a", WALLS, WALLS, [PATH]), FloorPanel("b", WALLS)]
    assert maze_picture(panels, LAYOUT, ".png") == maze_picture(panels, LAYOUT, ".png")


def test_level_lines_run_where_the_cost_is_a_half() -> None:
    """log(1 + x - 1) = 0.5 at x = e^0.5: a line from top to bottom, in metres from the left."""
    c = LinearConstraint(FEATURES, np.array([1.0, 0.0]), 1.0)
    (line,) = level_lines(LAYOUT, c)
    points = np.array([p.split() for p in line[1:].split("L")], float)
    np.testing.assert_allclose(points[:, 0], 6 + np.exp(0.5), atol=0.1)
    assert np.ptp(points[:, 1]) == 8


def test_an_ant_walks_its_path_and_waits_at_the_end() -> None:
    c = LinearConstraint(FEATURES, np.zeros(2), 0.0)
    text = walking(LAYOUT, WALLS, WALLS, [PATH, np.repeat(PATH, 2, axis=0)], c)
    assert text.count("<circle ") == 2
    first, second = (part.split('"')[0].split(";") for part in text.split('values="')[2::2])
    assert first[0] == second[0] == "2"  # y = 2 m is 2 m below the map's upper edge
    assert first[-1] == second[-1] == "6"
    assert first[len(first) // 2] == "6" != second[len(second) // 2]  # arrived; on its way


def test_no_line_is_drawn_for_a_constraint_of_zero() -> None:
    assert level_lines(LAYOUT, LinearConstraint(FEATURES, np.zeros(2), 0.0)) == []
