"""Grid worlds read from a text map: permeable but forbidden walls, starts and goals.

    S.#..0      '.' free     '#' forbidden (a wall that can be walked through, at a cost)
    ..#..1      'S' start    '0'..'9' the goals, one task each, in the order of their digits
    S....2      'G' goals without a number, in reading order

Four moves and stay; a move off the map stays. With probability `slip` a uniformly random
one of the five is made instead. The goal is absorbing. J counts the cells s_0..s_{T-1}: where
a last move after the horizon would lead is never paid or punished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature
from ringfence.worlds.finite import FiniteMDP, FiniteTask

Cell = tuple[int, int]
Reward = Literal["goal", "exp-distance"]

MOVES: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
FEATURES = (Feature("row", "cell"), Feature("col", "cell"))

#: The paper's maze: walls rows 0-5 x columns 2-4 and rows 4-9 x columns 6-8, starts at the
#: left corners, one goal per row in the last column.
MAZE = """\
S.###....0
..###....1
..###....2
..###....3
..###.###4
..###.###5
......###6
......###7
......###8
S.....###9
"""
MAZE_HORIZON = 30  # the longest safe path has 24 moves


@dataclass(frozen=True)
class GridTruth:
    """The world's evaluator: the only place that knows which cells are forbidden.

    Nothing that learns or selects receives this object; the driver calls it afterwards.
    """

    walls: NDArray[np.bool_]

    @property
    def known(self) -> bool:
        """A map without any forbidden cell knows no truth: it is a user's world to learn about."""
        return bool(self.walls.any())

    def true_cost(self, pi: Behaviour) -> float:
        """Expected steps of an episode spent in forbidden cells."""
        row, col = pi.features[:, 0].astype(int), pi.features[:, 1].astype(int)
        return float(pi.visits @ self.walls[row, col])

    def true_raw(self, pi: Behaviour) -> float:
        """The same: in a maze the raw value is 1 in a wall and 0 elsewhere."""
        return self.true_cost(pi)


@dataclass(frozen=True, eq=False)
class GridWorld:
    """A grid world: its size, its tasks' starts and goals, its dynamics, and its truth."""

    shape: tuple[int, int]
    starts: tuple[Cell, ...]
    goals: tuple[Cell, ...]
    truth: GridTruth
    horizon: int
    slip: float = 0.0
    reward: Reward = "goal"

    @property
    def features(self) -> tuple[Feature, ...]:
        return FEATURES

    @cached_property
    def tasks(self) -> tuple[FiniteTask, ...]:
        return tuple(self.task(goal) for goal in self.goals)

    def task(self, goal: Cell, starts: tuple[Cell, ...] | None = None) -> FiniteTask:
        """The task of reaching `goal` from a uniformly random start. It holds no truth."""
        rows, cols = self.shape
        cells = np.indices(self.shape).reshape(2, -1).T
        return FiniteTask(
            name=f"goal ({goal[0]},{goal[1]})",
            mdp=FiniteMDP(
                transition=self._transition(goal),
                start=_uniform(self.shape, self.starts if starts is None else starts),
                reward=_reward(self.reward, cells, goal),
                horizon=self.horizon,
            ),
            features=FEATURES,
            phi=np.broadcast_to(cells[:, None].astype(float), (rows * cols, len(MOVES), 2)),
        )

    def _transition(self, goal: Cell) -> csr_array:
        """P[s * A + a, s'] with an absorbing goal."""
        S, A = self.shape[0] * self.shape[1], len(MOVES)
        target = neighbours(self.shape)
        here = goal[0] * self.shape[1] + goal[1]
        target[here] = here
        pairs = np.arange(S * A)
        move = csr_array((np.ones(S * A), (pairs, target.ravel())), shape=(S * A, S))
        if self.slip == 0:
            return move
        slips = (
            np.full(S * A * A, 1 / A),
            (np.repeat(pairs, A), np.repeat(target, A, axis=0).ravel()),
        )
        return csr_array((1 - self.slip) * move + self.slip * csr_array(slips, shape=(S * A, S)))


def neighbours(shape: tuple[int, int]) -> NDArray[np.intp]:
    """The cell that each move leads to, [S, 5]; off the map means to stay."""
    row, col = np.indices(shape).reshape(2, -1)
    steps = np.array(MOVES)
    to_row = np.clip(row[:, None] + steps[:, 0], 0, shape[0] - 1)
    to_col = np.clip(col[:, None] + steps[:, 1], 0, shape[1] - 1)
    return np.asarray(to_row * shape[1] + to_col, dtype=np.intp)


def _uniform(shape: tuple[int, int], starts: tuple[Cell, ...]) -> Array:
    start = np.zeros(shape)
    for cell in starts:
        start[cell] = 1 / len(starts)
    return start.ravel()


def _reward(kind: Reward, cells: NDArray[np.intp], goal: Cell) -> Array:
    """r[s, a]: 1 at the goal, or exp(-Euclidean distance to it), for any action."""
    distance = np.linalg.norm(cells - np.array(goal), axis=1)
    r = (distance == 0).astype(float) if kind == "goal" else np.exp(-distance)
    return np.repeat(r[:, None], len(MOVES), axis=1)


def maze() -> GridWorld:
    """The paper's maze."""
    return read_map(MAZE, horizon=MAZE_HORIZON)


