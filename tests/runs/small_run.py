"""A small run: two tasks on a 4 x 4 map, over in a tenth of a second."""

from __future__ import annotations

from pathlib import Path

from ringfence.demos.dataset import content_hash
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.objects import Demonstrations
from ringfence.runs.config import DemosConfig, GameConfig, RunConfig, SolverConfig, WorldConfig
from ringfence.runs.worlds import make_world

MAP = ("S.#0", "..#.", "..#.", "...1")
RESULT = ("constraint/constraint.json", "constraint/weights.safetensors", "summary.json")


def small(map_lines: tuple[str, ...] = MAP, **game: object) -> tuple[RunConfig, Demonstrations]:
    world = WorldConfig("small", map_lines, 14)
    truth = WorldConfig("small", MAP, 14)
    demos = make_demonstrations(make_world(truth), ExpertConfig(paths=3, heldout=2))
    config = RunConfig(
        command="ringfence learn",
        seed=0,
        world=world,
        demos=DemosConfig(content_hash(demos)),
        game=GameConfig(**game),  # type: ignore[arg-type]
        solver=SolverConfig(),
    )
    return config, demos


def quiet(event: dict) -> None:
    """Events of a run that nobody watches."""


def result(run: Path) -> dict[str, bytes]:
    """The bytes that must not depend on how a run came to its end."""
    names = [*RESULT, "evidence.json"]
    names += sorted(str(p.relative_to(run)) for p in run.glob("constraints/*/*"))
    return {name: (run / name).read_bytes() for name in names}
