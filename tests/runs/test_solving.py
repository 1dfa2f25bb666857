"""One problem on its own: what is asked for, what is refused, what is counted, what a kill leaves.

`ringfence solve` and `transfer` on disk, on maps, on the Ant's floor and with trained policies.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import safetensors.numpy

import own_cart
import ringfence
from random_policies import policy_for
from ringfence import api
from ringfence.binomial import binomial_interval
from ringfence.constraints import constraint_files
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.demos import dataset
from ringfence.disk import read_json
from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed
from ringfence.objects import Constraint, Demonstrations, Feature, TaskDemos, Trajectory
from ringfence.runs import config as configs
from ringfence.runs import counting, problem, solving
from ringfence.runs.config import make_world
from ringfence.runs.counting import violations
from ringfence.runs.folder import only_driver
from ringfence.runs.problem import ProblemTable, Single, TaskTable
from ringfence.solvers.ppo import PPO as PPOSolver
from ringfence.worlds.finite import NOT_STORED
from saved_constraints import random_network
from small_worlds import GYM, PPO, STEPS, config_of, demos_of, once, result

Finished = Callable[[str], Path]
UPDATES = 4
SOLVER = {**PPO, "env_steps": UPDATES * 16 * 16}
WORLD = {**GYM, "truth": ""}
CART = configs.tagged("test", "world", WORLD)
SPEED = LinearConstraint((Feature("speed", "m/s"),), np.ones(1), 1.0)
LIMIT = parse_inequality("speed <= 0.5", SPEED.features)


def cart(limit: float = 1.0, seed: int = 0, **solver: Any) -> Single:
    """A training on the cart, of four updates."""
    table = configs.tagged("test", "solver", {**SOLVER, **solver})
    return Single("test", seed, CART, TaskTable(), ProblemTable(limit, episodes=2), table)


def grid(task: str = "0", limit: float = 0.0, **solver: Any) -> Single:
    table = configs.tagged("test", "solver", {"kind": "soft", **solver})
    return Single("test", 0, config_of("grid").world, TaskTable(task), ProblemTable(limit), table)


def solve(out: Path, asked: Single, c: Constraint, **more: Any) -> dict[str, Any]:
    solving.create(out, asked, c, **more)
    return solving.drive(out)


def summary_of(folder: Path) -> dict[str, Any]:
    return read_json(folder / "summary.json")


@pytest.fixture(scope="session")
def trained(shared: Path) -> Path:
    """A finished training on the cart: for reading only."""
    return once(shared, "trained-cart", lambda out: solve(out, cart(), LIMIT))


# What is asked for -------------------------------------------------------------------------------


def test_a_configuration_reads_back(tmp_path: Path) -> None:
    new = TaskTable(spec={"start": [1, 0], "goal": [0, 3]})
    for n, one in enumerate((cart(), grid("goal (3,3)"), replace(grid(), task=new))):
        c, _ = problem.read_constraint("none", make_world(one.world))
        solving.create(tmp_path / str(n), one, c)
        assert problem.read(tmp_path / str(n)) == one


def test_a_saved_inequality_is_solved_under_to_the_last_digit(tmp_path: Path) -> None:
    world = make_world(config_of("ant").world)
    c = parse_inequality(f"{1 / 3!r} x - 1e-7 y <= {2 / 3!r}", world.features)
    ringfence.save(c, tmp_path / "saved", delta=7.5)
    again, delta = problem.read_constraint(str(tmp_path / "saved"), world)
    assert isinstance(again, LinearConstraint)
    assert again.weights.tobytes() == c.weights.tobytes()
    assert (again.offset, delta) == (c.offset, 7.5)
    (tmp_path / "run").mkdir()
    shutil.copytree(tmp_path / "saved", tmp_path / "run" / "constraint")
    assert problem.read_constraint(str(tmp_path / "run"), world)[0].describe() == c.describe()


@pytest.mark.parametrize(
    ("c", "words"),
    [
        (LinearConstraint((Feature("speed", "ft/s"),), np.ones(1), 1.0), "in ft/s, this world in"),
        (LinearConstraint((Feature("height", "m"),), np.ones(1), 1.0), "a constraint on height"),
        (random_network(), "a constraint on .*, this world has speed"),
    ],
)
def test_a_constraint_of_other_features_is_refused(
    tmp_path: Path, c: Constraint, words: str
) -> None:
    ringfence.save(c, tmp_path / "saved", delta=1.0)
    with pytest.raises(InvalidInput, match=words):
        api.solve(WORLD, tmp_path / "saved", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_table_of_another_map_is_refused(finished: Finished) -> None:
    world = make_world(replace(config_of("grid").world, map=("S.0", "...")))
    with pytest.raises(InvalidInput, match="4 x 4 cells, this world has 2 x 3"):
        problem.read_constraint(str(finished("grid")), world)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("height <= 1", "no feature 'height'; features are speed"),
        ("truth", "has none of its own; state one"),
        ("nowhere", "nowhere"),
    ],
)
def test_a_constraint_that_there_is_not_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        problem.read_constraint(spec, make_world(CART))


def test_the_truth_is_a_maps_walls_or_the_stated_inequality() -> None:
    world = make_world(config_of("grid").world)
    walls, limit = problem.read_constraint("truth", world)
    assert (walls.describe().endswith("row 0-2 x col 2"), limit) == (True, 0.0)
    stated, _ = problem.read_constraint("truth", make_world(CART), "speed <= 0.7")
    assert stated.describe() == parse_inequality("speed <= 0.7", SPEED.features).describe()
    free, _ = problem.read_constraint("none", world)
    assert not free.cost(np.full((1, 2), 9.0)).any()


@pytest.mark.parametrize(("word", "name"), [("1", "goal (3,3)"), ("goal (0,3)", "goal (0,3)")])
def test_a_task_is_found_by_its_name_or_number(word: str, name: str) -> None:
    world = make_world(config_of("grid").world)
    assert problem.find_task(world, TaskTable(word)).name == name
    with pytest.raises(InvalidInput, match=r"use 0-1 or one of 'goal \(0,3\)', 'goal \(3,3\)'"):
        problem.find_task(world, TaskTable("2"))


@pytest.mark.parametrize("delta", [-1.0, float("inf"), float("nan")])
def test_impossible_limits_are_refused(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        ProblemTable(delta)
    with pytest.raises(InvalidInput, match="episodes"):
        ProblemTable(1.0, episodes=1)


@pytest.mark.parametrize("clearance", [-1.0, float("nan")])
def test_an_impossible_clearance_is_refused_before_anything_is_written(
    tmp_path: Path, clearance: float
) -> None:
    asked = replace(cart(), problem=ProblemTable(1.0, clearance))
    with pytest.raises(InvalidInput, match="clearance must be at least 0"):
        solving.create(tmp_path / "out", asked, LIMIT)
    assert list(tmp_path.iterdir()) == []


def test_demonstrations_are_starts(tmp_path: Path) -> None:
    """Training episodes may begin at the Ant's demonstrated states; these are stored beside."""
    dataset.save(demos_of("ant"), tmp_path / "demos")
    ant: Any = make_world(config_of("ant").world).tasks[0]
    states = np.concatenate([ant.states_of(t) for t in demos_of("ant").tasks[0].train])
    asked = {**PPO, "env_steps": 256, "start_share": 0.5}
    world, out = {"kind": "ant", "steps": STEPS}, tmp_path / "out"
    with pytest.raises(InvalidInput, match="start_share needs states"):
        api.solve(world, "none", solver=asked, out=out)
    assert not out.exists()
    starts = tmp_path / "demos"
    done = api.solve(world, "none", solver=asked, episodes=2, starts=starts, out=out)
    stored = safetensors.numpy.load_file(done.folder / solving.STATES)["states"]
    np.testing.assert_array_equal(stored, states)
    (done.folder / "summary.json").unlink()
    (done.folder / solving.STATES).unlink()
    with pytest.raises(InvalidInput, match=r"states\.safetensors is missing"):
        solving.drive(done.folder)