def random_map(
    seed: int, side: int = 8, walls: float = 0.3, starts: int = 2, goals: int = 4
) -> str:
    """A text map with about that share of forbidden cells, whose other cells are all connected."""
    rng = np.random.default_rng([seed, side])
    while True:
        forbidden = rng.random((side, side)) < walls
        free = np.argwhere(~forbidden)
        middle = free[rng.integers(len(free))]
        reached = safe_distances(forbidden, (int(middle[0]), int(middle[1]))) >= 0
        if reached.sum() >= max(starts + goals, (1 - walls) * side**2 / 2):
            break
    letters = np.where(reached, ".", "#")
    places = rng.permutation(np.argwhere(reached))[: starts + goals]
    for n, (row, col) in enumerate(places):
        letters[row, col] = "S" if n < starts else "G"
    return "\n".join("".join(line) for line in letters)


def scaled_maze(side: int) -> GridWorld:
    """The paper's maze drawn on side x side cells (side >= 10); still two starts and ten tasks."""
    rows = MAZE.split()
    old = np.arange(side) * len(rows) // side  # the maze's row or column that each of ours shows
    first = [int(np.flatnonzero(old == k)[0]) for k in range(len(rows))]
    letters = np.array([[rows[r][c] for c in old] for r in old])
    letters[letters != "#"] = "."
    letters[[0, -1], 0] = "S"
    letters[first, -1] = list("0123456789")
    text = "\n".join("".join(line) for line in letters)
    return read_map(text, horizon=MAZE_HORIZON * side // len(rows))


def read_map(
    text: str, horizon: int | None = None, slip: float = 0.0, reward: Reward = "goal"
) -> GridWorld:
    """A grid world from a text map; `horizon` defaults to 5/4 of the longest safe way, plus 1."""
    if not 0 <= slip < 1:
        raise InvalidInput(f"slip must be in [0, 1), got {slip}")
    if reward not in ("goal", "exp-distance"):
        raise InvalidInput(f"reward must be 'goal' or 'exp-distance', got {reward!r}")
    if horizon is not None and horizon < 1:
        raise InvalidInput(f"horizon must be at least 1, got {horizon}")
    lines = _lines(text)
    walls = np.array([[letter == "#" for letter in line] for line in lines])
    starts = tuple(cell for cell, letter in _letters(lines) if letter == "S")
    goals = _goals(lines)
    if not starts:
        raise InvalidInput("map: no start; mark at least one cell with 'S'")
    if not goals:
        raise InvalidInput("map: no goal; mark at least one cell with a digit or 'G'")
    longest = max(_safe_moves(walls, lines, start, goal) for start in starts for goal in goals)
    if horizon is None:
        horizon = longest + longest // 4 + 1
    if horizon <= longest:
        raise InvalidInput(
            f"map: horizon {horizon} is too short, the longest safe way to a goal takes "
            f"{longest} moves; use a horizon of at least {longest + 1}"
        )
    return GridWorld(walls.shape, starts, goals, GridTruth(walls), horizon, slip, reward)


def _lines(text: str) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    if not lines[0]:
        raise InvalidInput("map, line 1: it is empty; a map needs at least one row of cells")
    for number, line in enumerate(lines, start=1):
        if len(line) != len(lines[0]):
            raise InvalidInput(
                f"map, line {number}: it has {len(line)} cells, line 1 has {len(lines[0])}; "
                "make all lines of one length"
            )
        for letter in line:
            if letter not in ".#SG0123456789":
                raise InvalidInput(
                    f"map, line {number}: unknown letter {letter!r}; use '.' free, '#' forbidden, "
                    "'S' start, a digit or 'G' for a goal"
                )
    return lines


def _letters(lines: list[str]) -> list[tuple[Cell, str]]:
    return [((r, c), letter) for r, line in enumerate(lines) for c, letter in enumerate(line)]


def _goals(lines: list[str]) -> tuple[Cell, ...]:
    digits = sorted((letter, cell) for cell, letter in _letters(lines) if letter.isdigit())
    for digit, same in groupby(digits, key=lambda pair: pair[0]):
        cells = [cell for _, cell in same]
        if len(cells) > 1:
            raise InvalidInput(
                f"map, line {cells[1][0] + 1}: goal {digit!r} stands in {len(cells)} cells; "
                "give each goal its own digit, or use 'G'"
            )
    unnumbered = [cell for cell, letter in _letters(lines) if letter == "G"]
    return (*(cell for _, cell in digits), *unnumbered)


def _safe_moves(walls: NDArray[np.bool_], lines: list[str], start: Cell, goal: Cell) -> int:
    """Moves of the shortest way from start to goal that crosses no forbidden cell."""
    distance = safe_distances(walls, start)[goal]
    if distance < 0:
        raise InvalidInput(
            f"map, line {goal[0] + 1}: goal {lines[goal[0]][goal[1]]!r} at {goal} can't be reached "
            f"from the start at {start} (line {start[0] + 1}) without crossing a forbidden cell; "
            "open a way"
        )
    return int(distance)


def safe_distances(walls: NDArray[np.bool_], start: Cell) -> NDArray[np.intp]:
    """Moves from `start` to each cell through free cells, [rows, cols]; -1 if there is no way."""
    target, free = neighbours(walls.shape), ~walls.ravel()
    distance = np.full(walls.size, -1)
    here = np.array([start[0] * walls.shape[1] + start[1]])
    for step in range(walls.size):
        here = here[free[here] & (distance[here] < 0)]
        distance[here] = step
        here = np.unique(target[here])
    return distance.reshape(walls.shape)
