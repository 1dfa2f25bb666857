"""`ringfence demos check my.toml` on somebody's cart, and the same through `learn`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_control import quiet, result

import own_cart
import ringfence
from ringfence.cli.main import main
from ringfence.runs import control
from ringfence.runs.control_config import read_user
from ringfence.runs.own_check import Examined, examine


def of(path: Path) -> Examined:
    return examine(read_user(path, "", 0), path.parent)


def words(examined: Examined, where: str) -> str:
    return "\n".join(str(f) for f in examined.findings if f.where.startswith(where))


def test_good_logs_pass_every_check(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path))
    assert {f.severity for f in found.findings} == {"ok"}
    assert "5 of 8 episodes, all the same" in words(found, "replay")
    assert "the same" in words(found, "rewards")
    assert "look saturated" in words(found, "saturation")
    assert found.demos is not None
    (task,) = found.demos.tasks
    assert (len(task.train), len(task.heldout)) == (6, 2)
    assert [t.seed for t in task.train] == list(range(6))


@pytest.mark.parametrize("given", ["info", "column", "function", "replay"])
def test_features_are_the_same_wherever_they_come_from(given: str, tmp_path: Path) -> None:
    good = own_cart.arrays()
    text, changes = own_cart.TOML, {"info/speed": None}
    if given == "info":
        changes = {}
    elif given == "column":
        text = text.replace('unit = "m/s"', 'unit = "m/s", column = 0')
    elif given == "function":
        text = text.replace("[demos]", 'feature_function = "own_cart:square"\n\n[demos]')
    found = of(own_cart.write(tmp_path, text, **changes))
    assert found.demos is not None, found.errors
    phi = np.concatenate([t.features[:, 0] for _, t in found.demos.tasks[0].labelled])
    expected = good["info/speed"] ** 2 if given == "function" else good["info/speed"]
    np.testing.assert_allclose(phi, expected, rtol=1e-6)


def test_missing_rewards_are_recomputed_and_said(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, rewards=None))
    assert "8 of 8 episodes had none: recomputed" in words(found, "rewards")
    assert found.demos is not None
    rewards = np.concatenate([t.rewards for _, t in found.demos.tasks[0].labelled])
    np.testing.assert_allclose(rewards, own_cart.arrays()["rewards"])


def test_a_reward_function_or_wrapper_makes_another_task(tmp_path: Path) -> None:
    for way in ('reward = "own_cart:slowly"', 'wrapper = "own_cart:half"', "kwargs = {pay = 3.0}"):
        task = f"steps = 50\ntasks = [{{ name = 'a', {way} }}]"
        path = own_cart.write(tmp_path, own_cart.TOML.replace("steps = 50", task, 1), rewards=None)
        found = of(path)
        assert found.demos is not None, found.errors
        share = {"reward": -1.0, "wrapper": 0.5, "kwargs": 3.0}[way.split()[0]]
        (t, *_) = found.demos.tasks[0].train
        np.testing.assert_allclose(t.rewards, share * t.features[:, 0], rtol=1e-6)


def test_logs_without_seeds_are_said_to_be_not_replayable(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, seeds=None))
    assert "not replayable: no seed" in words(found, "replay")
    assert "taken as logged" in words(found, "rewards")
    assert found.demos is not None


def test_an_environment_that_is_not_deterministic_is_not_replayed(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, own_cart.TOML.replace("make_cart", "Shaky")))
    assert "not deterministic" in words(found, "environment")
    assert "nothing can be replayed" in words(found, "replay")
    assert found.demos is not None


def test_a_replay_that_goes_another_way_is_a_warning(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, seeds=np.arange(8) + 100))
    assert words(found, "replay").startswith("warning")
    assert "observation 0 differs" in words(found, "replay")


def test_contaminated_cut_and_unsaturated_logs_are_named(tmp_path: Path) -> None:
    paces = [own_cart.LIMIT] * 8
    paces[2] = 1.6
    found = of(own_cart.write(tmp_path, **own_cart.arrays(paces)))
    assert "may have ignored the constraint" in words(found, "own_cart:make_cart, 2")
    text = own_cart.TOML.replace("steps = 50", "steps = 60", 1)
    assert "stop before 60 steps" in words(of(own_cart.write(tmp_path, text)), "lengths")
    slow = own_cart.arrays(np.linspace(0.2, 0.7, 8)[[3, 0, 6, 1, 5, 2, 7, 4]])
    assert "don't look saturated" in words(of(own_cart.write(tmp_path, **slow)), "saturation")


def test_tasks_with_logs_of_their_own_make_one_set(tmp_path: Path) -> None:
    text = own_cart.TOML.replace(
        "steps = 50", 'steps = 50\ntasks = [{ name = "a" }, { name = "b" }]', 1
    )
    text = text.replace('path = "logs.npz"', 'paths = { a = "logs.npz", b = "logs.npz" }')
    text = text.replace("iterations = 1", 'iterations = 1\nmethod = "mt-icl"')
    found = of(own_cart.write(tmp_path, text))
    assert found.demos is not None, found.errors
    assert [d.task for d in found.demos.tasks] == ["a", "b"]
    assert "2 tasks take the same steps" in words(found, "dynamics")


def test_a_python_call_learns_what_the_command_does(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path)
    assert {f.severity for f in ringfence.check_file(path)} == {"ok"}
    c = ringfence.learn_file(path, tmp_path / "run")
    assert c is not None
    assert c.delta == pytest.approx(0.5)  # the stated budget, used up under the tightest limit
    assert c.describe().startswith("speed <= 0.68")


def test_a_killed_game_in_ones_own_environment_ends_in_the_same_bytes(tmp_path: Path) -> None:
    task = 'steps = 50\ntasks = [{ name = "a", reward = "own_cart:slowly" }]'
    text = own_cart.TOML.replace("steps = 50", task, 1) + "checkpoint_every = 2\n"
    path = own_cart.write(tmp_path, text, rewards=None)
    config, given = read_user(path, "", 0), of(path).demos
    assert given is not None
    for name in ("whole", "killed"):
        control.create(tmp_path / name, config, given)

    def kill(event: dict) -> None:
        if event["event"] == "update" and event["update"] == 5:
            raise KeyboardInterrupt

    control.drive(tmp_path / "whole", quiet)
    with pytest.raises(KeyboardInterrupt):
        control.drive(tmp_path / "killed", kill)
    control.drive(tmp_path / "killed", quiet)
    assert result(tmp_path / "whole") == result(tmp_path / "killed")


def test_a_learned_limit_travels_to_a_new_task(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = own_cart.TOML.replace("expert_budget = 0.5", "expert_budget = 0.0")
    own_cart.write(tmp_path, text)
    assert main(["demos", "check", "my.toml"]) == 0
    assert "my.toml: usable, 0 remarks" in capsys.readouterr().out
    assert main(["learn", "my.toml", "--out", "run"]) == 0
    assert "speed <= 0.74" in capsys.readouterr().out
    new = text.replace("steps = 50", "steps = 50\ntruth = 'speed <= 0.75'\n"
                       "tasks = [{ name = 'slow', reward = 'own_cart:slowly' }]", 1)  # fmt: skip
    (tmp_path / "new.toml").write_text(new)
    words = ["transfer", "run", "--task", "new.toml", "--episodes", "12", "--out", "slow"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "slow under speed <= 0.74" in said
    assert "12 episodes exceed the limit: their chance is" in said
    assert "true cost (speed <= 0.75)" in said
    assert "(limit 0: the most that a demonstration costs)" in said
    summary = (tmp_path / "slow" / "summary.json").read_bytes()
    (tmp_path / "slow" / "summary.json").unlink()
    assert main(["resume", "slow"]) == 0
    assert (tmp_path / "slow" / "summary.json").read_bytes() == summary
    assert main(words) == 2
