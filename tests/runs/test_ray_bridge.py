"""The process between driver and Ray: what it makes of Ray's errors. (The rest: on clusters.)"""

from __future__ import annotations

import socket
import tempfile
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ringfence.runs.ray_bridge import Bridge, first_line, heard, is_there, last_line, refusal, tell


class RayError(Exception):
    """And the kinds of it that are told apart."""


KINDS: dict[str, type[RayError]] = {
    name: type(name, (RayError,), {})
    for name in ("OutOfMemoryError", "WorkerCrashedError", "NodeDiedError", "ObjectLostError")
}


class Ray:
    """Of which only `get` is asked."""

    exceptions = SimpleNamespace(RayError=RayError, **KINDS)

    def get(self, ref: Any) -> bytes:
        if isinstance(ref, Exception):
            raise ref
        return bytes(ref)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"parcel", {"what": "done"}),
        (KINDS["OutOfMemoryError"](), {"what": "lost", "why": "memory"}),
        (KINDS["WorkerCrashedError"](), {"what": "lost", "why": "process"}),
        (KINDS["NodeDiedError"](), {"what": "lost", "why": "node"}),
        (KINDS["ObjectLostError"](), {"what": "lost", "why": "node"}),
        (RayError("many lines\nand the reason\n"), {"what": "failed", "why": "and the reason"}),
    ],
)
def test_what_becomes_of_a_solve_is_told_by_its_kind(answer: Any, told: dict[str, str]) -> None:
    ours, theirs = Pipe()
    bridge = Bridge(theirs, {"versions": {}})
    bridge.ray = Ray()
    bridge.settle(answer, 4)
    head, body = heard(ours)
    assert head == {**told, "number": 4}
    assert body == (answer if isinstance(answer, bytes) else b"")


def test_a_message_is_a_head_and_bytes() -> None:
    ours, theirs = Pipe()
    tell(theirs, {"what": "letter"}, bytes(range(256)))
    assert heard(ours) == ({"what": "letter"}, bytes(range(256)))


def test_an_error_is_told_in_one_line() -> None:
    problem = ValueError("\n the first \n the last \n")
    assert first_line(problem) == "ValueError: the first"
    assert last_line(problem) == "the last"
    assert last_line(ValueError()) == "ValueError"


def test_a_token_that_is_wrong_or_missing_is_told_in_one_line() -> None:
    missing = type("AuthenticationError", (Exception,), {})("No token was found. Ensure that ..")
    for problem in (ConnectionError("ray client connection timeout\nmore"), missing):
        told = refusal(problem)
        assert told.startswith(
            first_line(problem).partition(". ")[0] + "; if the cluster has a token"
        )
        assert "RAY_AUTH_MODE=token" in told
        assert "\n" not in told
    assert refusal(ValueError("other")) == "ValueError: other"


def test_a_cluster_that_was_killed_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would wait for it for minutes."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert not is_there()
    (tmp_path / "ray").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}\n")
        assert is_there()
    assert not is_there()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert is_there()
