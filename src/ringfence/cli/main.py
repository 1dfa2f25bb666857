"""The `ringfence` command: parses, calls one function of `commands`, which prints.

An option that people use often is one entry of the configuration (`options.OPTIONS`); `--set
table.key=value` says every other.
"""

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

from ringfence.cli import commands
from ringfence.cli.failures import in_one_line, printable
from ringfence.cli.options import OPTIONS
from ringfence.compilation import keep_compiled
from ringfence.errors import EngineLost, InvalidInput, RingfenceError, SolverFailed


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line with the fix."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ringfence: {message}; see '{self.prog} --help'\n")


class Help(argparse.RawDescriptionHelpFormatter):
    """Shows a default where there is one to show."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if not action.option_strings or not has_default(action):
            return text
        return f"{text} (default: %(default)s)"


def has_default(action: argparse.Action) -> bool:
    """Is there one to show? 0 is one."""
    return not (
        action.default is None
        or action.default is False
        or action.default in ([], argparse.SUPPRESS)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 1 the run failed, 2 wrong use, 130 interrupted."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options: argparse.Namespace | None = None
    try:
        options = parsed(words)
        call(options)
    except InvalidInput as problem:
        tell(as_called(str(problem)))
        return 2
    except EngineLost as problem:
        way = as_called(way_on(options)) if options is not None else ""
        tell(f"{problem}{way} (here; with --on: there)")
        return 1
    except RingfenceError as problem:
        tell(as_called(str(problem)))
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)  # after the terminal's ^C
        tell(f"stopped{as_called(way_on(options)) if options is not None else ''}")
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as problem:
        if isinstance(problem, OSError) and problem.filename is not None:
            tell(unusable(problem))
            return 2
        tell(in_one_line(problem, recorded_command(words)))
        return 1
    return 0


def parsed(words: Sequence[str]) -> argparse.Namespace:
    options, unknown = parser(words).parse_known_args(words)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.command_line = recorded_command(words)
    return options


def call(options: argparse.Namespace) -> None:
    keep_compiled()
    try:
        options.function(options)
    except SystemExit as stop:  # ours are all behind us: see `parsed`
        raise SolverFailed(
            f"code that was called ended the program (sys.exit({stop.code!r:.60})); mend it"
        ) from stop


def tell(problem: str) -> None:
    print(f"ringfence: {printable(problem)}", file=sys.stderr)


def as_called(hint: str) -> str:
    """A hint with the command under the name that it was called by: start.py has one of its own."""
    return hint.replace("'ringfence ", f"'{os.environ.get('RINGFENCE_COMMAND', 'ringfence')} ")


def way_on(options: argparse.Namespace) -> str:
    """How to go on with what a stopped command left, if it left something."""
    from ringfence.runs.folder import is_run

    if options.function in (commands.demos_make, commands.reproduce):
        return "; the same command goes on from what is done"
    run = options.out if "out" in options else getattr(options, "run", None)
    return f"; go on with 'ringfence resume {run}'" if run and is_run(Path(run)) else ""


def unusable(problem: OSError) -> str:
    """A file that the system refuses, in words. It was to be read if it is missing in a folder
    that is there, or must not be read; else to be written."""
    path = Path(os.fsdecode(problem.filename))
    missing = isinstance(problem, FileNotFoundError) and os.path.isdir(path.parent)
    shut = os.path.exists(path) and not os.access(path, os.R_OK)
    return f"{path} can't be {'read' if missing or shut else 'written'} ({problem.strerror})"


def recorded_command(words: Sequence[str]) -> str:
    """The command as a run records it: without what doesn't determine the result."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("--out", "--workers", "--data", "--on"):
            next(rest, None)
        elif not word.startswith(("--out=", "--workers=", "--data=", "--on=")):
            kept.append(json.dumps(word) if " " in word else word)
    return " ".join(["ringfence", *kept])


# The parser --------------------------------------------------------------------------------------

WORLD = (
    "'maze' (built in), a text map's path, 'ant' (MuJoCo), 'ant-bullet' (PyBullet), 'ant-maze' or "
    "'ant-maze:FILE', 'gym:ID' or 'gym:module:function', 'module:function' of a world of your own"
)


def parser(words: Sequence[str] = ()) -> Parser:
    """words: of the command line, so that help can show the chosen world's own defaults."""
    top = Parser(
        prog="ringfence",
        description="Learns the safety constraint that several demonstrators share.",
        epilog="Begin with: ringfence quickstart",
    )
    sub = top.add_subparsers(metavar="command", required=True, parser_class=Parser)
    _quickstart(sub)
    demos = sub.add_parser("demos", help="make, check or show demonstrations")
    _demos(demos.add_subparsers(metavar="make|check|show", required=True, parser_class=Parser))
    _learn(sub, words)
    _solve(sub, words)
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
    more: str = "",
) -> Parser:
    one: Parser = sub.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example: ringfence {example}{more}",
        formatter_class=Help,
    )
    one.set_defaults(function=function, parser=one)
    return one


