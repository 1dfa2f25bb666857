"""The command: what it prints, its exit codes, and bad input by category."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.cli.main import main, recorded_command

COMMAND = [sys.executable, "-m", "ringfence.cli"]


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one good specimen of each kind of input."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.txt").write_text("S.#0\n..#.\n..#.\n...1\n")
    small = ["--world", str(folder / "small.txt")]
    few = ["--paths", "2", "--heldout", "1"]
    assert main(["demos", "make", *small, *few, "--out", str(folder / "demos")]) == 0
    demos = ["--demos", str(folder / "demos")]
    assert main(["learn", *small, *demos, "--out", str(folder / "run")]) == 0
    return folder


def ask(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    try:
        code = main([str(word) for word in words])
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def bad_map(text: str):
    return lambda here: (here / "bad.txt").write_text(text)


def damage_json(path: str, old: str, new: str):
    def damage(here: Path) -> None:
        file = here / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return damage


def nothing(here: Path) -> None:
    """The specimen is good; the words of the command are not."""


MAP = ["learn", "--world", "bad.txt", "--out", "new"]
DEMOS = ["learn", "--world", "small.txt", "--demos", "demos", "--out", "new"]
RESUME = ["resume", "run"]
EVALUATE = ["evaluate", "run", "--world", "small.txt"]

BAD = [
    # maps
    ("map: ragged", bad_map("S.\n...0"), MAP, r"bad.txt: map, line 2: .* one length"),
    ("map: no start", bad_map("..0"), MAP, r"no start; mark .* 'S'"),
    ("map: no goal", bad_map("S.."), MAP, r"no goal; mark"),
    ("map: unknown letter", bad_map("S@0"), MAP, r"line 1: unknown letter '@'; use"),
    ("map: goal shut in", bad_map("S#0"), MAP, r"can't be reached .* open a way"),
    ("map: goal twice", bad_map("S00"), MAP, r"goal '0' stands in 2 cells; give"),
    ("map: empty", bad_map(""), MAP, r"line 1: it is empty"),
    ("map: missing", nothing, MAP, r"no such map file; give 'maze'"),
    ("map: binary", lambda h: (h / "bad.txt").write_bytes(b"\xff"), MAP, r"not a plain text map"),
    # demonstrations
    ("demos: missing", lambda h: shutil.rmtree(h / "demos"), DEMOS, r"demos"),
    ("demos: no index", lambda h: (h / "demos/demonstrations.json").unlink(), DEMOS, r"demonstr"),
    ("demos: other world", nothing, ["learn", "--demos", "demos", "--out", "new"], r"goal \(0,3\)"),
    (
        "demos: future schema",
        damage_json("demos/demonstrations.json", '"schema": 1', '"schema": 9'),
        DEMOS,
        r"schema",
    ),
    (
        "demos: no paths",
        nothing,
        ["demos", "make", "--paths", "0", "--out", "new"],
        r"paths must be",
    ),
    ("demos: noise", nothing, ["demos", "make", "--noise", "2", "--out", "new"], r"noise must be"),
    (
        "demos: folder is there",
        nothing,
        ["demos", "make", "--out", "demos"],
        r"exists already; choose",
    ),
    ("demos: check wrong", nothing, ["demos", "check", "run"], r"demonstrations.json"),
    # configuration
    ("config: slip", nothing, ["learn", "--slip", "1.5", "--out", "new"], r"slip must be in"),
    (
        "config: horizon",
        nothing,
        ["learn", "--horizon", "5", "--out", "new"],
        r"horizon of at least",
    ),
    ("config: iterations", nothing, ["learn", "--iterations", "0", "--out", "new"], r"at least 1"),
    ("config: task", nothing, ["learn", "--task", "x", "--out", "new"], r"task 'x'.*there are"),
    (
        "config: icl",
        nothing,
        ["learn", "--method", "icl", "--out", "new"],
        r"one task, 10 are given",
    ),
    ("config: workers", nothing, ["learn", "--workers", "0", "--out", "new"], r"--workers"),
    (
        "config: temperature",
        nothing,
        ["learn", "--temperature", "-1", "--out", "new"],
        r"temperature",
    ),
    (
        "config: exact",
        nothing,
        ["learn", "--experts", "exact", "--demos", "demos", "--out", "new"],
        r"leave --demos out",
    ),
    # constraint files
    (
        "constraint: altered",
        damage_json(
            "run/constraint/constraint.json", '"weights_sha256": "', '"weights_sha256": "0'
        ),
        EVALUATE,
        r"SHA-256 differs",
    ),
    (
        "constraint: future schema",
        damage_json("run/constraint/constraint.json", '"schema": 1', '"schema": 2'),
        EVALUATE,
        r"schema 2, this version reads 1",
    ),
    (
        "constraint: truncated",
        lambda h: (h / "run/constraint/weights.safetensors").write_bytes(b"x"),
        EVALUATE,
        r"SHA-256",
    ),
    ("constraint: missing", nothing, ["evaluate", "nowhere"], r"nowhere.*no such file"),
    (
        "constraint: other world",
        nothing,
        ["evaluate", "run"],
        r"4 x 4 cells, this world has 10 x 10",
    ),
    (
        "constraint: no feature",
        nothing,
        ["evaluate", "speed <= 1"],
        r"no feature 'speed'; features",
    ),
    ("constraint: grammar", nothing, ["evaluate", "row <= col <= 2"], r"one linear inequality"),
    # run directories
    ("run: missing", nothing, ["resume", "nowhere"], r"not a run directory.*ringfence learn"),
    ("run: bad toml", lambda h: (h / "run/config.toml").write_text("["), RESUME, r"not valid TOML"),
    (
        "run: future",
        damage_json("run/config.toml", "schema = 1", "schema = 7"),
        RESUME,
        r"schema 7",
    ),
    ("run: entry", damage_json("run/config.toml", "epsilon", "epsilom"), RESUME, r"'epsilom'"),
    ("run: demos gone", lambda h: shutil.rmtree(h / "run/demos"), RESUME, r"demos"),
    (
        "run: in the way",
        lambda h: (h / "run/summary.json").unlink(),
        ["learn", "--out", "run"],
        r"exists already; go on with",
    ),
    ("run: finished", nothing, ["learn", "--out", "run"], r"is finished; choose another --out"),
    ("map: no truth", bad_map("S..0"), MAP, r"no '#' cell.*learn --demos"),
    (
        "demos: a file",
        lambda h: (h / "logs.npz").write_bytes(b""),
        ["demos", "check", "logs.npz"],
        r"logs.npz.*demos check FILE.toml",
    ),
    (
        "demos: show a file",
        lambda h: (h / "logs.npz").write_bytes(b""),
        ["demos", "show", "logs.npz"],
        r"demos check FILE.toml",
    ),
    (
        "run: unfinished",
        lambda h: (h / "run/evidence.json").unlink(),
        ["transfer", "run", "--goal", "0,3", "--start", "0,0"],
        r"not finished.*resume",
    ),
    (
        "run: no summary",
        lambda h: (h / "run/summary.json").unlink(),
        ["report", "run"],
        r"run: unfinished; go on with 'ringfence resume run'",
    ),
    # places for what comes out
    ("out: a file", nothing, ["learn", "--out", "small.txt"], r"small.txt: it exists and is not a"),
    ("out: a folder", nothing, ["learn", "--out", "demos"], r"not a run; choose another --out"),
    (
        "out: under a file",
        nothing,
        ["learn", "--paths", "2", "--out", "small.txt/run"],
        r"ringfence: small.txt/run can't be written \(Not a directory\)",
    ),
    (
        "out: under nothing",
        nothing,
        ["report", "run", "--out", "nowhere/page.html"],
        r"ringfence: nowhere/page.html can't be written \(No such file or directory\)",
    ),
    (
        "out: page is a folder",
        nothing,
        ["report", "run", "--out", "demos"],
        r"ringfence: demos can't be written \(Is a directory\)",
    ),
    # command line
    ("line: nothing", nothing, [], r"command.*--help"),
    ("line: unknown command", nothing, ["lern"], r"invalid choice: 'lern'"),
    ("line: unknown option", nothing, ["learn", "--sede", "1"], r"--sede"),
    ("line: seed", nothing, ["learn", "--seed", "-1"], r"-1"),
    ("line: seed text", nothing, ["learn", "--seed", "abc"], r"'abc' is not a whole number"),
    ("line: cell", nothing, ["transfer", "run", "--goal", "3", "--start", "0,0"], r"row,col"),
    (
        "line: outside",
        nothing,
        ["transfer", "run", "--goal", "9,9", "--start", "0,0"],
        r"outside the map of 4 x 4",
    ),
    ("line: task", nothing, ["solve", "--task", "99", "--out", "new"], r"use 0-9"),
    ("line: several runs", nothing, ["report", "run", "run"], r"needs --out"),
    ("line: seeds", nothing, ["reproduce", "grid", "--seeds", "0", "--out", "new"], r"at least 1"),
    (
        "line: none of its steps",
        nothing,
        ["reproduce", "velocity", "--steps", "0", "--out", "new"],
        r"--steps must be at least 1",
    ),
    *(
        (
            f"line: {experiment} {words[0]}",
            nothing,
            ["reproduce", experiment, *words, "--out", "new"],
            f"{words[0]} has no effect in 'reproduce {experiment}': leave it out",
        )
        for experiment, *words in (
            ("baselines", "--steps", "1000"),
            ("baselines", "--player", "payoff"),
            ("baselines", "--player", "regression"),
            ("baselines", "--iterations", "3"),
            ("baselines", "--keep-saturated"),
            ("baselines", "--carry", "policy"),
            ("velocity", "--only", "velocity-20"),
            ("grid", "--world", "ant"),
            ("maze", "--workers", "2"),
            ("selection", "--seeds", "2"),
        )
    ),
]


@pytest.mark.parametrize(("name", "damage", "words", "message"), BAD, ids=[row[0] for row in BAD])
def test_bad_input_gets_one_message_and_leaves_nothing(
    name, damage, words, message, here, tmp_path, monkeypatch, capsys
) -> None:
    place = tmp_path / "place"
    shutil.copytree(here, place)
    monkeypatch.chdir(place)
    damage(place)
    before = sorted(str(p) for p in place.rglob("*"))
    code, _, err = ask(capsys, *words)
    assert code == 2, err
    assert re.search(message, err, re.DOTALL), err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    assert sorted(str(p) for p in place.rglob("*") if p.name != ".lock") == [
        p for p in before if not p.endswith(".lock")
    ]


def test_a_failed_run_exits_with_1(here, tmp_path, capsys) -> None:
    words = ["solve", "--world", here / "small.txt", "--constraint", "row >= 1"]
    code, _, err = ask(capsys, *words, "--out", tmp_path / "new")
    assert code == 1
    assert "least achievable" in err
    assert not (tmp_path / "new").exists()


def test_help_of_every_command_has_an_example(capsys) -> None:
    for name in ("quickstart", "solve", "learn", "transfer", "evaluate", "report", "resume",
                 "reproduce", "bench", "demos make", "demos check", "demos show"):  # fmt: skip
        code, out, _ = ask(capsys, *name.split(), "--help")
        assert code == 0
        assert f"example: ringfence {name}" in " ".join(out.split())


def test_learn_prints_progress_and_result_in_plain_lines(here, tmp_path, capsys) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos"]
    code, out, _ = ask(capsys, *words, "--out", tmp_path / "run")
    assert code == 0
    assert "iteration 1/5  reward" in out
    assert "constraint (iteration 2): " in out
    assert "\x1b[" not in out
    assert (tmp_path / "run/report.html").is_file()


def test_relative_paths_work(here, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--world", here / "small.txt", "--paths", 2, "--heldout", 1]
    assert ask(capsys, "learn", *small, "--out", "here/run")[0] == 0
    assert ask(capsys, "resume", "here/run")[0] == 0
    assert ask(capsys, "demos", "make", *small, "--out", "demos")[0] == 0
    assert ask(capsys, "demos", "check", "demos", "--world", here / "small.txt")[0] == 0
    assert ask(capsys, "report", "here/run", "--out", "page.html")[0] == 0
    assert Path("page.html").read_bytes() == Path("here/run/report.html").read_bytes()


def test_solve_writes_policy_summary_and_picture(here, tmp_path, capsys) -> None:
    for solver in ("soft", "lp", "gradient", "pid"):
        out = tmp_path / solver
        words = ["solve", "--world", here / "small.txt", "--solver", solver, "--out", out]
        assert ask(capsys, *words)[0] == 0
        summary = json.loads((out / "summary.json").read_text())
        assert summary["reward"] == pytest.approx(3, rel=0.05)  # 9 moves around the wall, T = 12
        assert {p.name for p in out.iterdir()} == {"policy.safetensors", "summary.json", "path.png"}


def test_solve_says_when_no_way_is_left_to_the_goal(tmp_path, capsys) -> None:
    words = ["solve", "--out", tmp_path / "out", "--constraint"]
    assert "no way to the goal" in ask(capsys, *words, "col - row <= 6")[1]


def test_evaluate_tells_overlap_and_violation(here, tmp_path, capsys) -> None:
    out = tmp_path / "result.json"
    words = ["evaluate", here / "run", "--world", here / "small.txt", "--demos", here / "demos"]
    assert ask(capsys, *words, "--out", out)[0] == 0
    result = json.loads(out.read_text())
    assert result["truth"]["impossible"] == 0
    assert result["truth"]["learner_true_cost_mean"] == 0
    assert result["demonstrations"]["expert_cost_mean"] == 0


def test_transfer_says_what_is_covered_before_it_runs(here, tmp_path, capsys) -> None:
    words = ["transfer", here / "run", "--goal", "3,3", "--start", "1,1", "--out", tmp_path / "t"]
    code, out, _ = ask(capsys, *words)
    summary = json.loads((tmp_path / "t/summary.json").read_text())
    assert code == 0
    assert out.startswith("goal (3,3) from (1, 1): covered")
    assert summary["success"]
    assert summary["true_cost"] == 0


def test_recorded_command_leaves_out_what_does_not_matter() -> None:
    words = ["learn", "--out", "x", "--seed", "1", "--workers=2", "--task", "goal (0,1)"]
    assert recorded_command(words) == 'ringfence learn --seed 1 --task "goal (0,1)"'


#: `ringfence` that gets Ctrl-C at the run's first event: no matter how fast it is or how busy the
#: machine, it comes while the run is going on; and no matter whether the tests were started in the
#: background, where a shell has SIGINT ignored.
INTERRUPTED = """
import os, signal, sys
from ringfence.cli.main import main
from ringfence.runs import learn

