"""A saved policy as an object: the same actions as in training, light to load, hard to misuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import ringfence
from random_policies import policy_for
from ringfence.deploy.policies import ABOUT, WEIGHTS, to_bytes
from ringfence.disk import sha256, write_document
from ringfence.errors import InvalidInput
from ringfence.solvers.ppo import evaluate
from ringfence.worlds.ant import AntTask
from toy_tasks import FIVE_BY_THREE

TASK = AntTask(horizon=20)
HEAVY = {"jax", "optax", "mujoco", "gymnasium", "scipy", "minari", "matplotlib", "rich"}
LOAD = """
import sys
import ringfence
policy = ringfence.load_policy(sys.argv[1])
print(*policy.act([0.5] * 27))
print(*{name.partition(".")[0] for name in sys.modules})
"""


def saved(folder: Path, task: str = "ant", **changes: object) -> Path:
    """A random policy of the Ant in a folder `policy`."""
    about = {"constraint": "speed <= 0.75", "delta": 20.0, "solver": {"augment": True}}
    place = folder / "policy"
    place.mkdir(parents=True)
    for name, content in to_bytes(
        policy_for(TASK), TASK, {**about, "task": task, **changes}
    ).items():
        (place / name).write_bytes(content)
    return folder


def speed(phi: np.ndarray) -> np.ndarray:
    return phi[:, 2] - 0.1


def test_it_acts_as_in_the_simulator_that_trained_it(tmp_path: Path) -> None:
    policy = ringfence.load_policy(saved(tmp_path))
    (run,) = evaluate(TASK, policy_for(TASK), speed, 1, (3,), deterministic=True)
    raw = [0.0, *speed(run.features)[:-1]]  # of the transition before; 0 at the start
    assert np.ptp(raw) > 0.01
    acted = policy.act(run.observations[:-1], raw)
    assert np.allclose(acted, run.actions, rtol=0, atol=1e-5)
    one = [policy.act(o, r) for o, r in zip(run.observations[:-1], raw, strict=True)]
    assert np.allclose(one, run.actions, rtol=0, atol=1e-5)


def test_a_generator_draws_as_training_does(tmp_path: Path) -> None:
    policy = ringfence.load_policy(saved(tmp_path))
    here = np.zeros((20_000, 27))
    drawn = policy.act(here, rng=np.random.default_rng(0))
    assert np.array_equal(drawn, policy.act(here, rng=np.random.default_rng(0)))
    assert drawn.std(axis=0) == pytest.approx(np.full(8, np.exp(-1.0)), rel=0.05)
    assert drawn.mean(axis=0) == pytest.approx(policy.act(here[0]), abs=0.02)
    wild = policy.act(1e6 * np.ones(27), rng=np.random.default_rng(0))
    assert (np.abs(wild) <= 1).all()


def test_it_is_steered_by_the_constraints_value_if_it_sees_it(tmp_path: Path) -> None:
    policy = ringfence.load_policy(saved(tmp_path / "sees"))
    assert not np.allclose(policy.act(np.ones(27), 0.5), policy.act(np.ones(27)))
    blind = ringfence.load_policy(saved(tmp_path / "blind", solver={"augment": False}))
    assert np.array_equal(blind.act(np.ones(27), 0.5), blind.act(np.ones(27)))


def test_loading_needs_neither_jax_nor_a_simulator(tmp_path: Path) -> None:
    words = [sys.executable, "-c", LOAD, str(saved(tmp_path))]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    actions, modules = out.splitlines()
    assert len(actions.split()) == 8
    assert not HEAVY & set(modules.split())


def test_one_of_several_tasks_is_chosen_by_name(tmp_path: Path) -> None:
    for k, task in enumerate(("north", "east")):
        (saved(tmp_path / task, task) / "policy").rename(tmp_path / f"{k}")
    (tmp_path / "run" / "policy").mkdir(parents=True)
    for k in ("0", "1"):
        (tmp_path / k).rename(tmp_path / "run" / "policy" / k)
    assert ringfence.load_policy(tmp_path / "run", "east").about["task"] == "east"
    with pytest.raises(InvalidInput, match="several policies; there is one for north, east"):
        ringfence.load_policy(tmp_path / "run")
    with pytest.raises(InvalidInput, match="no policy for task 'west'; there is one for north"):
        ringfence.load_policy(tmp_path / "run", "west")


@pytest.mark.parametrize(
    ("observation", "cost_raw", "words"),
    [
        (np.zeros(3), 0.0, r"shape \(3,\); this policy of 'ant' takes \[27\]"),
        (np.zeros((2, 3, 27)), 0.0, r"takes \[27\] or \[n, 27\]"),
        (np.zeros((4, 27)), [0.0, 1.0], r"cost_raw has shape \(2,\)"),
        (np.full(27, np.nan), 0.0, "not finite"),
        (np.zeros(27), np.inf, "not finite"),
    ],
)
def test_what_it_can_not_act_on_is_refused(
    tmp_path: Path, observation: np.ndarray, cost_raw: object, words: str
) -> None:
    policy = ringfence.load_policy(saved(tmp_path))
    with pytest.raises(InvalidInput, match=words):
        policy.act(observation, cost_raw)  # type: ignore[arg-type]


def changed(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Callable[[Path], None]:
    """A policy that was changed on purpose: its sums are right."""

    def harm(place: Path) -> None:
        about = json.loads((place / ABOUT).read_text())
        arrays = dict(safetensors.numpy.load_file(place / WEIGHTS))
        change(about, arrays)
        weights = safetensors.numpy.save(arrays)
        del about["sha256"]
        about["weights_sha256"] = sha256(weights)
        (place / WEIGHTS).write_bytes(weights)
        write_document(place / ABOUT, about)

    return harm


def older(place: Path) -> None:
    changed(lambda about, arrays: about.update(schema=1))(place)


def swapped(about: dict[str, Any], arrays: dict[str, Any]) -> None:
    about["action_low"], about["action_high"] = about["action_high"], about["action_low"]


HARM = [
    (lambda place: (place / ABOUT).unlink(), "no policy in it"),
    (lambda place: (place / ABOUT).write_text("{"), "can't be read"),
    (lambda place: (place / ABOUT).write_text("[]"), "holds no JSON object"),
    (older, "not of schema 3"),
    (changed(swapped), "action_low is above action_high"),
    (changed(lambda about, arrays: about.update(action_low=[0.0])), "shapes don't fit together"),
    (changed(lambda about, arrays: about.update(action_low=["a"] * 8)), "could not convert"),
    (changed(lambda about, arrays: about.update(solver={"augment": "no"})), "augment is 'no'"),
    (changed(lambda about, arrays: arrays["norm/std"].fill(0)), "not above 0"),
    (lambda place: (place / WEIGHTS).unlink(), "can't be read"),
    (lambda place: (place / WEIGHTS).write_bytes(b"x"), "can't be read"),
    (changed(lambda about, arrays: arrays.pop("actor/b0")), "actor/b0"),
    (changed(lambda about, arrays: arrays["actor/b0"].fill(np.nan)), "not all finite"),
]


@pytest.mark.parametrize(("harm", "words"), HARM)
def test_a_damaged_policy_is_refused(tmp_path: Path, harm, words: str) -> None:
    harm(saved(tmp_path) / "policy")
    with pytest.raises(InvalidInput, match=words):
        ringfence.load_policy(tmp_path)


def test_a_policy_of_choices_gives_their_numbers(tmp_path: Path) -> None:
    arrays, place = policy_for(FIVE_BY_THREE), tmp_path / "policy"
    place.mkdir()
    about = {"constraint": "speed <= 0.3", "delta": 5.0, "solver": {"augment": True}}
    for name, content in to_bytes(arrays, FIVE_BY_THREE, about).items():
        (place / name).write_bytes(content)
    policy = ringfence.load_policy(tmp_path)
    (run,) = evaluate(FIVE_BY_THREE, arrays, lambda phi: phi[:, 0], 1, (3,), deterministic=True)
    raw = [0.0, *run.features[:-1, 0]]
    np.testing.assert_array_equal(policy.act(run.observations[:-1], raw), run.actions)
    assert policy.act(run.observations[0]).shape == (2,)
    drawn = policy.act(np.zeros((500, 2)), rng=np.random.default_rng(0))
    assert [sorted(np.unique(column)) for column in drawn.T] == [[0, 1, 2, 3, 4], [0, 1, 2]]


def test_a_flipped_bit_is_noticed_or_without_effect(tmp_path: Path) -> None:
    place, rng = saved(tmp_path) / "policy", np.random.default_rng(0)
    whole, here = ringfence.load_policy(tmp_path), rng.standard_normal((5, 27))
    for name in (ABOUT, WEIGHTS):
        content = (place / name).read_bytes()
        for at in rng.integers(len(content), size=100):
            flipped = bytearray(content)
            flipped[at] ^= 1 << int(rng.integers(8))
            (place / name).write_bytes(flipped)
            try:
                found = ringfence.load_policy(tmp_path)
            except InvalidInput:
                continue
            assert np.array_equal(found.act(here, 0.3), whole.act(here, 0.3))
            assert name == ABOUT
        (place / name).write_bytes(content)
