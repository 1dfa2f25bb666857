"""What the subcommands do in the Ant's maze, `--world ant-maze` or `ant-maze:FILE`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from ringfence.demos import checks as demo_checks
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput
from ringfence.runs import maze as mazes
from ringfence.runs import maze_learn
from ringfence.runs.config import (
    DemosConfig,
    GameConfig,
    RunConfig,
    SolverConfig,
    WorldConfig,
)
from ringfence.runs.folder import refuse_existing
from ringfence.runs.worlds import make_maze


def make_demos(options: Namespace, world: WorldConfig) -> demos.Demonstrations:
    if options.noise or options.contaminated or options.deterministic or options.expert_delta:
        raise InvalidInput(
            "the Ant's experts are the planner on the true map: they take --paths, --heldout and "
            "--seed, but no --noise, --contaminated, --deterministic or --expert-delta"
        )
    return mazes.make_demonstrations(make_maze(world), expert_config(options))


def expert_config(options: Namespace) -> mazes.MazeExperts:
    default = mazes.MazeExperts()
    return mazes.MazeExperts(
        default.paths if options.paths is None else options.paths,
        default.heldout if options.heldout is None else options.heldout,
        options.seed,
    )


def check_demos(given: demos.Demonstrations, world: WorldConfig) -> list[demo_checks.Finding]:
    return [*demo_checks.check(given), *mazes.check(given, make_maze(world))]


def create(options: Namespace, world: WorldConfig, out: Path) -> None:
    """A new run from the options of `ringfence learn`."""
    refuse_existing(out)
    if options.experts == "exact":
        raise InvalidInput("the Ant's experts have no exact occupancies; leave --experts out")
    fixed = {"player": "regression", "constraint_class": "mlp", "method": "mt-icl"}
    for name, only in fixed.items():
        if getattr(options, name) not in (None, only):
            option = name.removeprefix("constraint_")
            raise InvalidInput(f"in the Ant's maze --{option} is {only}; leave it out")
    given = make_demos(options, world) if options.demos is None else demos.load(options.demos)
    for finding in mazes.check(given, make_maze(world)):
        print(finding)
    create_from(out, given, world, options)


def create_from(
    out: Path, given: demos.Demonstrations, world: WorldConfig, options: Namespace
) -> None:
    names = [task.name for task in make_maze(world).tasks]
    game = GameConfig(
        tasks=tuple(_task_name(names, word) for word in options.task),
        constraint_class="mlp",
        restricted=not options.unrestricted,
        iterations=5 if options.iterations is None else options.iterations,
        epsilon=maze_learn.PLAY_ON,
    )
    network = maze_learn.PAPER if options.unrestricted else maze_learn.RESTRICTED
    config = RunConfig(
        command=options.command_line,
        seed=options.seed,
        world=world,
        demos=DemosConfig(demos.content_hash(given)),
        game=game,
        solver=SolverConfig("planner", episodes=expert_config(options).paths),
        network=network,
    )
    maze_learn.create(out, config, given)


def _task_name(names: list[str], word: str) -> str:
    """A task's name from its number in the world, or as it is."""
    return names[int(word)] if word.isdecimal() and int(word) < len(names) else word
