"""What every run directory has: one driver, events, a clock, its demonstrations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.runs import folder
from ringfence.runs.folder import Clock, only_driver, read_demos, refuse_existing, teller
from small_worlds import demos_of


def test_a_run_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(folder, "write_file", full_disk)
    with pytest.raises(OSError, match=r"No space left.*run"):
        folder.create(tmp_path / "run", "schema = 2", demos_of("grid"))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    folder.create(tmp_path / "run", "schema = 2", demos_of("grid"))
    assert {p.name for p in (tmp_path / "run").iterdir()} == {"config.toml", "demos"}


def test_demonstrations_that_were_changed_are_refused(tmp_path: Path) -> None:
    given = demos_of("grid")
    folder.create(tmp_path / "run", "", given)
    read = read_demos(tmp_path / "run", dataset.content_hash(given))
    assert dataset.content_hash(read) == dataset.content_hash(given)
    with pytest.raises(InvalidInput, match="not the demonstrations that this run was started"):
        read_demos(tmp_path / "run", "another hash")


def test_an_event_is_a_line_and_is_passed_on(tmp_path: Path) -> None:
    heard: list[dict] = []
    tell = teller(tmp_path, heard.append)
    tell({"event": "start", "tasks": 2})
    tell({"event": "selected", "i": 1})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == heard
    assert [event["event"] for event in heard] == ["start", "selected"]
    assert all(event["seconds"] >= 0 for event in heard)


# One driver --------------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from ringfence.runs.folder import only_driver

with only_driver(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(60)
"""


def test_only_one_process_drives_a_run_and_a_killed_one_gives_it_free(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    with pytest.raises(InvalidInput, match="another process is driving"), only_driver(tmp_path):
        pass
    process.kill()
    process.wait()
    with only_driver(tmp_path):
        pass


# Places ------------------------------------------------------------------------------------------


def test_a_place_that_is_taken_is_refused_in_words(tmp_path: Path) -> None:
    run = tmp_path / "run"
    refuse_existing(run)
    run.mkdir()
    refuse_existing(run)
    for name, words in (
        ("config.toml", "exists already; go on with 'ringfence resume"),
        ("summary.json", "exists already and is finished"),
    ):
        (run / name).touch()
        with pytest.raises(InvalidInput, match=words):
            refuse_existing(run)


def test_a_single_problems_folder_is_taken_too(tmp_path: Path) -> None:
    (tmp_path / "solve.toml").touch()
    assert folder.is_run(tmp_path)
    with pytest.raises(InvalidInput, match="go on with 'ringfence resume"):
        refuse_existing(tmp_path)


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InvalidInput, match="exists and is not a run"):
        refuse_existing(tmp_path / "mine")


# The clock ---------------------------------------------------------------------------------------


def test_the_clock_adds_up_over_sessions(tmp_path: Path) -> None:
    path = tmp_path / "timing.json"
    path.write_text('{"seconds": 100.0}')
    clock = Clock(path)
    clock.end_iteration()
    clock.write()
    found = json.loads(path.read_text())
    assert 100.0 <= found["seconds"] < 160.0
    (end,) = found["iteration_end_s"]
    assert 100.0 <= end <= found["seconds"]


def test_a_clock_that_was_cut_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "timing.json").write_text('{"seconds": 1')
    with pytest.raises(InvalidInput, match=r"timing.json: it can't be read .*delete it and resume"):
        Clock(tmp_path / "timing.json")
