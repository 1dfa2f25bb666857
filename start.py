#!/usr/bin/env python3
"""Sets Ringfence up in its own virtual environment and runs it; needs nothing but Python.

    python3 start.py quickstart    learn a constraint on the built-in maze, with pictures
    python3 start.py test          lint, types and tests
    python3 start.py test -k word  only tests whose names have the word (any option of pytest)

Anything else is handed to the `ringfence` command: `python3 start.py learn --help`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
LOCK, BULLET_LOCK = HERE / "requirements.lock", HERE / "requirements-bullet.lock"
PIP = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
BULLET_SECONDS = 300  # to wait for PyBullet, a download of 100 MB


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (an older Python gets this far)
        print(f"Ringfence needs Python 3.11 or newer, this is {sys.version.split()[0]}.")
        return 2
    arguments = sys.argv[1:] or ["--help"]
    try:
        install()
        if arguments[0] == "test":
            return test(arguments[1:])
        os.environ["RINGFENCE_COMMAND"] = "python3 start.py"  # for hints that it prints
        return hand_over([BIN / "ringfence", *arguments])
    except subprocess.CalledProcessError as problem:
        print(f"Set-up stopped: {' '.join(map(str, problem.cmd))} failed.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def install() -> None:
    """Install the locked versions and this checkout, unless that was done already."""
    wanted = LOCK.read_bytes() + (HERE / "pyproject.toml").read_bytes() + sys.version.encode()
    stamp, mark = VENV / "installed", hashlib.sha256(wanted).hexdigest()
    if stamp.is_file() and stamp.read_text() == mark:
        return
    print("Setting up .venv (once, about a minute) ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.check_call([sys.executable, "-m", "venv", VENV])
    subprocess.check_call([*PIP, "--requirement", LOCK])
    subprocess.check_call([*PIP, "--no-deps", "--no-build-isolation", "--editable", HERE])
    stamp.write_text(mark)


def install_bullet() -> None:
    """PyBullet, if there is a wheel for this Python (3.11 at the latest) and it can be had.

    Never built from source, which takes minutes; without it, the tests of its Ant are skipped.
    """
    stamp = VENV / "bullet"
    if stamp.is_file() and stamp.read_bytes() == BULLET_LOCK.read_bytes():
        return
    wheels = ["--only-binary", ":all:", "--no-deps", "--retries", "1", "--requirement", BULLET_LOCK]
    try:
        subprocess.run([*PIP, *wheels], check=True, capture_output=True, timeout=BULLET_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        print("PyBullet has no wheel here: the tests of its Ant are skipped.", flush=True)
    else:
        stamp.write_bytes(BULLET_LOCK.read_bytes())


def hand_over(command: list) -> int:
    """Become the command, so that signals reach it: after a Ctrl-C it says how to go on."""
    if os.name == "posix":
        os.execv(command[0], command)
    return call(command)


def call(command: list, **where: Path) -> int:
    """Run to its end, which a Ctrl-C leaves to the command: `subprocess.call` would kill it."""
    with subprocess.Popen(command, **where) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                pass


def checks(arguments: list) -> list:
    """The commands of `test`: a part of the tests goes without the checks of all files."""
    python = [BIN / "python", "-m"]
    tests = [*python, "pytest", "--numprocesses", "auto", "--dist", "worksteal", *arguments]
    if arguments:
        return [tests]
    lint = [*python, "ruff", "check"], [*python, "ruff", "format", "--check"]
    return [*lint, [*python, "mypy"], tests]


def test(arguments: list) -> int:
    """Everything that must hold before a change lands."""
    install_bullet()
    for check in checks(arguments):
        print("$", " ".join(map(str, check[2:])), flush=True)
        code = call(check, cwd=HERE)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