# A training --------------------------------------------------------------------------------------


def test_summary_and_curves_tell_the_same_course(trained: Path) -> None:
    summary = summary_of(trained)
    rows = list(csv.DictReader((trained / "curves.csv").read_text().splitlines()))
    assert len(rows) == UPDATES
    assert summary["env_steps"] == int(rows[-1]["env_steps"]) == SOLVER["env_steps"]
    assert summary["lam"] == pytest.approx(float(rows[-1]["lam"]))
    assert summary["stochastic"]["length"] == STEPS
    for kind in ("stochastic", "deterministic"):
        assert summary[kind]["episodes"] == 2
        assert summary[kind]["true_cost"] >= 0.0
    assert summary["versions"]["gymnasium"] == gymnasium.__version__
    # counted afterwards, and against no truth where none is known
    assert summary["episodes"] == 2
    assert summary["violation_chance"] == list(binomial_interval(summary["violating_episodes"], 2))
    assert (summary["truth"], summary["true_cost"], summary["covered"]) == (None, None, None)


def test_curves_read_back(trained: Path, tmp_path: Path) -> None:
    curves = counting.read_curves(trained / "curves.csv")
    assert curves["update"].tolist() == [1, 2, 3, 4]
    assert np.isfinite(curves["cost"]).any()
    # where no episode ended, there is nothing to say of any
    written = counting.curves([{"update": 1, "reward": None}, {"update": 2, "reward": 0.1}])
    (tmp_path / "curves.csv").write_bytes(written)
    assert np.isnan(counting.read_curves(tmp_path / "curves.csv")["reward"]).tolist() == [
        True,
        False,
    ]


