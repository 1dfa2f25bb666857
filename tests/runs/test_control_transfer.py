from __future__ import annotations

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from small_control import PPO, demos, quiet, small

import own_cart
import ringfence
from ringfence.binomial import binomial_interval
from ringfence.cli.main import main
from ringfence.constraints.linear import LinearConstraint
from ringfence.demos import dataset as demonstrations
from ringfence.demos.dataset import content_hash
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Demonstrations, Feature, Start, TaskDemos, Trajectory
from ringfence.runs import control, control_transfer
from ringfence.runs.control_transfer import (
    FILE,
    Settings,
    TransferConfig,
    create,
    own_task,
    read_task,
    saved_folder,
    summarise,
    violations,
)
from ringfence.runs.control_world import make_tasks
from ringfence.runs.ledger import Ledger
from ringfence.runs.start import START
from ringfence.solvers.ppo import PPOConfig

SPEED = LinearConstraint((Feature("speed", "m/s"),), np.ones(1), 1.0)


def episode(speed: float) -> Trajectory:
    """Three steps at one speed."""
    steps = np.full((3, 1), speed)
    return Trajectory(np.zeros((4, 1)), steps, steps[:, 0], steps, False)


def test_an_episode_violates_if_its_cost_sums_to_more_than_delta() -> None:
    runs = [episode(speed) for speed in (0.5, 1.0, 1.2, 3.0)]
    delta = 3 * np.log1p(0.2) + 1e-9  # the third episode just keeps it
    found = violations("true_", SPEED, runs, delta)
    assert found["true_violating_episodes"] == 1
    assert found["true_violation_chance"] == list(binomial_interval(1, 4))
    assert found["true_cost"] == pytest.approx(3 * (np.log1p(0.2) + np.log1p(2.0)) / 4)
    assert found["true_raw"] == pytest.approx(3 * (-0.5 + 0.0 + 0.2 + 2.0) / 4)
    assert violations("", SPEED, runs, 0.0)["violating_episodes"] == 2


def learned(run: Path, speeds: tuple[float, ...]) -> Path:
    """A run that learned speed <= 0.65 from demonstrations at these speeds, the last held out."""
    *train, heldout = map(episode, speeds)
    demos = Demonstrations((TaskDemos("cart", tuple(train), (heldout,)),), SPEED.features, {})
    demonstrations.save(demos, run / "demos")
    (run / "config.toml").write_text("")
    c = LinearConstraint(SPEED.features, np.ones(1), 0.65)
    source = {"demonstrations_sha256": content_hash(demos)}
    ringfence.save(c, run / "constraint", delta=86.0, provenance=source)
    return run / "constraint"


def transferred(folder: Path, constraint: Path, speeds: list[float]) -> dict:
    """The summary of a transfer to the cart whose truth is speed <= 0.75."""
    text = own_cart.TOML.replace("steps = 50", 'steps = 50\ntruth = "speed <= 0.75"', 1)
    world, ppo = read_task(str(own_cart.write(folder, text)))
    create(folder / "out", TransferConfig("", 0, world, Settings(86.0), ppo), constraint)
    config = control_transfer.read(folder / "out" / FILE)
    (task,) = make_tasks(config.world)
    return summarise(
        config, task, ringfence.load(constraint).constraint, list(map(episode, speeds))
    )


def test_true_violations_are_counted_against_the_costliest_demonstration(tmp_path: Path) -> None:
    constraint = learned(tmp_path / "run", (0.6, 0.7, 0.7))
    found = transferred(tmp_path, constraint, [0.80] * 9 + [0.70])
    assert found["violating_episodes"] == 0
    assert found["true_violating_episodes"] == 9
    assert found["true_violation_chance"] == list(binomial_interval(9, 10))
    assert found["true_limit"] == 0.0
    assert found["true_limit_is"] == "the most that a demonstration costs"


def test_held_out_demonstrations_show_what_is_allowed_too(tmp_path: Path) -> None:
    found = transferred(tmp_path, learned(tmp_path / "run", (0.6, 0.78, 0.79)), [0.78, 0.80])
    assert found["true_limit"] == pytest.approx(3 * np.log1p(0.79 - 0.75))
    assert found["true_violating_episodes"] == 1


@pytest.mark.parametrize("others", [False, True])
def test_without_its_own_demonstrations_any_true_cost_counts(tmp_path: Path, others: bool) -> None:
    constraint, elsewhere = learned(tmp_path / "run", (0.6, 0.79, 0.7)), tmp_path / "elsewhere"
    if others:
        learned(elsewhere, (0.9, 0.9))
        shutil.rmtree(elsewhere / "constraint")
    shutil.copytree(constraint, elsewhere / "constraint")
    found = transferred(tmp_path, elsewhere / "constraint", [0.76, 0.70])
    assert found["true_violating_episodes"] == 1
    assert found["true_limit"] == 0.0
    assert "any true cost counts" in found["true_limit_is"]


