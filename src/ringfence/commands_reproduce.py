"""`ringfence reproduce EXPERIMENT`: each experiment is one function that fills a results folder."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringfence.errors import InvalidInput
from ringfence.options import refuse

Run = Callable[[Namespace, int], None]

#: What trainings on the Ant take, and what its games do.
ANT = ("seeds", "world")
GAME = (
    *(*ANT, "player", "expert_budget", "constraint_class", "on", "full_state"),
    *("settled", "keep_saturated", "steps", "iterations", "carry", "stop_share"),
    *("drop_failed", "buffer", "ppo", "clearance"),
)
UNSEEN = ("seeds", "workers")
OPTIONS = (*GAME, "workers", "only")
#: The parser has none for these, to tell what was given from what was left out.
DEFAULTS = {"world": "ant", "player": "regression", "carry": "policy", "workers": 1, "only": ()}


@dataclass(frozen=True)
class Experiment:
    """What it is, how many seeds by default, what runs it, given the options and seeds, and the
    options that it takes."""

    about: str
    seeds: int
    run: Run
    takes: tuple[str, ...] = ("seeds",)


def reproduce(options: Namespace) -> None:
    experiment = EXPERIMENTS[options.experiment]
    others = tuple(name for name in OPTIONS if name not in experiment.takes)
    refuse(options, others, f"has no effect in 'reproduce {options.experiment}'")
    for name, value in DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    seeds = experiment.seeds if options.seeds is None else options.seeds
    if seeds < 1:
        raise InvalidInput(f"--seeds must be at least 1, got {seeds}")
    experiment.run(options, seeds)


def _grid(options: Namespace, seeds: int) -> None:
    from ringfence.studies import tables

    out = _out(options, "maze-grid")
    tables.grid(out, seeds, options.command_line, print)
    _saved(out)


def _maze(options: Namespace, seeds: int) -> None:
    from ringfence.studies import ant_maze

    out = _out(options, "maze-ant")
    ant_maze.reproduce(out, seeds, options.command_line, print)
    _saved(out)


def _point_maze(options: Namespace, seeds: int) -> None:
    from ringfence.studies import point_maze

    out = _out(options, "maze-point")
    point_maze.reproduce(out, 0, options.command_line, print)
    _saved(out)


def _unseen(options: Namespace, seeds: int) -> None:
    from ringfence.studies import unseen_report

    if options.workers < 1:
        raise InvalidInput(f"--workers must be at least 1, got {options.workers}")
    out = _out(options, "unseen-grid")
    unseen_report.reproduce(out, seeds, options.workers, options.command_line, print)
    _saved(out)


def _trainings(options: Namespace, seeds: int) -> None:
    from ringfence.studies import experts, multipliers, resets
    from ringfence.studies.trainings import SIMULATOR

    out = _out(options, f"{options.experiment}-{SIMULATOR[options.world]}")
    study = experts.Study(options.world, seeds)
    if options.experiment == "experts":
        experts.reproduce(study, out, options.command_line, print, options.only)
    elif options.experiment == "multipliers":
        multipliers.reproduce(study, out, options.command_line, print)
    else:
        resets.reproduce(study, out, options.command_line, print)
    _saved(out)


def _single_task(options: Namespace, seeds: int) -> None:
    from ringfence import control_commands

    control_commands.reproduce(options, seeds)


def _selection(options: Namespace, seeds: int) -> None:
    from ringfence.studies import selection

    out = _out(options, "selection")
    selection.reproduce(out, options.command_line)
    _saved(out)


def _cheetah(options: Namespace, seeds: int) -> None:
    from ringfence.studies import cheetah
    from ringfence.worlds.sim.warnings_once import warn_once

    warn_once()
    out = _out(options, "cheetah")
    cheetah.reproduce(cheetah.Study(seeds), out, options.command_line, print)
    _saved(out)


def _out(options: Namespace, name: str) -> Path:
    return options.out or Path("results") / name


def _saved(out: Path) -> None:
    print(f"saved to {out}")


EXPERIMENTS = {
    "grid": Experiment("the paper's maze, exactly", 10, _grid),
    "unseen": Experiment("tasks never seen, in random mazes too", 100, _unseen, UNSEEN),
    "maze": Experiment("the paper's maze, with the Ant", 5, _maze),
    "point-maze": Experiment("the maze without a planner", 1, _point_maze, ()),
    "experts": Experiment("constrained RL on the Ant", 3, _trainings, (*ANT, "only")),
    "multipliers": Experiment("PID against the classical one", 3, _trainings, ANT),
    "resets": Experiment("episodes that start at an expert's states", 3, _trainings, ANT),
    "velocity": Experiment("single-task ICL, a limit on speed", 3, _single_task, GAME),
    "position": Experiment("single-task ICL, a line", 3, _single_task, GAME),
    "noisy": Experiment("both with noisy experts", 3, _single_task, GAME),
    "cheetah": Experiment("a velocity limit in Gymnasium's HalfCheetah", 3, _cheetah),
    "ablation": Experiment("velocity without each part of the method", 3, _single_task, ANT),
    "baselines": Experiment("Chou et al.'s method on both", 3, _single_task, ANT),
    "selection": Experiment("which iterate to take, from all games in results/", 3, _selection, ()),
}
