"""What every run's folder has: its own name, one driver, a line per event, a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.runs import folder
from ringfence.runs.folder import Clock, only_driver, quiet, read_demos, refuse_existing, teller
from small_worlds import demos_of


def test_a_run_is_created_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.create(tmp_path / "run", b"seed = 0\n", demos_of("grid"))
    assert (tmp_path / "run" / "config.toml").read_text() == "seed = 0\n"
    assert folder.is_run(tmp_path / "run")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "claim", fail)
    with pytest.raises(KeyboardInterrupt):
        folder.create(tmp_path / "other", b"", demos_of("grid"))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["config.toml", "summary.json"], "exists already and is finished; choose another --out"),
        (["config.toml"], "exists already; go on with 'ringfence resume"),
        (["solve.toml"], "exists already; go on with 'ringfence resume"),
        (["mine"], "exists and is not a run; choose another --out"),
    ],
)
def test_nothing_that_is_there_is_written_over(
    tmp_path: Path, files: list[str], words: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match=words):
        refuse_existing(tmp_path)


def test_an_empty_folder_gives_its_name_unless_it_is_the_working_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_existing(tmp_path / "new")
    refuse_existing(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="not a run"):
        refuse_existing(Path())


def test_only_the_runs_own_demonstrations_are_read(tmp_path: Path) -> None:
    demos = demos_of("grid")
    folder.create(tmp_path / "run", b"", demos)
    own = dataset.content_hash(demos)
    assert dataset.content_hash(read_demos(tmp_path / "run", own)) == own
    with pytest.raises(InvalidInput, match="not the demonstrations that this run was started with"):
        read_demos(tmp_path / "run", own[::-1])


def test_events_are_lines_with_their_seconds_and_go_on_to_who_listens(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    for number in range(2):  # a second session adds to the first's
        teller(tmp_path, heard.append)({"event": "start", "number": number})
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == heard
    assert [line["number"] for line in lines] == [0, 1]
    assert all(line["seconds"] >= 0 for line in lines)


HOLD = """
import sys
from pathlib import Path
from ringfence.runs.folder import only_driver
with only_driver(Path(sys.argv[1])):
    print("driving", flush=True)
    sys.stdin.read()
"""


def test_one_process_drives_and_the_lock_goes_with_it_however_it_ends(tmp_path: Path) -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert held.stdout is not None
        assert held.stdout.readline() == "driving\n"
        with pytest.raises(InvalidInput, match="another process is driving"), only_driver(tmp_path):
            pass
    finally:
        held.kill()
        held.communicate()
    with only_driver(tmp_path):
        assert (tmp_path / ".lock").is_file()


def test_the_clock_adds_up_over_sessions(tmp_path: Path) -> None:
    path = tmp_path / "timing.json"
    path.write_text('{"seconds": 100.0}')
    clock = Clock(path, quiet)
    clock.end_iteration()
    clock.end_iteration()
    clock.write()
    written = json.loads(path.read_text())
    assert 100.0 <= written["seconds"] < 101.0
    assert 100.0 <= written["iteration_end_s"][0] <= written["iteration_end_s"][1] < 101.0


@pytest.mark.parametrize("text", ["{", "[]", '{"seconds": "1"}x', "{}", '{"seconds": null}'])
def test_a_clock_that_was_damaged_is_told_and_begins_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "timing.json").write_text(text)
    told: list[dict[str, Any]] = []
    Clock(tmp_path / "timing.json", told.append).write()
    assert [(e["event"], e["so"]) for e in told] == [("damaged", "the clock begins anew")]
    assert json.loads((tmp_path / "timing.json").read_text())["seconds"] < 1


@pytest.mark.parametrize("name", ["metrics.jsonl", ".lock", "ledger", "summary.json"])
def test_nothing_in_a_run_leads_out_of_it(tmp_path: Path, name: str) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.write_text("mine")
    run.mkdir()
    (run / name).symlink_to(outside)
    with pytest.raises(InvalidInput, match=f"{name}: a link"), only_driver(run):
        pass
    if name == "metrics.jsonl":
        with pytest.raises(InvalidInput, match="a link"):
            teller(run, quiet)({"event": "start"})
    assert outside.read_text() == "mine"