def test_the_policy_acts_and_some_episodes_are_kept_for_pictures(trained: Path) -> None:
    policy = ringfence.load_policy(trained)
    assert policy.act([0.5], 0.1).shape == (1,)
    assert policy.about["constraint"] == LIMIT.describe()
    episodes = safetensors.numpy.load_file(trained / "episodes.safetensors")
    assert all(e.shape[1:] == (1,) and np.isfinite(e).all() for e in episodes.values())
    assert episodes


KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.runs.solving import drive

def shoot(record):
    if record["update"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)

drive(Path(sys.argv[1]), on_record=shoot)
"""


def kill(out: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(out)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -9
    assert not (out / "summary.json").exists()


def test_a_killed_training_resumes_to_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    solving.create(tmp_path / "out", cart(), LIMIT)
    kill(tmp_path / "out")
    solving.drive(tmp_path / "out")
    assert result(tmp_path / "out") == result(trained)


class Stopped(Exception):
    """In the place of a kill, in this process."""


def stop_at(update: int) -> Callable[[dict[str, Any]], None]:
    def stop(record: dict[str, Any]) -> None:
        if record["update"] == update:
            raise Stopped

    return stop


@pytest.mark.parametrize("begun", [False, True], ids=["from nothing", "from a policy"])
def test_a_training_stopped_after_each_update_ends_in_the_same_bytes(
    trained: Path, tmp_path: Path, begun: bool
) -> None:
    start = ringfence.load_policy(trained).arrays if begun else None
    out = tmp_path / "out"
    solving.create(out, cart(), LIMIT, start=start)
    for update in range(1, UPDATES + 1):
        with pytest.raises(Stopped):
            solving.drive(out, on_record=stop_at(update))
    solving.drive(out)
    if begun:
        solve(tmp_path / "whole", cart(), LIMIT, start=start)
    whole = result(tmp_path / "whole" if begun else trained)
    assert result(out) == whole
    assert (whole["policy/policy.safetensors"] != result(trained)["policy/policy.safetensors"]) == (
        begun
    )


def test_a_policy_is_trained_on_with_its_critics_and_multiplier(
    trained: Path, tmp_path: Path
) -> None:
    start, out = ringfence.load_policy(trained).arrays, tmp_path / "out"
    solve(out, cart(learning_rate=1e-12, fixed_lam=0.3), LIMIT, start=start)
    after = ringfence.load_policy(out).arrays
    # the first layers follow the input statistics, which go on
    for name in ("actor/w1", "actor/log_std", "multiplier/level"):
        np.testing.assert_allclose(after[name], start[name], atol=1e-8)
    values = [a["critic/w1"] * a["critic/scale"][1] for a in (start, after)]  # in the old units
    np.testing.assert_allclose(*values, rtol=1e-4)
    assert after["norm/count"] > start["norm/count"] > 0
    other = {name: np.asarray(np.asarray(a) * 2) for name, a in start.items()}
    safetensors.numpy.save_file(other, out / solving.START)
    (out / "summary.json").unlink()
    with pytest.raises(InvalidInput, match=r"start\.safetensors: not what solve\.toml names"):
        solving.drive(out)
    (out / solving.START).write_bytes(b"torn")
    with pytest.raises(InvalidInput, match=r"start\.safetensors: not what solve\.toml names"):
        solving.drive(out)


def test_a_policy_of_other_shapes_is_refused_before_anything_is_written(
    trained: Path, tmp_path: Path
) -> None:
    start = ringfence.load_policy(trained).arrays
    with pytest.raises(InvalidInput, match=r"actor/w0 has shape \(2, 16\), not \(2, 8\)"):
        solving.create(tmp_path / "out", cart(hidden=[8]), LIMIT, start=start)
    assert list(tmp_path.iterdir()) == []


def test_only_one_process_drives_a_training(tmp_path: Path) -> None:
    solving.create(tmp_path / "out", cart(), LIMIT)
    with only_driver(tmp_path / "out"), pytest.raises(InvalidInput, match="another process"):
        solving.drive(tmp_path / "out")


def test_a_finished_training_is_not_trained_again(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PPOSolver, "train", None)
    assert solving.drive(trained) == summary_of(trained)
    with pytest.raises(InvalidInput, match="exists already and is finished; choose another --out"):
        solving.create(trained, cart(), LIMIT)


@pytest.mark.parametrize(
    "name", ["summary.json", "timing.json", "episodes.safetensors", "curves.csv", "checkpoint"]
)
def test_what_was_damaged_is_made_again(trained: Path, tmp_path: Path, name: str) -> None:
    out = Path(shutil.copytree(trained, tmp_path / "out"))
    if name in ("timing.json", "checkpoint"):  # a finished run doesn't look at these
        (out / "summary.json").unlink()
    path = out / name / "state.json" if name == "checkpoint" else out / name
    path.write_text("{")
    solving.drive(out)
    assert result(out) == result(trained)


class Broken(own_cart.Cart):
    """From its thirtieth step on, rewards are NaN."""

    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        seen, reward, *rest = super().step(action)
        return (seen, np.nan if self.steps >= 30 else reward, *rest)


def test_nan_ends_the_run_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    world = {**WORLD, "env": f"{__name__}:Broken"}
    with pytest.raises(SolverFailed, match=r"reward is nan at step 30 of an episode in copy 0"):
        api.solve(world, "speed <= 0.5", solver=SOLVER, out=tmp_path / "out")
    left = {p.name for p in (tmp_path / "out").iterdir()}
    assert left <= {
        "solve.toml",
        ".lock",
        "constraint",
        "metrics.jsonl",
        "timing.json",
        "checkpoint",
    }
    assert not list((tmp_path / "out").rglob("*.partial"))


def test_a_key_that_the_environment_does_not_have_is_said(tmp_path: Path) -> None:
    world = {**WORLD, "features": [{"name": "height", "unit": "m"}]}
    with pytest.raises(InvalidInput, match=r"no info key 'height'.*after a step it has speed"):
        api.solve(world, "height <= 1", solver=SOLVER, out=tmp_path / "out")
    assert not (tmp_path / "out" / "summary.json").exists()


# Counting ----------------------------------------------------------------------------------------


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


def learned_at(run: Path, speeds: tuple[float, ...]) -> Path:
    """A run that learned speed <= 0.65 from demonstrations at these speeds, the last held out."""
    *train, heldout = map(episode, speeds)
    demos = Demonstrations((TaskDemos("cart", tuple(train), (heldout,)),), SPEED.features, {})
    dataset.save(demos, run / "demos")
    (run / "config.toml").write_text("")
    c = LinearConstraint(SPEED.features, np.ones(1), 0.65)
    source = {"demonstrations_sha256": dataset.content_hash(demos)}
    ringfence.save(c, run / "constraint", delta=86.0, provenance=source)
    return run / "constraint"


def counted(
    folder: Path, learned: Path, speeds: list[float], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The summary of a cart whose truth is speed <= 0.75 and whose episodes have these speeds."""
    asked = replace(
        cart(86.0), world=configs.tagged("t", "world", {**WORLD, "truth": "speed <= 0.75"})
    )
    c = constraint_files.load(learned)
    runs = [episode(speed) for speed in speeds]
    monkeypatch.setattr(PPOSolver, "episodes", lambda *_: runs)
    asked = replace(asked, problem=replace(asked.problem, train=False))
    task = make_world(asked.world).tasks[0]
    return solve(folder / "out", asked, c, learned=learned, start=policy_for(task))


