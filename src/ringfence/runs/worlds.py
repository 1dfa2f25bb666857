"""From configuration to the objects it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ringfence.errors import InvalidInput
from ringfence.objects import Problem, Solution
from ringfence.runs.config import SolverConfig, WorldConfig
from ringfence.solvers.lp import LPSolver
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import MAZE, MAZE_HORIZON, GridWorld, Reward, read_map
from ringfence.worlds.sim.floor import HORIZON

MAX_MAP_BYTES = 1 << 20
ANT_MAZE = "ant-maze"


def world_config(
    world: str, horizon: int | None = None, slip: float = 0.0, reward: Reward = "goal"
) -> WorldConfig:
    """ "maze" is the built-in world, "ant-maze" the same for the Ant, "ant-maze:FILE" another map
    for the Ant; anything else is the path of a text map."""
    if world.split(":")[0] == ANT_MAZE:
        return _ant_maze_config(world, horizon)
    text = MAZE if world == "maze" else _read_map_file(Path(world))
    if world == "maze" and horizon is None:
        horizon = MAZE_HORIZON
    try:
        grid = read_map(text, horizon, slip, reward)
    except InvalidInput as problem:
        raise InvalidInput(f"{world}: {problem}") from None
    name = "maze" if world == "maze" else Path(world).stem
    return WorldConfig(name, tuple(text.rstrip("\n").split("\n")), grid.horizon, slip, reward)


def _ant_maze_config(world: str, horizon: int | None) -> WorldConfig:
    """The map's own rules (each goal can be reached) are the grid's; the horizon is in steps."""
    _, _, file = world.partition(":")
    grid = world_config(file or "maze")
    if horizon is not None and horizon < 1:
        raise InvalidInput(f"horizon must be at least 1, got {horizon}")
    name = ANT_MAZE if not file else f"{ANT_MAZE}-{grid.name}"
    return WorldConfig(name, grid.map, horizon or HORIZON, 0.0, "exp-distance", "ant")


def _read_map_file(path: Path) -> str:
    if not path.is_file():
        raise InvalidInput(
            f"world {str(path)!r}: no such map file; give 'maze' (built in) or a text map's "
            "path; an environment of your own is named in a TOML file (docs/your-environment.md)"
        )
    if path.stat().st_size > MAX_MAP_BYTES:
        raise InvalidInput(f"{path}: larger than {MAX_MAP_BYTES} bytes; this is not a map")
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: not a plain text map; use the letters . # S G 0-9") from None


def make_world(config: WorldConfig) -> GridWorld:
    if config.simulator == "ant":
        raise InvalidInput(
            f"world {config.name!r} is the Ant's; this command knows grid worlds only"
        )
    return read_map("\n".join(config.map), config.horizon, config.slip, config.reward)


def make_maze(config: WorldConfig) -> AntMaze:
    return AntMaze(read_map("\n".join(config.map)), config.horizon)


def make_solver(config: SolverConfig) -> Callable[[Problem], Solution]:
    if config.kind == "lp":
        return LPSolver()
    if config.temperature < 0:
        raise InvalidInput(f"temperature must be at least 0, got {config.temperature}")
    return SoftSolver(config.temperature)
