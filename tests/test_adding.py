"""A world, a constraint player and a solver are one file each: toy_world.py, toy_player.py,
toy_solver.py. Nothing of Ringfence knows them, and every command takes them."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.cli.main import main
from ringfence.progress import Progress
from small_worlds import result

MAP = "S.#0\n..#.\n..#1\n....\n"


@dataclass(frozen=True)
class Toy:
    """What is added; words: of the command line that choose it; setting: one of its entries."""

    table: str
    kind: str
    setting: tuple[str, float]
    words: tuple[str, ...]
    goal: str
    start: str

    def learn(self, out: Path, *more: str) -> int:
        return main(["learn", *self.words, "--seed", "1", "--out", str(out), *more])


def toys(world: Path) -> dict[str, Toy]:
    file = ("--world", str(world))
    return {
        "world": Toy("world", "toy_world:make", ("rooms", 7), ("--world", "toy_world:make"),
                     "0,5", "0,3"),
        "player": Toy("player", "toy_player:make", ("margin", 0.25),
                      (*file, "--player", "toy_player:make"), "0,3", "3,1"),
        "solver": Toy("solver", "toy_solver:make", ("price", 50.0),
                      (*file, "--solver", "toy_solver:make"), "0,3", "3,1"),
    }  # fmt: skip


@pytest.fixture(scope="module", params=["world", "player", "solver"])
def toy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    file = tmp_path_factory.mktemp("map") / "yard.txt"
    file.write_text(MAP)
    return toys(file)[request.param]


@pytest.fixture(scope="module")
def run(toy: Toy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / toy.table
    assert toy.learn(out) == 0
    return out


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_bytes())
    return found


def test_it_learns_the_constraint_and_writes_its_page(toy: Toy, run: Path) -> None:
    found = summary(run)
    assert found["constraint"]["iou"] == 1.0
    assert found["constraint"]["forbidden"] > 0
    rows = found["iterations"]
    assert rows[0]["learner_true_cost_mean"] > 0
    assert rows[found["selected"] - 1]["learner_true_cost_mean"] < 1e-6
    assert found["evidence"]["allowed"] > 0
    config = tomllib.loads((run / "config.toml").read_text())
    assert config[toy.table]["kind"] == toy.kind
    assert toy.setting[0] in config[toy.table]  # its defaults are written out
    page = (run / "report.html").read_text()
    assert found["constraint"]["description"].split(":")[0] in page


def test_two_workers_come_to_the_same_bytes(toy: Toy, run: Path, tmp_path: Path) -> None:
    assert toy.learn(tmp_path / "two", "--workers", "2") == 0
    assert result(tmp_path / "two") == result(run)


def test_a_stopped_run_resumes_to_the_same_bytes(
    toy: Toy, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: Progress, event: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "stopped"
    with monkeypatch.context() as patched:
        patched.setattr(Progress, "iteration", stop)
        assert toy.learn(out) == 130
    assert not (out / "summary.json").exists()
    assert main(["resume", str(out)]) == 0
    assert result(out) == result(run)


def test_a_longer_game_is_one_that_was_to_be_so_long(toy: Toy, run: Path, tmp_path: Path) -> None:
    longer = str(len(summary(run)["iterations"]) + 2)
    play_on = ("--set", "game.epsilon=-1")
    assert toy.learn(tmp_path / "on", *play_on, "--iterations", "2") == 0
    assert main(["resume", str(tmp_path / "on"), "--iterations", longer]) == 0
    assert toy.learn(tmp_path / "whole", *play_on, "--iterations", longer) == 0
    assert result(tmp_path / "on") == result(tmp_path / "whole")


@pytest.mark.parametrize("unknown", ["avoid", "allow"])
def test_what_was_learned_is_used_on_a_new_task(
    toy: Toy, run: Path, tmp_path: Path, unknown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / unknown
    words = ["--goal", toy.goal, "--start", toy.start, "--unknown", unknown]
    assert main(["transfer", str(run), *words, "--out", str(out)]) == 0
    found = summary(out)
    assert found["success"] == pytest.approx(1.0, abs=1e-6)
    assert found["true_cost"] == pytest.approx(0.0, abs=1e-6)
    assert "covered" in capsys.readouterr().out


def test_it_is_evaluated_against_the_truth_and_demonstrations(
    toy: Toy, run: Path, tmp_path: Path
) -> None:
    file = tmp_path / "evaluated.json"
    words = ["--world", toy.words[1], "--demos", str(run / "demos"), "--out", str(file)]
    if toy.table == "solver":
        words += ["--solver", toy.kind]
    assert main(["evaluate", str(run), *words]) == 0
    found = json.loads(file.read_bytes())
    assert found["truth"]["iou"] == 1.0
    assert found["truth"]["impossible"] == 0
    assert found["demonstrations"]["expert_cost_mean"] == 0.0


def test_its_page_is_written_again_and_over_several_seeds(
    toy: Toy, run: Path, tmp_path: Path
) -> None:
    written = (run / "report.html").read_bytes()
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == written
    assert main(["learn", *toy.words, "--seed", "2", "--out", str(tmp_path / "other")]) == 0
    both = [str(run), str(tmp_path / "other")]
    assert main(["report", *both, "--out", str(tmp_path / "both.html")]) == 0


def test_a_single_problem_is_solved(toy: Toy, tmp_path: Path) -> None:
    if toy.table == "player":
        pytest.skip("a single problem has no constraint player")
    words = [*toy.words, "--constraint", "truth", "--out", str(tmp_path / "solved")]
    assert main(["solve", *words]) == 0
    assert summary(tmp_path / "solved")["true_cost"] == pytest.approx(0.0, abs=1e-6)


def test_its_settings_are_set_and_a_wrong_one_is_one_line(
    toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, value = toy.setting
    assert toy.learn(tmp_path / "set", "--set", f"{toy.table}.{name}={value}") == 0
    config = tomllib.loads((tmp_path / "set" / "config.toml").read_text())
    assert config[toy.table][name] == value
    capsys.readouterr()
    assert toy.learn(tmp_path / "wrong", "--set", f"{toy.table}.nonsense=1") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "nonsense: unknown; there are" in line
    assert name in line
    assert not (tmp_path / "wrong").exists()