def test_true_violations_are_counted_against_the_costliest_demonstration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = learned_at(tmp_path / "run", (0.6, 0.7, 0.7))
    found = counted(tmp_path, learned, [0.80] * 9 + [0.70], monkeypatch)
    assert found["violating_episodes"] == 0
    assert found["true_violating_episodes"] == 9
    assert found["true_violation_chance"] == list(binomial_interval(9, 10))
    assert found["true_limit"] == 0.0
    assert found["true_limit_is"] == "the most that a demonstration costs"


def test_held_out_demonstrations_show_what_is_allowed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = learned_at(tmp_path / "run", (0.6, 0.78, 0.79))
    found = counted(tmp_path, learned, [0.78, 0.80], monkeypatch)
    assert found["true_limit"] == pytest.approx(3 * np.log1p(0.79 - 0.75))
    assert found["true_violating_episodes"] == 1


@pytest.mark.parametrize("others", [False, True])
def test_without_its_own_demonstrations_any_true_cost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    learned, elsewhere = learned_at(tmp_path / "run", (0.6, 0.79, 0.7)), tmp_path / "elsewhere"
    if others:
        learned_at(elsewhere, (0.9, 0.9))
        shutil.rmtree(elsewhere / "constraint")
    shutil.copytree(learned, elsewhere / "constraint")
    found = counted(tmp_path, elsewhere / "constraint", [0.76, 0.70], monkeypatch)
    assert found["true_violating_episodes"] == 1
    assert found["true_limit"] == 0.0
    assert "any true cost counts" in found["true_limit_is"]


