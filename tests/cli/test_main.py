"""The command: its parser, exit codes, interrupts, help, and bad input by category."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import own_cart
import ringfence
from ringfence.cli.main import main, natural, parser, recorded_command
from ringfence.errors import EngineLost

Ask = Callable[..., tuple[int, str, str]]
Damage = Callable[[Path], object]


def bad_map(text: str) -> Damage:
    return lambda here: (here / "bad.txt").write_text(text)


TESTS, SOURCES = (str(Path(f).parents[1]) for f in (__file__, ringfence.__file__))


def damaged(path: str, old: str, new: str) -> Damage:
    def damage(here: Path) -> None:
        file = here / path
        text = file.read_text()
        assert old in text
        if path.endswith(".toml"):  # whoever edits it on purpose takes the seal away
            text = text.partition("\n")[2]
        file.write_text(text.replace(old, new))

    return damage


def nothing(here: Path) -> None:
    """The specimen is good; the words of the command are not."""


def an_archive(here: Path) -> None:
    (here / "logs.npz").write_bytes(b"")


MAP = ["learn", "--world", "bad.txt", "--out", "new"]
LEARN = ["learn", "--world", "small.txt", "--paths", "2", "--heldout", "1", "--out", "new"]
DEMOS = ["learn", "--world", "small.txt", "--demos", "demos", "--out", "new"]
MAKE = ["demos", "make", "--world", "small.txt", "--out", "new"]
RESUME = ["resume", "run"]
EVALUATE = ["evaluate", "run", "--world", "small.txt"]
TRANSFER = ["transfer", "run", "--out", "new"]
REPRODUCE = ["reproduce", "grid", "--out", "new"]
INDEX = "demos/demonstrations.json"
SAVED = "run/constraint/constraint.json"

#: By category: what is done to the specimens, the command, words of its message.
BAD: dict[str, list[tuple[Damage, list[str], str]]] = {
    "map": [
        (bad_map("S.\n...0"), MAP, r"bad.txt: map, line 2: .* one length"),
        (bad_map("..0"), MAP, r"no start; mark .* 'S'"),
        (bad_map("S.."), MAP, r"no goal; mark"),
        (bad_map("S@0"), MAP, r"line 1: unknown letter '@'; use"),
        (bad_map("S#0"), MAP, r"can't be reached .* open a way"),
        (bad_map("S00"), MAP, r"goal '0' stands in 2 cells; give"),
        (bad_map(""), MAP, r"line 1: it is empty"),
        (nothing, MAP, r"'bad.txt': no such map file; give 'maze'"),
        (lambda h: (h / "bad.txt").write_bytes(b"\xff"), MAP, r"not a plain text map"),
        (bad_map("S..0"), MAP, r"no forbidden cell is known here.*learn --demos"),
        (nothing, ["learn", "--world", "ant-maze:none.txt"], r"no such map file"),
        (
            bad_map("S.#0\n..##\n"),
            ["learn", "--world", "ant-maze:bad.txt", "--out", "new"],
            r"can't be reached",
        ),
    ],
    "demos": [
        (lambda h: shutil.rmtree(h / "demos"), DEMOS, r"demos"),
        (lambda h: (h / INDEX).unlink(), DEMOS, r"demonstrations.json"),
        (
            nothing,
            ["learn", "--demos", "demos", "--out", "new"],
            r"goal \(0,3\)': the world has no such task",
        ),
        (damaged(INDEX, '"schema": 2', '"schema": 9'), DEMOS, r"its SHA-256 is not that"),
        (nothing, [*MAKE, "--paths", "0"], r"paths must be"),
        (nothing, [*MAKE, "--noise", "2"], r"noise must be"),
        (nothing, ["demos", "make", "--out", "demos"], r"exists already; choose"),
        (nothing, ["demos", "check", "run"], r"demonstrations.json"),
        (nothing, [*DEMOS, "--paths", "3"], r"--paths is how demonstrations are made; demos has"),
        (nothing, [*MAKE, "--keep-saturated", "0.1"], r"keep_saturated: unknown; there are"),
        (an_archive, ["demos", "check", "logs.npz"], r"logs.npz: can't be read as .npz"),
        (an_archive, ["demos", "show", "logs.npz"], r"can't be read as .npz"),
        (nothing, ["learn", "--world", "ant"], r"no demonstrations: give --demos"),
    ],
    "config": [
        (nothing, [*LEARN, "--slip", "1.5"], r"slip must be in"),
        (nothing, [*LEARN, "--horizon", "5"], r"horizon of at least"),
        (nothing, [*LEARN, "--iterations", "0"], r"\[game\] iterations: 0 is not at least 1"),
        (nothing, [*LEARN, "--task", "x"], r"task 'x' is not in the world.*goal \(0,3\)"),
        (nothing, [*LEARN, "--method", "icl"], r"icl learns from one task, there are 2"),
        (nothing, [*LEARN, "--workers", "0"], r"--workers must be at least 1, got 0"),
        (nothing, [*LEARN, "--set", "solver.temperature=-1"], r"temperature.*-1"),
        (
            nothing,
            [*LEARN, "--set", "solver.heat=1"],
            r"\[solver\] heat: unknown; there are .*temp",
        ),
        (
            nothing,
            [*LEARN, "--set", "temperature=1"],
            r"--set temperature=1: write table.key=value",
        ),
        (
            nothing,
            [*LEARN, "--set", "heat.a=1"],
            r"--set heat.a=1: .*tables are world, demos, game",
        ),
        (nothing, [*LEARN, "--set", "game.iterations=many"], r"iterations: \"many\" is not a.*int"),
        (nothing, [*LEARN, "--solver", "magic"], r"\[solver\] kind: 'magic' is not one of .*soft"),
        (
            nothing,
            [*LEARN, "--player", "oracle"],
            r"\[player\] kind: 'oracle' is not one of .*ftrl",
        ),
        (nothing, [*LEARN, "--class", "mpl"], r"'mpl'"),
        (nothing, [*LEARN, "--truth", "row <= 1"], r"truth: unknown"),
        (nothing, [*LEARN, "--feature", "row"], r"--feature is for 'gym:' worlds"),
    ],
    "constraint": [
        (
            damaged(SAVED, '"weights_sha256": "', '"weights_sha256": "0'),
            EVALUATE,
            r"SHA-256 differs",
        ),
        (damaged(SAVED, '"schema": 1', '"schema": 2'), EVALUATE, r"schema 2, this version reads 1"),
        (
            lambda h: (h / "run/constraint/weights.safetensors").write_bytes(b"x"),
            EVALUATE,
            r"SHA-256",
        ),
        (nothing, ["evaluate", "nowhere", "--world", "maze"], r"nowhere.*no such file"),
        (nothing, ["evaluate", "run", "--world", "maze"], r"4 x 4 cells, this world has 10 x 10"),
        (nothing, ["evaluate", "speed <= 1", "--world", "maze"], r"no feature 'speed'; features"),
        (
            nothing,
            ["evaluate", "row <= col >= 2", "--world", "maze"],
            r"one linear inequality",
        ),
        (nothing, ["evaluate", "row <= 1"], r"an inequality needs a world"),
        (nothing, ["evaluate", "run"], r"nothing to compare it with: give a world, or demonstr"),
        (nothing, ["evaluate", "run", "--truth", "row <= 1"], r"of a world: give --world, too"),
        (nothing, ["solve", "--world", "ant", "--out", "new"], r"'truth': ant has none of its own"),
    ],
    "run": [
        (nothing, ["resume", "nowhere"], r"not a run directory.*ringfence learn"),
        (lambda h: (h / "run/config.toml").write_text("["), RESUME, r"not valid TOML"),
        (damaged("run/config.toml", "schema = 2", "schema = 7"), RESUME, r"schema 7, written by"),
        (
            lambda h: (h / "run/config.toml").write_text(
                (h / "run/config.toml").read_text().replace("seed = 0", "seed = 1")
            ),
            RESUME,
            r"config.toml: it was altered after it was written",
        ),
        (
            damaged("run/config.toml", "schema = 2", "schema = 1"),
            RESUME,
            r"schema 1, written by ringfence .*reads schema 2: use the version.*still loads",
        ),
        (damaged("run/config.toml", "epsilon", "epsilom"), RESUME, r"\[game\] epsilom: unknown"),
        (lambda h: shutil.rmtree(h / "run/demos"), RESUME, r"demos"),
        (nothing, [*RESUME, "--iterations", "1"], r"iterations"),
        (
            lambda h: (h / "run/summary.json").unlink(),
            ["learn", "--out", "run"],
            r"exists already; go on with",
        ),
        (nothing, ["learn", "--out", "run"], r"is finished; choose another --out"),
        (
            lambda h: (h / "run/summary.json").unlink(),
            [*TRANSFER, "--task", "goal (0,3)"],
            r"not finished.*resume",
        ),
        (
            lambda h: (h / "run/summary.json").unlink(),
            ["report", "run"],
            r"run: unfinished; go on with 'ringfence resume run'",
        ),
        (nothing, TRANSFER, r"several tasks \(goal \(0,3\), goal \(3,3\)\); choose one with"),
        (nothing, [*TRANSFER, "--task", "x"], r"there is no task 'x'; it has goal"),
    ],
    "out": [
        (nothing, ["learn", "--out", "small.txt"], r"small.txt: it exists and is not a run"),
        (nothing, ["learn", "--out", "demos"], r"not a run; choose another --out"),
        (
            nothing,
            ["learn", "--world", "small.txt", "--paths", "2", "--out", "small.txt/run"],
            r"ringfence: small.txt/run can't be written \(Not a directory\)",
        ),
        (
            nothing,
            ["report", "run", "--out", "nowhere/page.html"],
            r"ringfence: nowhere/page.html can't be written \(No such file or directory\)",
        ),
        (
            nothing,
            ["report", "run", "--out", "demos"],
            r"ringfence: demos can't be written \(Is a directory\)",
        ),
    ],
    "line": [
        (nothing, [], r"command.*--help"),
        (nothing, ["lern"], r"invalid choice: 'lern'"),
        (nothing, ["learn", "--sede", "1"], r"--sede.*ringfence learn --help"),
        (nothing, ["learn", "--seed", "-1"], r"-1"),
        (nothing, ["learn", "--seed", "abc"], r"'abc' is not a whole number"),
        (nothing, ["learn", "--method", "best"], r"'best' \(choose from .*mt-icl"),
        (
            nothing,
            [*TRANSFER, "--goal", "3", "--start", "0,0"],
            r"'3' is not a cell; write row,col",
        ),
        (nothing, [*TRANSFER, "--goal", "3,3"], r"needs both --goal and --start"),
        (
            nothing,
            [*TRANSFER, "--goal", "3,3", "--start", "0,0", "--task", "x"],
            r"--goal and --start, or --task, not both",
        ),
        (
            nothing,
            [*TRANSFER, "--goal", "9,9", "--start", "0,0"],
            r"outside the map of 4 x 4",
        ),
        (
            nothing,
            [*TRANSFER, "--task", "goal (0,3)", "--steps", "0"],
            r"--steps 0 needs a policy",
        ),
        (nothing, ["solve", "--task", "99", "--out", "new"], r"use 0-9 or one of"),
        (nothing, ["report", "run", "run"], r"needs --out"),
        (nothing, [*REPRODUCE, "--seeds", "0"], r"--seeds must be at least 1, got 0"),
        (nothing, [*REPRODUCE, "--variant", "x"], r"grid has no variant 'x'; it has"),
        (nothing, [*REPRODUCE, "--only", "x"], r"grid has no part 'x'"),
        (nothing, [*REPRODUCE, "--workers", "0"], r"--workers must be at least 1, got 0"),
        (nothing, ["reproduce", "moon"], r"no experiment 'moon'; there are: .*grid"),
    ],
}
CASES = [(f"{name} {n}", *case) for name, cases in BAD.items() for n, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("damage", "words", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_bad_input_gets_one_message_and_leaves_nothing(
    damage: Damage,
    words: list[str],
    message: str,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Ask,
) -> None:
    place = tmp_path / "place"
    shutil.copytree(here, place)
    monkeypatch.chdir(place)
    damage(place)

    def files() -> list[str]:
        return sorted(str(p) for p in place.rglob("*") if p.name != ".lock")

    before = files()
    code, _, err = ask(*words)
    assert code == 2, err
    assert re.search(message, err, re.DOTALL), err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    assert files() == before


def test_a_failed_run_exits_with_1(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["solve", "--world", here / "small.txt", "--constraint", "row >= 1"]
    code, _, err = ask(*words, "--out", tmp_path / "new")
    assert code == 1
    assert "least achievable" in err
    assert not (tmp_path / "new" / "summary.json").exists()


def test_a_mistake_in_each_of_two_tables_gets_a_line_each(here: Path, ask: Ask) -> None:
    words = ["learn", "--world", here / "small.txt", "--set", "game.turns=1"]
    code, _, err = ask(*words, "--set", "opening.kind=best")
    assert code == 2
    first, second = err.splitlines()
    assert "[game] turns: unknown" in first
    assert "[opening] kind: \"best\" is not 'none' or 'clone'" in second


def test_a_seed_is_a_whole_number() -> None:
    assert natural("12") == 12


# Help --------------------------------------------------------------------------------------------


def test_help_of_every_command_has_an_example(ask: Ask) -> None:
    for name in ("quickstart", "solve", "learn", "transfer", "evaluate", "report", "resume",
                 "reproduce", "bench", "demos make", "demos check", "demos show"):  # fmt: skip
        code, out, _ = ask(*name.split(), "--help")
        assert code == 0
        assert f"example: ringfence {name}" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ("learn", ("defaults on maze:", '[game] method = "mt-icl", constraint = "table"')),
        ("learn --world ant-maze", ('[solver] kind = "planner"', 'constraint = "mlp"')),
        ("learn --world gym:Pendulum-v1", ('kind = "ppo"', '[opening] kind = "clone"')),
        ("solve --world ant", ("defaults on ant:", "[solver] ", 'kind = "ppo"')),
        ("learn --world nowhere.txt", ("defaults of nowhere.txt: not known", "no such map file")),
    ],
)
def test_help_shows_the_defaults_of_the_chosen_world(
    words: str, there: tuple[str, ...], ask: Ask
) -> None:
    code, out, _ = ask(*words.split(), "--help")
    assert code == 0
    for text in there:
        assert text in out


def test_help_shows_what_configure_would_fill_in(here: Path, ask: Ask) -> None:
    """No default stands in the parser, so that there is only one truth about them."""
    _, out, _ = ask("learn", "--help")
    config = (here / "run/config.toml").read_text()
    for entry in ('method = "mt-icl"', "iterations = 5", "extra = 5"):
        assert entry in out
        assert entry in config


def test_a_command_line_without_help_asks_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> NoReturn:
        raise AssertionError("a world was made")

    monkeypatch.setattr("ringfence.cli.commands.defaults_text", asked)
    assert parser(["learn"]).parse_args(["learn"]).world == "maze"


def test_recorded_command_leaves_out_what_does_not_matter() -> None:
    words = ["learn", "--out", "x", "--seed", "1", "--workers=2", "--task", "goal (0,1)"]
    words += ["--on", "ray://host:1"]
    assert recorded_command(words) == 'ringfence learn --seed 1 --task "goal (0,1)"'


# On other machines -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [LEARN, RESUME, REPRODUCE])
def test_an_engine_without_its_extra_says_what_to_install(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, command: list[str]
) -> None:
    shutil.copytree(here, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("ringfence.runs.ray_engine.find_spec", lambda name: None)
    code, _, err = ask(*command, "--on", "ray")
    assert code == 2
    assert err == "ringfence: --on ray needs Ray: pip install 'ringfence[ray]'\n"
    assert not Path("new").exists()


def test_features_of_a_class_are_no_engine(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    shutil.copytree(here, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    code, _, err = ask(*LEARN, "--on", "row,col")
    assert (code, Path("new").exists()) == (2, False)
    assert "--on row,col: an engine is 'ray'" in err


def test_a_cluster_that_is_gone_leaves_the_line_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    def lost(*_: object, **__: object) -> NoReturn:
        raise EngineLost("the cluster (ray) is gone")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ringfence.runs.driver.drive", lost)
    code, _, err = ask("learn", "--paths", "2", "--out", "run")
    assert code == 1
    way = "go on with 'ringfence resume run' (here; with --on: there)"
    assert err.endswith(f"ringfence: the cluster (ray) is gone; {way}\n")


# Ctrl-C ------------------------------------------------------------------------------------------

#: `ringfence` that gets Ctrl-C at the run's first event: no matter how fast it is or how busy the
#: machine, it comes while the run is going on; and no matter whether the tests were started in the
#: background, where a shell has SIGINT ignored.
INTERRUPTED = """
import os, signal, sys
from ringfence.cli.main import main
from ringfence.runs import driver

