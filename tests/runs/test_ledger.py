"""Finished solves on disk: what determines them, what is read back, what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature, Problem, Solution
from ringfence.runs.config import make_world
from ringfence.runs.ledger import (
    LONGEST,
    Ledger,
    arrays_bytes,
    arrays_hash,
    described,
    from_files,
    key_hash,
    to_files,
    usual_key,
)
from small_worlds import config_of

SPEED = (Feature("speed", "m/s"),)


def behaviour(reward: float = 3.0) -> Behaviour:
    return Behaviour(np.array([[0.5], [1.0]]), np.array([2.0, 1.5]), reward, 0.25, 3.5, 4)


def solution(**changes: Any) -> Solution:
    policy = {"actor/w0": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.array(7.0)}
    return replace(Solution(policy, 0.5, behaviour(), 640), **changes)


def same(one: Behaviour, two: Behaviour) -> bool:
    arrays = [np.array_equal(getattr(one, n), getattr(two, n)) for n in ("features", "visits")]
    numbers = [getattr(one, n) == getattr(two, n) for n in ("reward", "reward_se", "length")]
    return all([*arrays, *numbers, one.episodes == two.episodes])


@pytest.mark.parametrize(
    "given",
    [
        solution(),
        solution(succeeded=behaviour(5.0)),
        solution(pictured=(np.ones((2, 1)), np.zeros((3, 1)))),
        solution(lam=float("inf")),
        solution(behaviour=replace(behaviour(), episodes=None)),
    ],
    ids=["plain", "succeeded", "pictured", "infinite multiplier", "exact"],
)
def test_a_solution_is_read_back_as_it_was(tmp_path: Path, given: Solution) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.put("one", to_files({"seed": [0]}, given))
    found = ledger.get("one")
    assert found is not None
    assert (found.lam, found.env_steps) == (given.lam, given.env_steps)
    assert same(found.behaviour, given.behaviour)
    assert same(found.shown, given.shown)
    assert (found.succeeded is None) == (given.succeeded is None)
    assert {n: (a.dtype, a.tobytes()) for n, a in found.policy.items()} == {
        n: (np.asarray(a).dtype, np.asarray(a).tobytes()) for n, a in given.policy.items()
    }
    assert [p.tolist() for p in found.pictured] == [p.tolist() for p in given.pictured]


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert Ledger(tmp_path).get("nothing") is None


@pytest.mark.parametrize("name", ["solve.json", "arrays.safetensors", "episodes.safetensors"])
def test_a_damaged_entry_is_named(tmp_path: Path, name: str) -> None:
    ledger = Ledger(tmp_path)
    ledger.put("one", to_files({}, solution(pictured=(np.ones((2, 1)),))))
    (tmp_path / "one" / name).write_bytes(b"{")
    with pytest.raises(InvalidInput, match=r"one: it can't be read .*delete it and resume"):
        ledger.get("one")


@pytest.mark.parametrize("name", ["solve.json", "arrays.safetensors"])
def test_an_entry_that_lacks_a_file_is_named(tmp_path: Path, name: str) -> None:
    Ledger(tmp_path).put("one", to_files({}, solution()))
    (tmp_path / "one" / name).unlink()
    with pytest.raises(InvalidInput, match="one: it can't be read"):
        Ledger(tmp_path).get("one")


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Of 100 random bits in each file of an entry; an altered policy is never handed out."""
    ledger, rng = Ledger(tmp_path), np.random.default_rng(0)
    ledger.put("one", to_files({"seed": [0]}, solution(pictured=(np.ones((3, 2)),))))
    files = sorted((tmp_path / "one").iterdir())
    assert len(files) == 4
    for file in files:
        whole = file.read_bytes()
        for place in rng.integers(8 * len(whole), size=100):
            flipped = bytearray(whole)
            flipped[place // 8] ^= 1 << place % 8
            file.write_bytes(bytes(flipped))
            with pytest.raises(InvalidInput, match="delete it and resume"):
                ledger.get("one")
        file.write_bytes(whole)
    assert ledger.get("one") is not None


def test_an_entry_says_what_determined_it(tmp_path: Path) -> None:
    key = {"seed": [0, 1, 2], "task": "goal"}
    Ledger(tmp_path).put("one", to_files(key, solution()))
    assert json.loads((tmp_path / "one" / "solve.json").read_text())["key"] == key


def test_the_same_solution_gives_the_same_bytes() -> None:
    mixed = solution(policy=dict(reversed(solution().policy.items())))
    assert to_files({}, solution()) == to_files({}, mixed)
    again = to_files({}, from_files(to_files({}, solution())))
    assert again == to_files({}, solution())


# What determines a solve -------------------------------------------------------------------------


def problem() -> Problem:
    world = make_world(config_of("grid").world)
    return Problem(
        world.tasks[0], LinearConstraint(world.features, np.ones(2), 1.0), 0.5, None, (0,)
    )


def key_of(p: Problem, **tables: Any) -> str:
    config = config_of("grid", **tables)
    return key_hash(usual_key(described(config.world), described(config.solver), p))


def test_the_same_problem_has_the_same_name() -> None:
    assert key_of(problem()) == key_of(problem())


@pytest.mark.parametrize(
    "changes",
    [
        {"task": make_world(config_of("grid").world).tasks[1]},
        {"constraint": LinearConstraint((Feature("row", "cell"), Feature("col", "cell")),
                                        np.ones(2), 1.0 + 1e-15)},
        {"delta": 0.5 + 1e-15},
        {"start": {"w": np.zeros(1)}},
        {"seed": (0, 1)},
        {"stop_reward": 1.0},
        {"states": np.zeros((1, 2))},
        {"drop_failed": True},
    ],
    ids=lambda c: next(iter(c)),
)  # fmt: skip
def test_whatever_determines_a_solve_is_in_its_name(changes: dict[str, Any]) -> None:
    assert key_of(replace(problem(), **changes)) != key_of(problem())


def test_the_worlds_and_the_solvers_settings_are_in_the_name() -> None:
    names = {
        key_of(problem()),
        key_of(problem(), world={"horizon": 15}),
        key_of(problem(), solver={"temperature": 0.1}),
        key_of(problem(), solver={"kind": "lp"}),
    }
    assert len(names) == 4


def test_numbers_and_arrays_of_one_are_different_arrays() -> None:
    assert arrays_hash({"a": np.array(1.0)}) != arrays_hash({"a": np.array([1.0])})
    two = {"b": np.zeros(2), "a": np.ones(1)}
    assert arrays_bytes(two) == arrays_bytes(dict(reversed(two.items())))


def test_long_settings_stand_in_a_key_as_their_sum() -> None:
    """Else a world of many tasks would stand in the key of each of them."""
    world = config_of("grid").world
    assert described(world) == asdict(world)
    long = replace(world, name="x" * LONGEST)
    assert set(described(long)) == {"kind", "sha256"}
    assert described(long) != described(replace(long, horizon=15))