# A run's own task --------------------------------------------------------------------------------


def test_the_own_task_goes_on_from_the_selected_policy(finished: Finished, tmp_path: Path) -> None:
    run = finished("gym")
    still = {"learning_rate": 1e-12, "critic_first": 0}
    done = api.transfer(run, episodes=2, solver=still, out=tmp_path / "out")
    game = summary_of(run)
    name, start = problem.selected_policy(run, None)
    policy = done.policy.arrays
    # the first layer follows the input statistics, which go on
    for key in ("actor/w1", "actor/b1", "actor/log_std"):
        np.testing.assert_allclose(policy[key], start[key], atol=1e-8)
    best = game["iterations"][game["selected"] - 1]
    assert done.summary["constraint"]["description"] == best["constraint"]["description"]
    assert [done.summary["task"]] == [name] == game["tasks"]
    assert problem.selected_policy(run, name)[1].keys() == start.keys()
    # its demonstrations are beside the constraint, so they say what truly is too much
    assert done.summary["true_limit_is"] == solving.SHOWN
    assert done.summary["true_limit"] > 0


def test_the_clearance_is_kept_in_training_and_not_counted(
    finished: Finished, tmp_path: Path
) -> None:
    """The limit is one that no cart keeps at such a clearance, so the multiplier must rise."""
    plain, kept = (
        api.transfer(
            finished("gym"),
            limit=20.0,
            clearance=clearance,
            episodes=2,
            out=tmp_path / str(clearance),
        )
        for clearance in (0.0, 100.0)
    )
    assert kept.summary["clearance"] == 100.0
    assert kept.summary["constraint"] == plain.summary["constraint"]
    assert kept.summary["lam"] > plain.summary["lam"]
    assert kept.summary["cost"] < STEPS * np.log1p(2.0)  # of that moved inwards: 138 of 30 steps
    assert kept.policy.about["clearance"] == 100.0


