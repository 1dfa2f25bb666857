"""The `ringfence` command: a subcommand parses, calls one function of `commands`, which prints."""

from __future__ import annotations

import os

# Spinning BLAS threads fight workers and simulators; this must be set before numpy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ringfence import commands, commands_reproduce
from ringfence.compilation import keep_compiled
from ringfence.errors import InvalidInput, RingfenceError


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line with the fix."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ringfence: {message}; see '{self.prog} --help'\n")


class Help(argparse.HelpFormatter):
    """Shows a default where there is one to show."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS) or not action.option_strings:
            return text
        return f"{text} (default: %(default)s)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 1 the run failed, 2 wrong use, 130 interrupted."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parser().parse_args(words)
    options.command_line = recorded_command(words)
    keep_compiled()
    try:
        options.function(options)
    except InvalidInput as problem:
        print(f"ringfence: {as_called(str(problem))}", file=sys.stderr)
        return 2
    except RingfenceError as problem:
        print(f"ringfence: {as_called(str(problem))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nringfence: stopped{as_called(way_on(options))}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as problem:
        if problem.filename is None:
            raise
        print(f"ringfence: {unusable(problem)}", file=sys.stderr)
        return 2
    return 0


def as_called(hint: str) -> str:
    """A hint with the command under the name that it was called by: start.py has one of its own."""
    return hint.replace("'ringfence ", f"'{os.environ.get('RINGFENCE_COMMAND', 'ringfence')} ")


def way_on(options: argparse.Namespace) -> str:
    """How to go on with what a stopped command left, if it left something."""
    from ringfence.runs.folder import is_run

    if options.function in (commands.demos_make, commands_reproduce.reproduce):
        return "; the same command goes on from what is done"
    run = options.out if "out" in options else getattr(options, "run", None)
    return f"; go on with 'ringfence resume {run}'" if run and is_run(run) else ""


def unusable(problem: OSError) -> str:
    """A file that the system refuses, in words. It was to be read if it is missing in a folder
    that is there, or must not be read; else to be written."""
    path = Path(os.fsdecode(problem.filename))
    missing = isinstance(problem, FileNotFoundError) and path.parent.is_dir()
    shut = path.exists() and not os.access(path, os.R_OK)
    return f"{path} can't be {'read' if missing or shut else 'written'} ({problem.strerror})"


def recorded_command(words: Sequence[str]) -> str:
    """The command as a run records it: without what doesn't determine the result."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("--out", "--workers"):
            next(rest, None)
        elif not word.startswith(("--out=", "--workers=")):
            kept.append(json.dumps(word) if " " in word else word)
    return " ".join(["ringfence", *kept])


def parser() -> Parser:
    top = Parser(
        prog="ringfence",
        description="Learns the safety constraint that several demonstrators share.",
        epilog="Begin with: ringfence quickstart",
    )
    sub = top.add_subparsers(metavar="command", required=True, parser_class=Parser)
    _quickstart(sub)
    demos = sub.add_parser("demos", help="make, check or show demonstrations")
    _demos(demos.add_subparsers(metavar="make|check|show", required=True, parser_class=Parser))
    _solve(sub)
    _learn(sub)
    _transfer(sub)
    _evaluate(sub)
    _report_and_resume(sub)
    _reproduce_and_bench(sub)
    return top


def _command(
    sub: Any,
    name: str,
    function: Callable[[argparse.Namespace], None],
    about: str,
    example: str,
) -> Parser:
    one: Parser = sub.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example: ringfence {example}",
        formatter_class=Help,
    )
    one.set_defaults(function=function, parser=one)
    return one


def _quickstart(sub: Any) -> None:
    about = "learn the built-in maze's constraint, with a page of pictures"
    one = _command(sub, "quickstart", commands.quickstart, about, "quickstart --seed 1")
    one.add_argument(
        "--world",
        choices=("maze", "ant-maze"),
        default="maze",
        help="on the grid, or a short game with the Ant",
    )
    _seed(one)
    one.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")