def _entries(one: Any, names: Sequence[str]) -> None:
    """Options that stand for entries of the configuration, and --set for all others."""
    for name in names:
        entry, kind, text = OPTIONS[name]
        choices = kind if isinstance(kind, tuple) else None
        convert = str if choices or kind == "list" else kind
        one.add_argument(
            f"--{name}",
            dest=entry,
            type=convert,
            choices=choices,
            metavar=None if choices else name.partition("-")[2].upper() or name.upper(),
            help=f"{text} [{entry}]",
        )
    _set(one)


def _set(one: Any) -> None:
    one.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="TABLE.KEY=VALUE",
        help="any entry of the configuration (repeatable; docs/configuration.md lists them)",
    )


def _quickstart(sub: Any) -> None:
    about = "learn the built-in maze's constraint, with a page of pictures"
    one = _command(sub, "quickstart", commands.quickstart, about, "quickstart --seed 1")
    one.set_defaults(parse=lambda words: parser().parse_args(words))
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
    _world(make)
    _maker(make)
    make.add_argument(
        "--policy", type=Path, help="continuous worlds: a finished run whose policy is the expert"
    )
    _entries(make, ("truth", "steps", "horizon", "slip"))
    _seed(make)
    _workers(make)
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


def _learn(sub: Any, words: Sequence[str]) -> None:
    about = "the game: demonstrations in, constraint out"
    example = "learn --world maze --seed 0 --out runs/maze"
    more = defaults_of(words, "learn")
    one = _command(sub, "learn", commands.learn, about, example, more)
    _config(one)
    _world(one)
    one.add_argument("--demos", type=Path, help="demonstrations (maps: default made by the truth)")
    one.add_argument("--paths", type=int, help="maps: training paths to make per task and start")
    one.add_argument("--heldout", type=int, help="maps: held-out paths to make per task and start")
    one.add_argument("--task", action="append", default=[], help="only this task (repeatable)")
    names = ("class", "over", "method", "player", "expert-budget", "iterations", "solver", "steps")
    _entries(one, (*names, "truth", "horizon", "slip"))
    one.add_argument(
        "--seed", type=natural, help="all randomness comes from it (default: the file's, or 0)"
    )
    _workers(one)
    one.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")


def _solve(sub: Any, words: Sequence[str]) -> None:
    about = "constrained RL for one task under a given constraint"
    example = 'solve --world ant --constraint "speed <= 0.75" --delta 20 --out runs/ant'
    one = _command(sub, "solve", commands.solve, about, example, defaults_of(words, "solve"))
    _world(one)
    one.add_argument("--task", default="0", help="the task's number or name")
    one.add_argument(
        "--constraint",
        default="truth",
        help="'truth', 'none', a saved constraint's folder, a run, or a linear inequality over "
        "feature names, such as 'row - col <= 4'",
    )
    one.add_argument(
        "--delta",
        type=float,
        help="limit on an episode's cost; of several limits, on each (default: as saved; maps 0, "
        "else 20)",
    )
    one.add_argument("--episodes", type=int, help="counted after a training (default: 100)")
    one.add_argument("--demos", type=Path, help="Ant: training episodes begin at their states "
                     "(a share of them: --set solver.start_share=0.3)")  # fmt: skip
    one.add_argument(
        "--policy",
        type=Path,
        help="a finished run, whose policy (with its critics and its multipliers) to train on",
    )
    _entries(one, ("solver", "steps", "horizon", "slip"))
    _seed(one)
    one.add_argument("--out", type=Path, required=True, help="folder for policy and picture")


def _transfer(sub: Any) -> None:
    about = "a new task under a learned constraint"
    example = "transfer runs/maze --goal 3,9 --start 5,0"
    one = _command(sub, "transfer", commands.transfer, about, example)
    words = "a finished run; with --task FILE.toml also a saved constraint"
    one.add_argument("run", type=Path, help=words)
    one.add_argument("--goal", type=cell, help="maps: row,col")
    one.add_argument("--start", type=cell, help="maps: row,col")
    one.add_argument(
        "--task",
        metavar="FILE.toml[:NAME]",
        help="a file with a [world] of one task, or the name of one of several; without it, or "
        "NAME alone: the run's own task, whose policy is trained on",
    )
    one.add_argument(
        "--clearance",
        type=float,
        default=0.0,
        help="to keep from the constraint, in the units of its right side: 0.05 makes "
        "'speed <= 0.75' 'speed <= 0.7'",
    )
    words = (
        "of the training (default: as in the file; of the run's own: as of an iteration; 0: its "
        "policy is only told of the clearance)"
    )
    one.add_argument("--steps", type=int, help=words)
    one.add_argument("--episodes", type=int, help="counted after a training (default: 100)")
    one.add_argument("--delta", type=float, help="limit on an episode's cost (default: as saved)")
    one.add_argument(
        "--unknown",
        choices=("avoid", "allow"),
        help="keep to cells that demonstrations showed to be allowed, or use any not forbidden "
        "(default: avoid, where a world has cells of its own)",
    )
    _set(one)
    _seed(one)
    _trust(one)
    one.add_argument("--out", type=Path, help="folder for policy, summary and picture")