def test_a_policy_is_told_of_a_clearance_without_training(
    finished: Finished, tmp_path: Path
) -> None:
    """It stays the same to the byte; what it does depends on what it is told."""
    run, raw = finished("gym"), []
    _, start = problem.selected_policy(run, None)
    sees = np.array(start["actor/w0"])
    sees[-1] = 1.0  # its last input is the constraint's value; so short a game left that at 0
    c = constraint_files.load(run / "constraint")
    for clearance in (0.0, 0.0, 5.0):
        out = tmp_path / str(len(raw))
        told = replace(cart().problem, clearance=clearance, train=False)
        summary = solve(out, replace(cart(), problem=told), c, start={**start, "actor/w0": sees})
        assert (summary["env_steps"], summary["lam"]) == (0, None)
        files = [
            safetensors.numpy.load_file(out / n)
            for n in ("policy/policy.safetensors", solving.START)
        ]
        assert {k: v.tobytes() for k, v in files[0].items()} == {
            k: v.tobytes() for k, v in files[1].items()
        }
        raw.append(summary["raw"])
    assert raw[0] == raw[1] != raw[2]


def test_what_can_not_be_told_is_refused(finished: Finished, tmp_path: Path) -> None:
    own_cart.write(tmp_path)
    with pytest.raises(InvalidInput, match="--steps 0 needs a policy that there is"):
        api.transfer(finished("gym"), str(tmp_path / "my.toml"), steps=0, out=tmp_path / "out")
    with pytest.raises(InvalidInput, match="does not see the constraint's value"):
        api.transfer(
            finished("gym"), steps=0, clearance=0.1, solver={"augment": False}, out=tmp_path / "out"
        )
    run = Path(shutil.copytree(finished("gym"), tmp_path / "run"))
    (run / "evidence.json").unlink()
    with pytest.raises(InvalidInput, match=r"none are known .*use --unknown allow"):
        api.transfer(run, unknown="avoid", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_has_no_own_task_is_refused(finished: Finished, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished("gym"), tmp_path / "run"))
    with pytest.raises(InvalidInput, match="no task 'walk'; it has "):
        problem.selected_policy(run, "walk")
    summary = summary_of(run)
    for changes, words in (
        ({"tasks": ["a", "b"]}, r"several tasks \(a, b\); choose one with --task NAME"),
        ({"outcome": "no constraint needed"}, "no constraint was needed"),
    ):
        (run / "summary.json").write_text(json.dumps({**summary, **changes}))
        with pytest.raises(InvalidInput, match=words):
            problem.selected_policy(run, None)
    (run / "summary.json").write_text(json.dumps(summary))
    shutil.rmtree(run / "ledger")
    with pytest.raises(InvalidInput, match="not in its ledger"):
        problem.selected_policy(run, None)
    (run / "summary.json").unlink()
    with pytest.raises(InvalidInput, match="not finished; 'ringfence resume"):
        problem.selected_policy(run, None)


# A new task --------------------------------------------------------------------------------------


def test_a_task_is_one_of_a_file(tmp_path: Path) -> None:
    two = 'steps = 50\ntasks = [{ name = "a" }, { name = "b", kwargs = { pay = 2.0 } }]'
    path = own_cart.write(tmp_path, own_cart.TOML.replace("steps = 50", two, 1))
    world, solver, _ = api.read_task(f"{path}:b")
    assert [t.kwargs for t in world.tasks] == [{"pay": 2.0}]
    assert (solver["kind"], solver["env_steps"]) == ("ppo", 1024)
    with pytest.raises(InvalidInput, match="choose one with --task"):
        api.read_task(str(path))
    with pytest.raises(InvalidInput, match="no task 'c'; it has a, b"):
        api.read_task(f"{path}:c")


def test_a_limit_travels_to_a_task_of_a_file_and_resumes_there(
    finished: Finished, tmp_path: Path
) -> None:
    text = own_cart.TOML.replace(
        "steps = 50", "steps = 50\ntasks = [{ name = 'slow', reward = 'own_cart:slowly' }]", 1
    )
    new = own_cart.write(tmp_path, text)
    done = api.transfer(finished("gym"), str(new), episodes=12, out=tmp_path / "out")
    assert (done.summary["task"], done.summary["episodes"]) == ("slow", 12)
    assert done.summary["constraint"]["description"].startswith("speed <= ")
    before = result(done.folder)
    (done.folder / "summary.json").unlink()
    solving.drive(done.folder)
    assert result(done.folder) == before