def test_a_task_is_one_of_a_file(tmp_path: Path) -> None:
    two = 'steps = 50\ntasks = [{ name = "a" }, { name = "b", kwargs = { pay = 2.0 } }]'
    path = own_cart.write(tmp_path, own_cart.TOML.replace("steps = 50", two, 1))
    world, ppo = read_task(f"{path}:b")
    assert [t.kwargs for t in world.tasks] == [{"pay": 2.0}]
    assert ppo.env_steps == 2048
    with pytest.raises(InvalidInput, match="choose one with --task"):
        read_task(str(path))
    with pytest.raises(InvalidInput, match="no task 'c'; it has a, b"):
        read_task(f"{path}:c")


@pytest.mark.parametrize(("delta", "episodes"), [(-1.0, 100), (float("inf"), 100), (1.0, 1)])
def test_impossible_settings_are_refused(delta: float, episodes: int) -> None:
    with pytest.raises(InvalidInput):
        Settings(delta, episodes)


# A run's own task ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished game of one task."""
    run = tmp_path_factory.mktemp("own") / "run"
    control.create(run, small(), demos())
    control.drive(run, quiet)
    return run


def trained_on(run: Path, out: Path, clearance: float, ppo: PPOConfig = PPO) -> tuple[Path, Start]:
    """A transfer to the run's own task, as far as its creation."""
    world, _, start = own_task(run, None)
    settings = Settings(1.0, 2, clearance=clearance)
    config = TransferConfig("", 0, world, settings, ppo)
    create(out, config, saved_folder(run), start)
    return out, start


def test_the_own_task_goes_on_from_the_selected_policy(played: Path, tmp_path: Path) -> None:
    still = replace(PPO, learning_rate=0.0, critic_first=0)
    out, start = trained_on(played, tmp_path / "out", 0.0, still)
    summary = control_transfer.drive(out, quiet)
    policy = safetensors.numpy.load_file(out / "policy" / "policy.safetensors")
    # the first layer follows the input statistics, which go on
    for name in ("actor/w1", "actor/b1", "actor/log_std"):
        assert policy[name].tobytes() == np.asarray(start[name]).tobytes()
    game = json.loads((played / "summary.json").read_text())
    best = game["iterations"][game["selected"] - 1]
    assert summary["constraint"]["description"] == best["constraint"]["description"]
    assert summary["task"] == "ant"
    assert own_task(played, "ant")[2].keys() == start.keys()


def test_the_clearance_is_kept_in_training_and_not_counted(played: Path, tmp_path: Path) -> None:
    """The limit is one that no Ant keeps at such a clearance, so the multiplier must rise."""
    learned, _ = trained_on(played, tmp_path / "learned", 0.0)
    further, _ = trained_on(played, tmp_path / "further", 100.0)
    plain, kept = (control_transfer.drive(out, quiet) for out in (learned, further))
    assert kept["clearance"] == 100.0
    assert kept["constraint"] == plain["constraint"]
    assert kept["lam"] > plain["lam"]
    assert kept["cost"] < 30 * np.log1p(10.0)  # by the learned one; by that moved 138 a step of 30
    assert ringfence.load_policy(further).about["clearance"] == 100.0