def _demos(sub: Any) -> None:
    about = "make expert (or noisy) demonstrations in a world whose truth is known"
    example = 'demos make --world ant --truth "speed <= 0.75" --out demos'
    make = _command(sub, "make", commands.demos_make, about, example)
    _config(make)
    _world(make, more="'ant' (MuJoCo), 'ant-bullet' (PyBullet), ")
    _maker(make)
    _control_maker(make)
    _seed(make)
    make.add_argument("--out", type=Path, required=True, help="folder for the demonstrations")

    about = "check demonstrations, and against a world if one is given"
    check = _command(sub, "check", commands.demos_check, about, "demos check my.toml")
    check.add_argument(
        "demos", type=Path, help="a folder of demonstrations, or a TOML file that names yours"
    )
    _world(check, default=None)

    about = "what is in a folder of demonstrations"
    show = _command(sub, "show", commands.demos_show, about, "demos show demos")
    show.add_argument("demos", type=Path, help="a folder of demonstrations")


def _solve(sub: Any) -> None:
    about = "constrained RL for one task under a given constraint"
    one = _command(
        sub,
        "solve",
        commands.solve,
        about,
        'solve --world ant --constraint "speed <= 0.75" --delta 20 --out runs/ant',
    )
    words = "'ant' (MuJoCo), 'ant-bullet' (PyBullet), 'gym:' with an environment's id or function, "
    _world(one, more=words)
    one.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="NAME[:UNIT]",
        help="gym: a key of the environment's info that the constraint may be about (repeatable)",
    )
    one.add_argument("--task", default="0", help="the task's number or name")
    one.add_argument(
        "--constraint",
        default="truth",
        help="'truth', 'none', a saved constraint's folder, a run, or a linear inequality over "
        "feature names, such as 'row - col <= 4'",
    )
    one.add_argument(
        "--delta", type=float, help="limit on an episode's cost (default: as saved, 0; Ant: 20)"
    )
    one.add_argument(
        "--steps",
        type=int,
        default=1_000_000,
        help="Ant, gym: environment steps, rounded up to whole rollouts (4096 steps)",
    )
    _ppo(one, "Ant, gym")
    one.add_argument(
        "--multiplier",
        choices=("pid", "gradient"),
        default="pid",
        help="Ant, gym: how lam is moved. (Scalars go to curves.csv; also to tensorboard/, if "
        "tensorboardX or tensorboard is installed.)",
    )
    one.add_argument(
        "--start-share",
        type=float,
        default=0.0,
        help="Ant: share of training episodes that begin at states of --demos",
    )
    one.add_argument("--demos", type=Path, help="Ant: demonstrations for --start-share")
    one.add_argument(
        "--policy",
        type=Path,
        help="Ant, gym: a finished run, whose policy (with its critics and its multiplier) to "
        "train on; --ppo cool_down=1 settles it",
    )
    _solver(one, ("soft", "lp", "gradient", "pid"))
    _seed(one)
    one.add_argument("--out", type=Path, required=True, help="folder for policy and picture")