def test_covered_tasks_succeed_and_uncovered_ones_were_said(
    finished: Finished, tmp_path: Path
) -> None:
    run, world = finished("grid"), make_world(config_of("grid").world)
    cells = [tuple(map(int, cell)) for cell in np.argwhere(~world.truth.walls)]  # type: ignore[attr-defined]
    told = set()
    for n, (goal, start) in enumerate((g, s) for g in cells[::3] for s in cells):
        said: list[str] = []
        way, done = {"goal": goal, "start": start}, None
        with contextlib.suppress(InfeasibleLimit):
            done = api.transfer(run, way, out=tmp_path / str(n), say=said.append).summary
        covered = ": covered" in said[0]
        told.add(covered)
        assert covered == (done is not None and done["success"] >= counting.CERTAIN)
        if done is not None:
            assert done["covered"] == covered
            assert done["true_cost"] == 0
            assert done["unknown_cells"] == []
    assert told == {True, False}


def test_no_way_is_said_with_what_to_do(finished: Finished, tmp_path: Path) -> None:
    # (3,0) was never walked: one can't start there, and one can't go there.
    for goal, start in (((3, 3), (3, 0)), ((3, 0), (0, 0))):
        said: list[str] = []
        with pytest.raises(InfeasibleLimit, match="ask for a demonstration"):
            api.transfer(
                finished("grid"),
                {"goal": goal, "start": start},
                out=tmp_path / "out",
                say=said.append,
            )
        assert "UNCOVERED" in said[0]
        assert not (tmp_path / "out").exists()


def test_who_allows_the_unknown_is_told_which_cells_were_used(
    finished: Finished, tmp_path: Path
) -> None:
    way = {"goal": (3, 0), "start": (0, 0)}
    with pytest.raises(InfeasibleLimit, match="ask for a demonstration of this task"):
        api.transfer(finished("grid"), way, unknown="allow", out=tmp_path / "no")
    done = api.transfer(
        finished("grid"), {"goal": (3, 3), "start": (0, 0)}, unknown="allow", out=tmp_path / "out"
    )
    assert done.summary["unknown"] == "allow"
    assert [3, 0] not in done.summary["unknown_cells"]  # forbidden by what was learned


@pytest.mark.parametrize("kind", ["grid", "ant-maze"])
def test_a_cell_off_the_map_is_refused(kind: str, finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="outside the map"):
        api.transfer(finished(kind), {"goal": (3, 9), "start": (0, 0)}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_ants_new_start_is_called_covered_and_walked_safely(
    finished: Finished, tmp_path: Path
) -> None:
    said: list[str] = []
    way = {"goal": (0, 2), "start": (1, 0)}
    done = api.transfer(finished("ant-maze"), way, out=tmp_path / "out", say=said.append)
    assert said == [
        "goal (0,2) from (1, 0): covered, it can be done within cells that demonstrators walked"
    ]
    assert done.summary["covered"]
    assert done.summary["success"] == 1
    assert done.summary["true_cost"] == 0
    assert done.summary["violations"] == []


def test_a_goal_in_a_learned_wall_has_no_way(finished: Finished, tmp_path: Path) -> None:
    way = {"goal": (0, 1), "start": (1, 0)}
    with pytest.raises(InfeasibleLimit, match="no way under the constraint"):
        api.transfer(finished("ant-maze"), way, unknown="allow", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_solve_on_a_map_is_exact(tmp_path: Path) -> None:
    world = make_world(config_of("grid").world)
    under, free = (
        solve(tmp_path / spec, grid("goal (0,3)"), problem.read_constraint(spec, world)[0])
        for spec in ("truth", "none")
    )
    assert under["success"] == pytest.approx(1.0, abs=NOT_STORED)
    assert (under["true_cost"], under["episodes"]) == (0.0, None)
    assert free["true_cost"] > 0
    assert free["reward"] > under["reward"]
    paths = safetensors.numpy.load_file(tmp_path / "truth" / "episodes.safetensors")
    assert len(paths) == counting.PATHS