def _evaluate(sub: Any) -> None:
    about = "a constraint against a known truth, and against demonstrations"
    one = _command(sub, "evaluate", commands.evaluate, about, "evaluate runs/maze --world maze")
    one.add_argument("constraint", help="a run, a saved constraint's folder, or an inequality")
    _world(one, default=None)
    one.add_argument(
        "--demos", type=Path, help="to compare with: a folder, or logs as they come, with --world"
    )
    _entries(one, ("truth", "solver", "horizon", "slip"))
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
    resume.add_argument("--iterations", type=int, help="play on, to more than the game had")
    _workers(resume)
    _trust(resume)

    about = "how many more demonstrations are needed, and of which task"
    plan = _command(sub, "plan", commands.plan, about, "plan runs/maze --spread 0.02")
    plan.add_argument("run", type=Path, help="a finished run")
    words = "of what is learned, relative: half-widths of intervals, or cells that change"
    plan.add_argument("--spread", type=float, default=0.05, help=words)
    plan.add_argument("--out", type=Path, help="JSON file for the result")


def _reproduce_and_bench(sub: Any) -> None:
    about = "an experiment from nothing to tables and figures"
    one = _command(sub, "reproduce", commands.reproduce, about, "reproduce grid")
    one.add_argument(
        "experiment", nargs="?", help="its name, or a TOML file of your own (default: list them)"
    )
    one.add_argument("--seeds", type=int, help="how many (default: as the experiment says)")
    words = "only this seed of them (repeatable)"
    one.add_argument("--seed", type=int, action="append", default=[], help=words)
    one.add_argument("--variant", action="append", default=[], help="only this one (repeatable)")
    one.add_argument("--only", action="append", default=[], help="only this part (repeatable)")
    one.add_argument("--data", type=Path, help="flights: a table of positions (docs/flights.md)")
    _set(one)
    _workers(one)
    one.add_argument("--out", type=Path, help="folder for the results (default: results/NAME)")

    about = "speed, measured"
    bench = _command(sub, "bench", commands.bench, about, "bench exact --out bench.json")
    bench.add_argument(
        "what",
        choices=("exact", "crl", "maze"),
        help="exact: finite worlds; crl: training on the Ant; maze: the Ant's maze",
    )
    words = f"exact: stop when a game takes this, s (default: {commands.BUDGET:g})"
    bench.add_argument("--budget", type=float, help=words)
    bench.add_argument("--out", type=Path, help="file for bench.json")


def _world(one: Parser, default: str | None = "maze") -> None:
    one.add_argument("--world", default=default, help=WORLD)
    one.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="NAME[:UNIT][=COLUMN]",
        help="gym: what the constraint may be about: a key of the environment's info, or a column "
        "of its observation (repeatable)",
    )


def _maker(one: Parser) -> None:
    one.add_argument("--paths", type=int, help="training paths per task (maps: and start)")
    one.add_argument("--heldout", type=int, help="held-out paths per task (maps: and start)")
    one.add_argument("--expert-delta", type=float, help="experts' own limit on true cost")
    one.add_argument(
        "--noise",
        type=float,
        help="maps: chance of a random action; else: standard deviation of noise on actions",
    )
    one.add_argument("--contaminated", type=float, help="maps: share of paths that ignore the "
                     "constraint")  # fmt: skip
    one.add_argument("--deterministic", action="store_true", help="maps: experts that never vary")
    one.add_argument(
        "--keep-saturated",
        type=float,
        metavar="TOLERANCE",
        help="continuous worlds: keep only episodes whose mean true value is at most this far "
        "below the limit",
    )


def _config(one: Parser) -> None:
    one.add_argument(
        "config", type=Path, nargs="?", help="a TOML file that describes your own environment"
    )


def _workers(one: Parser) -> None:
    one.add_argument("--workers", type=int, default=1, help="worker processes")
    one.add_argument(
        "--on",
        metavar="ray|ADDRESS",
        help="solve on a Ray cluster: 'ray' (the one that is there, or a local one), "
        "'ray://host:port' or its address (docs/many-machines.md)",
    )


def _trust(one: Parser) -> None:
    words = "call the code that someone else's run names, without asking"
    one.add_argument("--trust", action="store_true", help=words)


def _seed(one: Parser) -> None:
    one.add_argument("--seed", type=natural, default=0, help="all randomness comes from it")


def defaults_of(words: Sequence[str], command: str) -> str:
    """What the chosen world's own defaults are, for --help; "" where help isn't asked for."""
    if not ({"-h", "--help"} & set(words)) or command not in words:
        return ""
    return commands.defaults_text(words, command)


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