def _learn(sub: Any) -> None:
    about = "the game: demonstrations in, constraint out"
    one = _command(
        sub, "learn", commands.learn, about, "learn --world maze --seed 0 --out runs/maze"
    )
    _config(one)
    _world(one, more="'ant' (MuJoCo), 'ant-bullet' (PyBullet), ")
    one.add_argument("--demos", type=Path, help="demonstrations (maze: default made by the truth)")
    _maker(one)
    one.add_argument(
        "--experts",
        choices=("sampled", "exact"),
        default="sampled",
        help="learn from the paths, or from the exact occupancies of the world's own experts",
    )
    one.add_argument(
        "--method",
        choices=("mt-icl", "icl"),
        help="Algorithm 3 (default on finite worlds) or 2 (default on the Ant)",
    )
    one.add_argument("--task", action="append", default=[], help="only this task (repeatable)")
    one.add_argument(
        "--player",
        choices=("regression", "ftrl", "weighted", "payoff"),
        help="default: regression; ftrl on finite worlds, weighted and payoff on continuous ones",
    )
    one.add_argument(
        "--class",
        dest="constraint_class",
        help="finite worlds: table (default) or linear; else an inequality with ? for what is "
        "learned, such as 'speed <= ?', or linear or mlp (see --on)",
    )
    one.add_argument(
        "--unrestricted",
        action="store_true",
        help="drop the restriction to constraints under which the experts are safe",
    )
    one.add_argument("--iterations", type=int, help="at most this many (default: 5; Ant: 10)")
    one.add_argument(
        "--epsilon", type=float, help="stop at this payoff per step (default: 1e-6; Ant: never)"
    )
    one.add_argument(
        "--buffer", type=float, help="icl: added to the first limit (default: 0; Ant: 20)"
    )
    one.add_argument(
        "--anneal", type=float, help="icl: the buffer loses this each time (default: 0; Ant: 10)"
    )
    _control_game(one)
    _solver(one, ("soft", "lp"))
    one.add_argument(
        "--seed", type=natural, help="all randomness comes from it (default: the file's, or 0)"
    )
    one.add_argument("--workers", type=int, default=1, help="worker processes")
    one.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")


def _transfer(sub: Any) -> None:
    about = "a new task under a learned constraint"
    one = _command(
        sub, "transfer", commands.transfer, about, "transfer runs/maze --goal 3,9 --start 5,0"
    )
    words = "a finished run; with --task FILE.toml also a saved constraint"
    one.add_argument("run", type=Path, help=words)
    one.add_argument("--goal", type=cell, help="maps: row,col")
    one.add_argument("--start", type=cell, help="maps: row,col")
    group = one.add_argument_group("continuous worlds")
    group.add_argument(
        "--task",
        metavar="FILE.toml[:NAME]",
        help="the new task: a file with a [world] of one task, or the name of one of several; "
        "without it, or NAME alone: the run's own task, whose policy is trained on",
    )
    group.add_argument(
        "--clearance",
        type=float,
        default=0.0,
        help="to keep from the constraint, in the units of its right side: 0.05 makes "
        "'speed <= 0.75' 'speed <= 0.7' (default: 0)",
    )
    words = (
        "of the training (default: as in the file; of the run's own: as of an iteration; 0: its "
        "policy is only told of the clearance)"
    )
    group.add_argument("--steps", type=int, help=words)
    group.add_argument("--episodes", type=int, default=100, help="counted after the training")
    group.add_argument("--delta", type=float, help="limit on an episode's cost (default: as saved)")
    one.add_argument(
        "--unknown",
        choices=("avoid", "allow"),
        default="avoid",
        help="keep to cells that demonstrations showed to be allowed, or use any not forbidden",
    )
    _solver(one, ("soft", "lp"))
    _seed(one)
    one.add_argument("--out", type=Path, help="folder for policy, summary and picture")


def _evaluate(sub: Any) -> None:
    about = "a constraint against a known truth, and against demonstrations"
    one = _command(sub, "evaluate", commands.evaluate, about, "evaluate runs/maze --world maze")
    one.add_argument("constraint", help="a run, a saved constraint's folder, or an inequality")
    _world(one)
    one.add_argument("--demos", type=Path, help="demonstrations to evaluate against")
    _solver(one, ("soft", "lp"))
    one.add_argument("--out", type=Path, help="JSON file for the result")


