"""start.py hands Ctrl-C on, and words after `test` to pytest."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: A command that takes its time to stop, as one that is compiling does.
SLOW = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("begun", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.6)
    print("go on with", flush=True)
    raise SystemExit(130)
"""
STARTED = """
import signal, sys
import start
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(getattr(start, sys.argv[1])([sys.executable, "-c", sys.argv[2]]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals to a process group are POSIX's")
@pytest.mark.parametrize("way", ["hand_over", "call"])
def test_an_interrupted_command_ends_in_its_own_words(way: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, way, SLOW],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.stdout.read() == "go on with\n"
    assert process.wait() == 130


def test_words_after_test_go_to_pytest_alone() -> None:
    checks = runpy.run_path(str(ROOT / "start.py"))["checks"]
    assert [words[2] for words in checks([])] == ["ruff", "ruff", "mypy", "pytest"]
    (only,) = checks(["-k", "word"])
    assert only[2] == "pytest"
    assert only[-2:] == ["-k", "word"]
