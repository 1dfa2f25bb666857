"""The Ant's maze from the command line, on a map that is walked in a second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringfence.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maze")
    (folder / "map.txt").write_text("S#0\n...\n")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    words = ["learn", "--world", f"ant-maze:{folder}/map.txt", "--horizon", "400"]
    words += ["--paths", "2", "--iterations", "2", "--seed", "1", "--out", str(folder / "run")]
    assert main(words) == 0
    return folder / "run"


def test_learn_plays_the_game_and_writes_the_page(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_bytes())
    assert summary["world"] == "ant-maze-map"
    assert summary["iterations"][0]["updated"]["iou"] == 1
    assert "ringfence learn" in summary["command"]
    assert 'class="walking"' in (run / "report.html").read_text()


def test_resume_of_a_finished_run_changes_nothing(run: Path) -> None:
    before = (run / "summary.json").read_bytes()
    assert main(["resume", str(run)]) == 0
    assert (run / "summary.json").read_bytes() == before


def test_transfer_says_covered_first(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run.parent / "transfer"
    words = ["transfer", str(run), "--goal", "0,2", "--start", "1,1", "--out", str(out)]
    assert main(words) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert "covered" in first
    assert last == f"saved to {out}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--player", "ftrl"], "--player is regression"),
        (["--class", "table"], "--class is mlp"),
        (["--method", "icl"], "--method is mt-icl"),
        (["--noise", "0.1"], "no --noise"),
        (["--experts", "exact"], "no exact occupancies"),
    ],
)
def test_what_the_maze_does_not_have_is_refused(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "refused"
    assert main(["learn", "--world", f"ant-maze:{folder}/map.txt", *words, "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_an_unknown_task_and_a_missing_map_are_named(
    run: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["learn", "--world", f"ant-maze:{folder}/map.txt", "--horizon", "400"]
    words += ["--demos", str(run / "demos"), "--task", "goal (7,7)", "--out", str(folder / "no")]
    assert main(words) == 2
    assert "'goal (7,7)' is not in the world" in capsys.readouterr().err
    assert main(["learn", "--world", "ant-maze:none.txt", "--out", str(folder / "no")]) == 2
    assert "no such map file" in capsys.readouterr().err


def test_a_map_that_shuts_a_goal_in_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "shut.txt").write_text("S.#0\n..##\n")
    words = ["learn", "--world", f"ant-maze:{folder}/shut.txt", "--out", str(folder / "no")]
    assert main(words) == 2
    assert "can't be reached" in capsys.readouterr().err


def test_commands_of_the_grid_refuse_the_ants_maze(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--world", "ant-maze", "--out", "nowhere"]) == 2
    assert "knows grid worlds only" in capsys.readouterr().err
