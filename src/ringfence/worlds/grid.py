"""Grid worlds read from a text map: permeable but forbidden walls, starts and goals.

    S.#..0      '.' free     '#' forbidden (a wall that can be walked through, at a cost)
    ..#..1      'S' start    '0'..'9' the goals, one task each, in the order of their digits
    S....2      'G' goals without a number, in reading order

Four moves and stay; a move off the map stays. With probability `slip` a uniformly random
one of the five is made instead. The goal is absorbing. J counts the cells s_0..s_{T-1}: where
a last move after the horizon would lead is never paid or punished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Demonstrations, Feature, Finding, Solution
from ringfence.worlds.finite import FiniteMDP, FiniteTask
from ringfence.worlds.finite_checks import check as check_finite
from ringfence.worlds.world import Cells, Tables, View, require_fields

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
MAX_MAP_BYTES = 1 << 20


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


@dataclass(frozen=True)
class Config:
    """A text map and its dynamics.

    map: its lines: '.' free, '#' forbidden, 'S' start, digits or 'G' goals; name: in reports;
    horizon: steps of an episode (None: 5/4 of the longest safe way, plus 1); slip: the chance that
    a move is a random one; reward: of a step, 1 at the goal ("goal") or exp(-distance to it).
    """

    map: tuple[str, ...]
    kind: Literal["grid"] = "grid"
    name: str = "map"
    horizon: int | None = None
    slip: float = 0.0
    reward: Reward = "goal"


def make(config: Config) -> GridWorld:
    world = read_map("\n".join(config.map), config.horizon, config.slip, config.reward)
    return replace(world, name=config.name)


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
    name: str = "map"
    packages: ClassVar[tuple[str, ...]] = ("scipy", "highspy")
    experts: ClassVar[str] = "optimal"

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

    @property
    def settings(self) -> Config | None:
        """The settings that make this world again; None where no map can say its goals' order."""
        letters = np.where(self.truth.walls, "#", ".")
        marks = [str(n) if len(self.goals) <= 10 else "G" for n in range(len(self.goals))]
        for cell, mark in (*((s, "S") for s in self.starts), *zip(self.goals, marks, strict=True)):
            letters[cell] = mark
        lines = tuple("".join(line) for line in letters)
        config = Config(lines, "grid", self.name, self.horizon, self.slip, self.reward)
        again = read_map("\n".join(lines), self.horizon, self.slip, self.reward)
        same = (again.starts, again.goals) == (self.starts, self.goals)
        return config if same and (again.truth.walls == self.truth.walls).all() else None

    @cached_property
    def cells(self) -> Cells:
        """Every cell is a state, in reading order."""
        points = np.indices(self.shape).reshape(2, -1).T.astype(float)
        return Cells(
            self.tasks,
            self.shape,
            lambda phi: (phi[:, 0] * self.shape[1] + phi[:, 1]).astype(np.intp),
            lambda c: (c.cost(points) > 0).reshape(self.shape),
            self.truth.walls if self.truth.known else None,
            towards=lambda goal, starts: self.task(
                self._inside("goal", goal),
                None if starts is None else tuple(self._inside("start", s) for s in starts),
            ),
        )

    def check(self, demos: Demonstrations) -> list[Finding]:
        return check_finite(demos, self.tasks)

    def new_task(self, spec: Mapping[str, Any]) -> FiniteTask:
        """Reaching the cell `goal` from the cell `start`."""
        require_fields("a map", spec, ("goal", "start"))
        goal, start = (self._inside(name, spec[name]) for name in ("goal", "start"))
        return self.task(goal, (start,))

    def _inside(self, what: str, place: Sequence[int]) -> Cell:
        row, col = map(int, place)
        if not (0 <= row < self.shape[0] and 0 <= col < self.shape[1]):
            raise InvalidInput(
                f"{what} {(row, col)}: outside the map of {self.shape[0]} x {self.shape[1]} cells"
            )
        return row, col

    def defaults(self, given: Tables) -> Tables:
        return {}

    def views(self) -> list[View]:
        return [{"kind": "map", "columns": [0, 1], **places(self)}]

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        return {}

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


def places(world: GridWorld) -> View:
    """Where a map's starts, goals and, if they are known, walls are."""
    return {
        "shape": list(world.shape),
        "starts": [list(cell) for cell in world.starts],
        "goals": [list(cell) for cell in world.goals],
        "walls": world.truth.walls.astype(int).tolist() if world.truth.known else None,
    }


def map_config(world: str, **settings: Any) -> dict[str, Any]:
    """The settings of a map by its name: "maze" is built in, anything else a text map's path."""
    text = MAZE if world == "maze" else read_map_file(Path(world))
    if world == "maze" and settings.get("horizon") is None:
        settings["horizon"] = MAZE_HORIZON
    try:
        horizon = read_map(text, **settings).horizon
    except InvalidInput as problem:
        raise InvalidInput(f"{world}: {problem}") from None
    name = "maze" if world == "maze" else Path(world).stem
    lines = text.rstrip("\n").split("\n")
    return {"kind": "grid", "name": name, "map": lines, **settings, "horizon": horizon}


def read_map_file(path: Path) -> str:
    if not path.is_file():
        raise InvalidInput(
            f"world {str(path)!r}: no such map file; give 'maze' (built in), 'ant', 'gym:ID', or "
            "a text map's path; an environment of your own can be named in a TOML file "
            "(docs/your-environment.md)"
        )
    if path.stat().st_size > MAX_MAP_BYTES:
        raise InvalidInput(f"{path}: larger than {MAX_MAP_BYTES} bytes; this is not a map")
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: not a plain text map; use the letters . # S G 0-9") from None


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
    return replace(read_map(MAZE, horizon=MAZE_HORIZON), name="maze")


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