signal.signal(signal.SIGINT, signal.default_int_handler)
drive = learn.drive

def interrupted(run, workers, progress):
    return drive(run, workers, lambda event: os.kill(os.getpid(), signal.SIGINT))

learn.drive = interrupted
sys.exit(main(sys.argv[1:]))
"""


def test_interrupt_leaves_a_run_that_resumes(tmp_path) -> None:
    run = tmp_path / "run"
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "learn", "--paths", "2", "--out", str(run)],
        capture_output=True,
        text=True,
    )
    assert not (run / "summary.json").exists()
    assert process.returncode == 130
    last = process.stderr.strip().splitlines()[-1]
    assert last == f"ringfence: stopped; go on with 'ringfence resume {run}'"
    assert main(["resume", str(run)]) == 0
    assert (run / "summary.json").is_file()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_interrupt_names_a_run_that_nobody_named(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ringfence.runs.learn.drive", interrupt)
    for words, run in (
        (["learn", "--paths", "2"], "runs/maze-mt-icl"),
        (["quickstart"], "runs/quickstart"),
        (["resume", "runs/quickstart"], "runs/quickstart"),
    ):
        code, _, err = ask(capsys, *words)
        assert code == 130
        assert err.endswith(f"ringfence: stopped; go on with 'ringfence resume {run}'\n")


@pytest.mark.parametrize(
    ("words", "stopped"),
    [
        (["demos", "make", "--out", "demos"], "ringfence.experts.optimal.make_demonstrations"),
        (["reproduce", "grid"], "ringfence.studies.tables.grid"),
    ],
)
def test_what_keeps_its_parts_says_so(tmp_path, monkeypatch, capsys, words, stopped) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stopped, interrupt)
    code, _, err = ask(capsys, *words)
    assert code == 130
    assert err.endswith("ringfence: stopped; the same command goes on from what is done\n")


def test_hints_name_the_command_as_it_was_called(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGFENCE_COMMAND", "python3 start.py")
    monkeypatch.setattr("ringfence.runs.learn.drive", interrupt)
    _, _, err = ask(capsys, "quickstart")
    assert err.endswith("go on with 'python3 start.py resume runs/quickstart'\n")
    _, _, err = ask(capsys, "learn", "--out", "runs/quickstart")
    assert "go on with 'python3 start.py resume runs/quickstart' or choose" in err


def test_interrupt_without_a_run_speaks_of_none(here, monkeypatch, capsys) -> None:
    monkeypatch.setattr("ringfence.demos.dataset.load", interrupt)
    code, _, err = ask(capsys, "demos", "check", here / "demos")
    assert (code, err) == (130, "\nringfence: stopped\n")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(30, "Read-only file system", "run/x"), "run/x can't be written (Read-only"),
        (FileNotFoundError(2, "No such file", "nowhere/x"), "nowhere/x can't be written (No such"),
        (FileNotFoundError(2, "No such file", "x"), "x can't be read (No such file)"),
    ],
)
def test_a_file_that_the_system_refuses_is_named(problem, words, monkeypatch, capsys) -> None:
    def refuse(*_: object) -> None:
        raise problem

    monkeypatch.setattr("ringfence.demos.dataset.load", refuse)
    code, _, err = ask(capsys, "demos", "check", "demos")
    assert code == 2
    assert err.startswith(f"ringfence: {words}")
