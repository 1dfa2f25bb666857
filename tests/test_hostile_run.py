"""A stranger's run, opened by every command: nothing of it runs, nothing outside is touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzzing import stamps
from ringfence import consent
from ringfence.cli.main import main
from ringfence.disk import SEAL, read_json, sealed_toml, write_document

EVIL = (
    'from pathlib import Path\nPath("pwned").touch()\ndef make(*_, **__): Path("pwned").touch()\n'
)
COMMANDS = (
    "resume run",
    "resume run --iterations 9",
    "transfer run --out out",
    "transfer run --goal 0,3 --start 3,0 --out out",
    "report run",
    "report run run2 --out out",
    "evaluate run --demos run/demos",
    "evaluate run --world small.txt --out out",
    "demos check run/demos",
    "demos show run/demos",
    "learn --world small.txt --demos run/demos --out out",
    "solve --world small.txt --constraint run --out out",
    "solve --world small.txt --policy run --out out",
)


def config(old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        text = (run / "config.toml").read_text().partition("\n")[2]
        assert old in text
        (run / "config.toml").write_bytes(sealed_toml(text.replace(old, new, 1)))

    return change


def summary(run: Path) -> None:
    """The ledger's entries are said to lie outside."""
    document = read_json(run / "summary.json")
    for row in document["iterations"]:
        row["ledger"] = ["../../outside"] * len(row["ledger"])
    write_document(run / "summary.json", {k: v for k, v in document.items() if k != SEAL})


def link(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        place, outside = run / name, run.parent / "outside"
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        place.symlink_to(outside if "." not in name else outside / "secret")

    return change


def pipe(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return change


def huge(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        os.truncate(run / name, 1 << 40)

    return change


HOSTILE = {
    "a world's kind": config('kind = "grid"', 'kind = "evil:make"'),
    "a world's maker": config('kind = "grid"', 'kind = "tables"\nmake = "evil:make"'),
    "an environment": config('kind = "grid"', 'kind = "gym"\nenv = "evil:make"'),
    "an environment's id": config('kind = "grid"', 'kind = "gym"\nenv = "evil:X-v0"'),
    "a solver": config('kind = "soft"', 'kind = "evil:make"'),
    "a player": config('kind = "regression"', 'kind = "evil:make"'),
    "os:system": config('kind = "soft"', 'kind = "os:system"'),
    "paths in the ledger's names": summary,
    "a linked ledger": link("ledger"),
    "a linked summary": link("summary.json"),
    "a linked evidence": link("evidence.json"),
    "a linked lock": link(".lock"),
    "linked events": link("metrics.jsonl"),
    "linked demonstrations": link("demos"),
    "a linked page": link("report.html"),
    "a pipe": pipe("summary.json"),
    "a pipe of events": pipe("metrics.jsonl"),
    "a huge configuration": huge("config.toml"),
    "a huge summary": huge("summary.json"),
    "huge evidence": huge("evidence.json"),
    "huge weights": huge("constraint/weights.safetensors"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_strangers_run_runs_and_nothing_outside_is_touched(
    name: str,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(consent, "_agreed", set())
    place = Path(shutil.copytree(here, tmp_path / "place"))
    (place / "outside").mkdir()
    (place / "outside" / "secret").write_text('{"secret": 1}')
    (place / "evil.py").write_text(EVIL)
    shutil.copytree(place / "run", place / "run2")
    HOSTILE[name](place / "run")
    monkeypatch.chdir(place)
    before, refused = stamps(place / "outside"), 0
    for command in COMMANDS:
        code = main(command.split())
        said = capsys.readouterr()
        assert "unforeseen" not in said.err, command
        assert "secret" not in said.out, command
        assert not (place / "pwned").exists(), command
        assert stamps(place / "outside") == before, command
        refused += code != 0
        out = place / "out"
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    assert refused >= 3  # some commands never look at what is hostile


def test_a_run_of_ones_own_needs_no_consent_and_a_strangers_runs_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import own_cart

    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path)
    own_cart.write(tmp_path)
    assert main(["learn", "my.toml", "--out", "run"]) == 0
    assert main(["resume", "run"]) == 0
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "theirs"))
    monkeypatch.setattr(consent, "_agreed", set())
    capsys.readouterr()
    assert main(["resume", "run"]) == 2
    assert "env = 'own_cart:make_cart'" in capsys.readouterr().err
    assert main(["resume", "run", "--trust"]) == 0
    monkeypatch.setattr(consent, "_agreed", set())
    assert main(["resume", "run"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        "report run --out {}",
        "evaluate run --world small.txt --out {}",
        "learn --world small.txt --out {}",
        "demos make --world small.txt --out {}",
        "solve --world small.txt --out {}",
        "transfer run --goal 0,3 --start 3,0 --out {}",
    ],
)
def test_a_pipe_or_device_is_not_replaced(
    command: str,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = Path(shutil.copytree(here, tmp_path / "place"))
    monkeypatch.chdir(place)
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("/dev/null")
    for out in ("pipe", "link", "/dev/null"):
        before = os.lstat(out)
        assert main(command.format(out).split()) == 2, out
        assert (os.lstat(out).st_ino, os.lstat(out).st_mode) == (before.st_ino, before.st_mode)
