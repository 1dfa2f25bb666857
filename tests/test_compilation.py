"""What JAX compiles is kept for the next run, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence import compilation
from ringfence.compilation import keep_compiled

PROGRAM = """
from ringfence.compilation import keep_compiled
keep_compiled()
import jax
import jax.numpy as jnp
from jax._src import monitoring
events = []
monitoring.register_event_listener(lambda name, **_: events.append(name))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
f = jax.jit(lambda x: jnp.tanh(x @ x).sum())
print(float(f(jnp.ones((8, 8)))), sum(name.endswith("cache_hits") for name in events))
"""


def run(environment: dict[str, str]) -> tuple[float, int]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_the_second_run_compiles_nothing(tmp_path: Path) -> None:
    first, hits = run({"RINGFENCE_CACHE": str(tmp_path / "cache")})
    assert hits == 0
    again, hits = run({"RINGFENCE_CACHE": str(tmp_path / "cache")})
    assert hits > 0
    assert again == first


def test_where_it_is_kept(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = keep_compiled(environment)
    assert folder is not None
    assert folder.parent == tmp_path / "ringfence"
    assert folder.stat().st_mode & 0o077 == 0
    assert environment["JAX_COMPILATION_CACHE_DIR"] == str(folder)


def test_another_processor_has_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = keep_compiled({"RINGFENCE_CACHE": str(tmp_path)})
    monkeypatch.setattr(compilation, "_instructions", lambda: "flags: others")
    assert keep_compiled({"RINGFENCE_CACHE": str(tmp_path)}) != one


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"RINGFENCE_CACHE": str(tmp_path / "file" / "cache")}
    assert keep_compiled(environment) is None
    assert "JAX_COMPILATION_CACHE_DIR" not in environment


def test_the_users_own_choice_stands() -> None:
    for choice in ({"RINGFENCE_CACHE": ""}, {"JAX_COMPILATION_CACHE_DIR": "mine"}):
        environment = dict(choice)
        assert keep_compiled(environment) is None
        assert environment == choice