def test_an_error_in_training_names_the_task(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = trained_on(played, tmp_path / "out", 0.0)

    def fail(self: object, problem: object) -> None:
        raise SolverFailed("reward is nan")

    monkeypatch.setattr("ringfence.solvers.ppo.PPO.solve", fail)
    with pytest.raises(SolverFailed, match=r"^ant: reward is nan"):
        control_transfer.drive(out, quiet)


def test_another_start_than_the_configurations_is_refused(played: Path, tmp_path: Path) -> None:
    out, start = trained_on(played, tmp_path / "out", 0.0)
    other = {name: np.asarray(np.asarray(a) * 2) for name, a in start.items()}
    safetensors.numpy.save_file(other, out / START)
    with pytest.raises(InvalidInput, match=r"not the policy that it began with"):
        control_transfer.drive(out, quiet)
    (out / START).unlink()
    with pytest.raises(InvalidInput, match=START):
        control_transfer.drive(out, quiet)


def test_what_has_no_own_task_is_refused(played: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no task 'walk'; it has ant"):
        own_task(played, "walk")
    copy = tmp_path / "run"
    shutil.copytree(played, copy)
    summary = json.loads((copy / "summary.json").read_text())
    for changes, words in (
        ({"tasks": ["a", "b"]}, r"several tasks \(a, b\); choose one with --task NAME"),
        ({"outcome": "no constraint needed"}, "no constraint was needed"),
    ):
        (copy / "summary.json").write_text(json.dumps({**summary, **changes}))
        with pytest.raises(InvalidInput, match=words):
            own_task(copy, None)
    (copy / "summary.json").write_text(json.dumps(summary))
    shutil.rmtree(copy / "ledger")
    with pytest.raises(InvalidInput, match="not in its ledger"):
        own_task(copy, None)
    (copy / "summary.json").unlink()
    with pytest.raises(InvalidInput, match="not finished; 'ringfence resume"):
        own_task(copy, None)


def test_a_run_is_trained_on_by_the_command(played: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    words = ["--clearance", "0.1", "--steps", "256", "--episodes", "2", "--out", str(out)]
    assert main(["transfer", str(played), *words]) == 0
    said = capsys.readouterr().out
    assert "with a clearance of 0.1, 2 episodes" in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["env_steps"] == 256
    assert main(["transfer", str(played), "--goal", "1,1"]) == 2
    assert "--goal is for maps" in capsys.readouterr().err
    assert main(["transfer", str(played), "--clearance", "-1", "--out", str(out / "x")]) == 2
    assert "clearance must be at least 0" in capsys.readouterr().err
    assert not (out / "x").exists()


def test_a_policy_is_told_of_a_clearance_without_training(played: Path, tmp_path: Path) -> None:
    """It stays the same to the byte; what it does depends on what it is told."""
    world, _, start = own_task(played, None)
    sees = np.array(start["actor/w0"])
    sees[-1] = 1.0  # its last input is the constraint's value; so short a game left that at 0
    raw = []
    for clearance in (0.0, 0.0, 5.0):
        out = tmp_path / str(len(raw))
        config = TransferConfig("", 0, world, Settings(1.0, 2, None, clearance, train=False), PPO)
        create(out, config, saved_folder(played), {**start, "actor/w0": sees})
        summary = control_transfer.drive(out, quiet)
        assert (summary["env_steps"], summary["lam"]) == (0, None)
        assert (out / "policy" / "policy.safetensors").read_bytes() == (out / START).read_bytes()
        raw.append(summary["raw"])
    assert raw[0] == raw[1] != raw[2]


def test_what_can_not_be_told_is_refused(played: Path, tmp_path: Path, capsys) -> None:
    task = ["--task", str(own_cart.write(tmp_path)), "--steps", "0"]
    assert main(["transfer", str(played), *task, "--out", str(tmp_path / "out")]) == 2
    assert "--steps 0 needs a policy that there is" in capsys.readouterr().err
    world, _, start = own_task(played, None)
    blind = replace(PPO, augment=False)
    config = TransferConfig("", 0, world, Settings(1.0, 2, clearance=0.1, train=False), blind)
    with pytest.raises(InvalidInput, match="does not see the constraint's value"):
        create(tmp_path / "out", config, saved_folder(played), start)


def test_a_game_of_two_tasks_hands_back_two_policies(tmp_path: Path, capsys) -> None:
    two = 'steps = 50\ntasks = [{ name = "a" }, { name = "b", kwargs = { pay = 2.0 } }]'
    text = own_cart.TOML.replace("steps = 50", two, 1).replace(
        "[game]", '[game]\nmethod = "mt-icl"'
    )
    text = text.replace('path = "logs.npz"', 'paths = { a = "logs.npz", b = "logs.npz" }')
    path, run = own_cart.write(tmp_path, text, rewards=None), tmp_path / "run"
    assert main(["learn", str(path), "--out", str(run)]) == 0
    summary = json.loads((run / "summary.json").read_text())
    best = summary["iterations"][summary["selected"] - 1]
    for k, name in enumerate(("a", "b")):
        solution = Ledger(run / "ledger").get(best["ledger"][k])
        assert solution is not None
        policy = ringfence.load_policy(run, name)
        assert policy.about["constraint"] == best["constraint"]["description"]
        for key, array in solution.policy.items():
            assert policy.arrays[key].tobytes() == np.asarray(array).tobytes()
        assert policy.act([0.5]).shape == (1,)
    code = re.search(r'id="use".*?<pre[^>]*>(.*?)</pre>', (run / "report.html").read_text(), re.S)
    assert code is not None
    names: dict = {"env": own_cart.make_cart()}
    exec(html.unescape(code[1]).replace("RUN", str(run)), names)  # what the page says works
    assert np.array_equal(
        names["action"], ringfence.load_policy(run, "a").act(names["observation"])
    )
    assert main(["transfer", str(run), "--steps", "0", "--out", str(tmp_path / "t")]) == 2
    assert "several tasks (a, b); choose one with --task NAME" in capsys.readouterr().err
    words = ["--task", "b", "--steps", "0", "--episodes", "2", "--out", str(tmp_path / "t")]
    assert main(["transfer", str(run), *words]) == 0
    assert ringfence.load_policy(tmp_path / "t").about["task"] == "b"