def _report_and_resume(sub: Any) -> None:
    about = "the page of a run again, or one page over several seeds"
    report = _command(
        sub, "report", commands.report, about, "report runs/a runs/b --out seeds.html"
    )
    report.add_argument("runs", type=Path, nargs="+", help="finished runs")
    report.add_argument("--out", type=Path, help="file for the page; needed for several runs")

    about = "go on with a run that was stopped, or play a game on"
    resume = _command(sub, "resume", commands.resume, about, "resume runs/maze")
    resume.add_argument("run", type=Path, help="a run directory")
    resume.add_argument(
        "--iterations", type=int, help="play on, to more than the game had (continuous worlds)"
    )
    resume.add_argument("--workers", type=int, default=1, help="worker processes")


def _reproduce_and_bench(sub: Any) -> None:
    about = "an experiment from nothing to tables and figures"
    one = _command(sub, "reproduce", commands_reproduce.reproduce, about, "reproduce grid")
    one.add_argument(
        "experiment",
        choices=tuple(commands_reproduce.EXPERIMENTS),
        help="; ".join(f"{k}: {e.about}" for k, e in commands_reproduce.EXPERIMENTS.items()),
    )
    _icl_study(one)
    one.add_argument(
        "--seeds",
        type=int,
        help="how many (default: grid 10, maze 5, unseen 100 random mazes, others 3)",
    )
    one.add_argument("--workers", type=int, help="unseen: worker processes (default: 1)")
    one.add_argument(
        "--world", choices=("ant", "ant-bullet"), help="the Ant's simulator (default: ant)"
    )
    one.add_argument(
        "--only",
        type=lambda text: tuple(text.split(",")),
        help="experts: train these alone, such as velocity-20,position-20; the table keeps all",
    )
    one.add_argument(
        "--out", type=Path, help="folder for tables and figures (default: results/...)"
    )

    about = "speed, measured"
    bench = _command(sub, "bench", commands.bench, about, "bench exact --out bench.json")
    bench.add_argument(
        "what",
        choices=("exact", "crl", "maze"),
        help="exact: finite worlds; crl: training on the Ant; maze: the Ant's maze",
    )
    bench.add_argument(
        "--budget", type=float, default=60.0, help="exact: stop when a game takes this, s"
    )
    bench.add_argument("--out", type=Path, help="file for bench.json")


def _icl_study(one: Parser) -> None:
    group = one.add_argument_group("velocity, position and noisy")
    group.add_argument(
        "--player", choices=("regression", "weighted", "payoff"), help="default: regression"
    )
    group.add_argument(
        "--expert-budget", type=float, help="payoff: a belief (default: the experts' true limit)"
    )
    group.add_argument(
        "--class", dest="constraint_class", help="in the experiment's place: linear, mlp, 'x <= ?'"
    )
    group.add_argument("--on", help="linear and mlp: features, such as x,y (default: all)")
    group.add_argument("--full-state", action="store_true", help="observations are features, too")
    group.add_argument(
        "--settled", action="store_true", help="experts whose learning rate falls to 0 at last"
    )
    group.add_argument(
        "--keep-saturated",
        action="store_true",
        help="with the published filter: only demonstrations just below the true limit",
    )
    group.add_argument("--steps", type=int, help="environment steps of an iteration")
    group.add_argument("--iterations", type=int, help="of the game")
    words = "added to the first limit (default: velocity 20, position 100)"
    group.add_argument("--buffer", type=float, help=words)
    group.add_argument(
        "--clearance",
        type=float,
        help="then the selected policies at this clearance from the constraint, told of it and "
        "trained on (see transfer)",
    )
    _ppo(group, "velocity, position, noisy")
    _solves(group)


def _world(one: Parser, default: str | None = "maze", more: str = "") -> None:
    words = (
        f"'maze' (built in), 'ant-maze' (the same for the Ant) or 'ant-maze:FILE', {more}"
        "or the path of a text map"
    )
    one.add_argument("--world", default=default, help=words)
    one.add_argument("--horizon", type=int, help="steps of an episode (default: from the map)")
    one.add_argument("--slip", type=float, default=0.0, help="chance of a random move")
    one.add_argument("--reward", choices=("goal", "exp-distance"), default="goal")