signal.signal(signal.SIGINT, signal.default_int_handler)
drive = driver.drive

def interrupted(run, workers, progress, world):
    return drive(run, workers, lambda event: os.kill(os.getpid(), signal.SIGINT), world)

driver.drive = interrupted
sys.exit(main(sys.argv[1:]))
"""


def test_interrupt_leaves_a_run_that_resumes(here: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["learn", "--world", str(here / "small.txt"), "--paths", "2", "--out", str(run)]
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True
    )
    assert not (run / "summary.json").exists()
    assert process.returncode == 130
    last = process.stderr.strip().splitlines()[-1]
    assert last == f"ringfence: stopped; go on with 'ringfence resume {run}'"
    assert main(["resume", str(run)]) == 0
    assert (run / "summary.json").is_file()


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def test_interrupt_names_a_run_that_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ringfence.runs.driver.drive", interrupt)
    for words, run in (
        (["learn", "--paths", "2"], "runs/maze-mt-icl"),
        (["quickstart"], "runs/quickstart"),
        (["resume", "runs/quickstart"], "runs/quickstart"),
    ):
        code, _, err = ask(*words)
        assert code == 130
        assert err.endswith(f"ringfence: stopped; go on with 'ringfence resume {run}'\n")


def test_interrupt_names_a_solve_that_can_go_on(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.setattr("ringfence.runs.solving.drive", interrupt)
    out = tmp_path / "solve"
    code, _, err = ask("solve", "--world", here / "small.txt", "--out", out)
    assert code == 130
    assert err.endswith(f"ringfence: stopped; go on with 'ringfence resume {out}'\n")
    monkeypatch.undo()
    assert main(["resume", str(out)]) == 0
    assert (out / "summary.json").is_file()


@pytest.mark.parametrize(
    ("words", "stopped"),
    [
        ("demos make --out demos", "ringfence.experts.optimal.make_demonstrations"),
        ("reproduce grid", "ringfence.reproduce.run"),
    ],
)
def test_what_keeps_its_parts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, words: str, stopped: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stopped, interrupt)
    code, _, err = ask(*words.split())
    assert code == 130
    assert err.endswith("ringfence: stopped; the same command goes on from what is done\n")


def test_hints_name_the_command_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGFENCE_COMMAND", "python3 start.py")
    monkeypatch.setattr("ringfence.runs.driver.drive", interrupt)
    _, _, err = ask("quickstart")
    assert err.endswith("go on with 'python3 start.py resume runs/quickstart'\n")
    _, _, err = ask("learn", "--out", "runs/quickstart")
    assert "go on with 'python3 start.py resume runs/quickstart' or choose" in err


def test_interrupt_without_a_run_speaks_of_none(
    here: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.setattr("ringfence.demos.dataset.load", interrupt)
    code, _, err = ask("demos", "check", here / "demos")
    assert (code, err) == (130, "\nringfence: stopped\n")


# Files and pipes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(30, "Read-only file system", "run/x"), "run/x can't be written (Read-only"),
        (FileNotFoundError(2, "No such file", "nowhere/x"), "nowhere/x can't be written (No such"),
        (FileNotFoundError(2, "No such file", "x"), "x can't be read (No such file)"),
    ],
)
def test_a_file_that_the_system_refuses_is_named(
    problem: OSError, words: str, here: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise problem

    monkeypatch.setattr("ringfence.demos.dataset.load", refuse)
    code, _, err = ask("demos", "check", here / "demos")
    assert code == 2
    assert err.startswith(f"ringfence: {words}")


def test_an_unforeseen_error_is_one_line_and_a_log(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError("a bug")

    monkeypatch.setattr("ringfence.demos.dataset.load", fail)
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path))
    code, out, err = ask("demos", "check", here / "demos")
    (log,) = (tmp_path / "logs").iterdir()
    line = f"ringfence: an unforeseen OSError: a bug; its traceback is in {log}\n"
    assert (code, out, err) == (1, "", line)
    assert "Traceback (most recent call last)" in log.read_text()
    assert log.read_text().startswith(f"ringfence demos check {here / 'demos'}\n")


def test_a_reader_that_goes_ends_the_command_without_a_word(here: Path) -> None:
    """As `ringfence demos show demos | head -0` does."""
    words = [sys.executable, "-u", "-m", "ringfence.cli", "demos", "show", str(here / "demos")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (1, b"")


# Modules of one's own ----------------------------------------------------------------------------


def test_a_module_of_the_working_directory_is_found_by_workers_and_on_resume(
    tmp_path: Path,
) -> None:
    """As a command: a test's own path has the folder already."""
    (tmp_path / "my_cart.py").write_text("from own_cart import make_cart\n")
    own_cart.write(tmp_path, own_cart.TOML.replace("own_cart:make", "my_cart:make"))
    script = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for words in ("learn my.toml --workers 2 --out run", "resume run"):
        (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, *words.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, SOURCES])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "run" / "summary.json").is_file()