def _maker(one: Parser) -> None:
    one.add_argument(
        "--paths", type=int, help="training paths per task and start (default: 10; Ant: 20)"
    )
    one.add_argument(
        "--heldout", type=int, help="held-out paths per task and start (default: 5; Ant: 10)"
    )
    one.add_argument(
        "--expert-delta", type=float, help="experts' own limit on true cost (default: 0; Ant: 20)"
    )
    one.add_argument(
        "--noise",
        type=float,
        default=0.0,
        help="experts' chance of a random action; Ant: standard deviation of noise on actions",
    )
    one.add_argument(
        "--contaminated", type=float, default=0.0, help="share of paths that ignore the constraint"
    )
    one.add_argument("--deterministic", action="store_true", help="experts that never vary")


def _config(one: Parser) -> None:
    one.add_argument(
        "config", type=Path, nargs="?", help="a TOML file that describes your own environment"
    )


def _control_maker(one: Parser) -> None:
    group = one.add_argument_group("continuous worlds")
    group.add_argument("--truth", help="the constraint that the experts keep, an inequality")
    group.add_argument("--steps", type=int, help="of the expert's training (default: 1000000)")
    group.add_argument(
        "--policy", type=Path, help="a finished run whose policy to take as the expert"
    )
    group.add_argument(
        "--keep-saturated",
        type=float,
        metavar="TOLERANCE",
        help="keep only episodes whose mean true value is at most this far below the limit",
    )


def _control_game(one: Parser) -> None:
    group = one.add_argument_group("continuous worlds")
    group.add_argument("--truth", help="for the report's columns only: an inequality")
    group.add_argument("--on", help="linear and mlp: features, such as x,y (default: all)")
    group.add_argument("--full-state", action="store_true", help="observations are features, too")
    group.add_argument("--steps", type=int, help="environment steps of a solve (default: 200000)")
    group.add_argument(
        "--expert-budget", type=float, help="payoff: the cost that experts may have had (0)"
    )
    group.add_argument("--tolerance", type=float, help="mlp: the most that experts may cost")
    group.add_argument(
        "--initial", choices=("clone", "free"), help="what c_1 answers to (default: clone)"
    )
    group.add_argument(
        "--no-probe", action="store_true", help="don't try first whether a constraint is needed"
    )
    group.add_argument(
        "--start-share", type=float, default=0.0, help="of episodes begin at demonstrated states"
    )
    _ppo(group, "Ant")
    group.add_argument("--clone-steps", type=int, help="0: no cloning (default: 5000)")
    _solves(group)


def _ppo(parser: Any, where: str) -> None:
    parser.add_argument(
        "--ppo",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"{where}: a setting of the solver (see PPOConfig), such as margin=0.3, the share of "
        "the limit that the multiplier keeps free (repeatable)",
    )


def _solves(group: Any) -> None:
    """Where a game's solves begin and end."""
    group.add_argument(
        "--carry",
        choices=("nothing", "critics", "policy"),
        help="what a solve takes over from the iteration before it (default: policy)",
    )
    group.add_argument(
        "--stop-share",
        type=float,
        help="stop a solve that keeps its limit at this share of the experts' reward",
    )
    group.add_argument(
        "--drop-failed",
        action="store_const",
        const=True,
        help="leave out demonstrations, and hide from the constraint player learners' episodes, "
        "whose return is far below the others'",
    )


def _solver(one: Parser, kinds: tuple[str, ...]) -> None:
    one.add_argument("--solver", choices=kinds, default="soft", help="the policy player")
    one.add_argument("--temperature", type=float, default=0.05, help="of the soft solver")


def _seed(one: Parser) -> None:
    one.add_argument("--seed", type=natural, default=0, help="all randomness comes from it")


def natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def cell(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a cell; write row,col such as 3,9")
    return int(parts[0]), int(parts[1])


if __name__ == "__main__":
    sys.exit(main())
