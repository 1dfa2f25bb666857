"""The game on a continuous world, on disk: files, refusals, and resuming to the same bytes."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_control import PPO, demos, quiet, result, small, with_world

from ringfence.cli.main import main
from ringfence.constraints import files as constraint_files
from ringfence.demos import dataset as demonstrations
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, J, TaskDemos, behaviour_of
from ringfence.report import page
from ringfence.runs import control_config as configs
from ringfence.runs.control import create, drive, extend
from ringfence.runs.ledger import Ledger

KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.runs.control import drive

def shoot(event):
    if event["event"] == "update" and (event["i"], event["update"]) == (2, 1):
        os.kill(os.getpid(), signal.SIGKILL)

drive(Path(sys.argv[1]), shoot)
"""


class Stopped(BaseException):
    """As if the process had ended here."""


def stop_at(n: int):
    """An observer that stops the run at its n-th event."""
    count = 0

    def watch(event: dict) -> None:
        nonlocal count
        count += 1
        if count == n:
            raise Stopped

    return watch


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("control") / "run"
    create(run, small(), demos())
    drive(run, quiet)
    return run


def test_configuration_reads_back(finished: Path) -> None:
    config = configs.read(finished / "config.toml")
    assert replace(config, demos=small().demos) == small()
    assert configs.to_toml(config) == (finished / "config.toml").read_text()


def test_every_update_of_the_constraint_is_the_closed_form(finished: Path) -> None:
    """theta = (mean expert + mean learner) / 2 over all learners so far."""
    summary = json.loads((finished / "summary.json").read_text())
    speeds = []
    for row in summary["iterations"]:
        pi = json.loads((finished / "ledger" / row["ledger"][0] / "solve.json").read_text())
        assert pi["episodes"] == PPO.evaluation_episodes
        pi = Ledger(finished / "ledger").get(row["ledger"][0]).behaviour
        speeds.append((pi.visits @ pi.features[:, 2], pi.length))
        learner = sum(s for s, _ in speeds) / sum(n for _, n in speeds)
        expert = behaviour_of(demos().tasks[0].train)
        mean = expert.visits @ expert.features[:, 2] / expert.length
        assert row["updated"]["parameters"]["limit"] == pytest.approx((mean + learner) / 2)
        assert row["updated_error"] == pytest.approx(abs((mean + learner) / 2 - 0.5))


def test_the_limit_is_the_experts_cost_and_the_annealed_buffer(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    for row, buffer in zip(summary["iterations"], (20.0, 10.0), strict=True):
        assert row["delta_mean"] == pytest.approx(row["expert_cost_mean"] + buffer)


def test_the_saved_constraint_has_its_interval(finished: Path) -> None:
    c, document = constraint_files.load_document(finished / "constraint")
    low, high = document["interval"]["limit"]
    assert low < c.offset < high


def test_a_killed_run_resumes_to_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    create(run, small(), demos())
    done = subprocess.run([sys.executable, "-c", KILLED, str(run)], check=False)
    assert done.returncode == -9
    assert not (run / "summary.json").exists()
    assert list((run / "checkpoints").iterdir())
    assert main(["resume", str(run)]) == 0
    assert result(run) == result(finished)


def test_a_run_stopped_at_each_event_still_ends_in_the_same_bytes(
    finished: Path, tmp_path: Path
) -> None:
    run, lives = tmp_path / "run", 0
    create(run, small(), demos())
    while True:
        try:
            drive(run, stop_at(1 + lives))
            break
        except Stopped:
            lives += 1
    assert lives >= 4
    assert result(run) == result(finished)
    assert not list((run / "checkpoints").iterdir())


def test_a_game_played_on_ends_as_one_that_was_to_be_so_long(tmp_path: Path) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    create(short, replace(small(iterations=1), command="ringfence learn --iterations 1"), demos())
    drive(short, quiet)
    create(long, replace(small(iterations=2), command="ringfence learn --iterations 2"), demos())
    drive(long, quiet)
    solved = []
    extend(short, 2)
    drive(short, lambda e: solved.append(e["known"]) if e["event"] == "solved" else None)
    assert solved == [True, False]
    assert result(short) == result(long)
    assert (short / "config.toml").read_bytes() == (long / "config.toml").read_bytes()


def test_a_game_is_played_on_by_more_iterations_only(finished: Path, capsys) -> None:
    before = result(finished)
    assert main(["resume", str(finished), "--iterations", "2"]) == 2
    assert "has 2 iterations; to play on" in capsys.readouterr().err
    assert result(finished) == before


def test_an_unconstrained_learner_that_earns_no_more_needs_no_constraint(tmp_path: Path) -> None:
    given = demos()
    rich = [replace(t, rewards=t.rewards + 100) for t in given.tasks[0].train]
    better = Demonstrations(
        (TaskDemos("ant", tuple(rich), given.tasks[0].heldout),), given.features, {}
    )
    run = tmp_path / "run"
    create(run, small(probe=True), better)
    summary = drive(run, quiet)
    assert summary["outcome"] == "no constraint needed"
    assert summary["selected"] is None
    assert not (run / "constraint").exists()
    assert "No constraint needed" in page.render(run)


def test_what_was_no_game_is_not_played_on(tmp_path: Path, capsys) -> None:
    given = demos()
    rich = [replace(t, rewards=t.rewards + 100) for t in given.tasks[0].train]
    tasks = (TaskDemos("ant", tuple(rich), given.tasks[0].heldout),)
    create(tmp_path / "run", small(probe=True), Demonstrations(tasks, given.features, {}))
    drive(tmp_path / "run", quiet)
    assert main(["resume", str(tmp_path / "run"), "--iterations", "3"]) == 2
    assert "there is no game to play on" in capsys.readouterr().err


def test_a_finished_game_says_so_when_it_is_resumed(finished: Path, capsys) -> None:
    before = result(finished)
    assert main(["resume", str(finished)]) == 0
    assert "is finished already" in capsys.readouterr().out
    assert result(finished) == before


def test_a_constraint_on_speed_is_evaluated_against_demonstrations(
    finished: Path, tmp_path: Path, capsys
) -> None:
    given = demos()
    demonstrations.save(given, tmp_path / "demos")
    words = ["evaluate", str(finished), "--demos", str(tmp_path / "demos")]
    assert main([*words, "--out", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    c = constraint_files.load(finished / "constraint")
    costs = [float(c.cost(t.features).sum()) for t in given.tasks[0].train]
    assert found["demonstrations"]["expert_cost_mean"] == pytest.approx(np.mean(costs))
    assert main(words[:2]) == 2
    assert "give --demos" in capsys.readouterr().err
    other = replace(given, features=tuple(replace(f, unit="km") for f in given.features))
    demonstrations.save(other, tmp_path / "other")
    assert main([*words[:3], str(tmp_path / "other")]) == 2
    assert "its features are x (km)" in capsys.readouterr().err


def test_the_probe_is_not_stopped_at_what_is_enough_in_the_game(tmp_path: Path) -> None:
    """Even where a share of the experts' reward, which is next to nothing here, stops a solve."""
    given = demos()
    run = tmp_path / "run"
    config = small(probe=True, stop_share=1e-6, initial="free")
    create(run, replace(config, ppo=replace(PPO, stop_window=1)), given)
    summary = drive(run, quiet)
    assert summary["unconstrained"]["env_steps"] == PPO.env_steps
    assert summary["iterations"][0]["env_steps"] < summary["unconstrained"]["env_steps"]


def test_one_that_earns_less_but_does_what_experts_avoid_needs_one(tmp_path: Path) -> None:
    given = demos()
    slow = [
        replace(t, rewards=t.rewards + 100, features=t.features * [1, 1, 0.1])
        for t in given.tasks[0].train
    ]
    better = Demonstrations(
        (TaskDemos("ant", tuple(slow), given.tasks[0].heldout),), given.features, {}
    )
    create(tmp_path / "run", small(probe=True), better)
    assert drive(tmp_path / "run", quiet)["outcome"] == "constraint"


@pytest.mark.parametrize(
    "config",
    [
        small("speed <= ?", player="payoff", expert_budget=3.0),
        small("speed <= ?", player="weighted"),
        small("? x + ? y <= ?"),
        with_world(small("linear", initial="free"), full_state=True),
        replace(small("mlp", initial="free"), network=configs.NetworkConfig((8,), steps=50)),
        replace(small(stop_share=0.5), clone=replace(small().clone, carry="critics")),
        replace(small(), ppo=replace(PPO, start_share=0.5)),
    ],
    ids=["payoff", "weighted", "line", "full state", "network", "critics", "starts"],
)
def test_other_classes_and_players_play(tmp_path: Path, config: configs.ControlConfig) -> None:
    run = tmp_path / "run"
    create(run, config, demos())
    summary = drive(run, quiet)
    assert len(summary["iterations"]) == 2
    assert bool(summary["constraint"]["parameters"]) == (config.game.constraint != "mlp")
    assert "data-i" in page.render(run)
    if config.game.player == "payoff":
        assert summary["iterations"][0]["expert_cost_mean"] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (small("speed <= 1"), "nothing in it is to be learned"),
        (small("height <= ?"), "no feature 'height'"),
        (small("linear", on=("height",)), "no feature 'height'"),
        (small(iterations=0), "at least 1 iteration"),
        (small(buffer=-1.0), "buffer must be at least 0"),
        (small("mlp", player="payoff"), "payoff player has no network"),
        (small(method="mt-icl"), "mt-icl needs a class"),
        (small(player="payoff", expert_budget=-1.0), "budget must be at least 0"),
        (small("? x - y <= 0", player="payoff"), "within a budget of 0 per episode"),
        (replace(small(), clone=configs.CloneConfig(steps=0)), "needs .clone. steps > 0"),
        (small(epsilon=float("nan")), r"\[game\] epsilon: nan is not finite"),
        (with_world(small(), truth="height <= 1"), "no feature 'height'"),
        (with_world(small(), env="Ant-v5"), "env is for kind"),
        (with_world(small(), kind="gym"), "needs env"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, config: configs.ControlConfig, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        create(tmp_path / "run", config, demos())
    assert list(tmp_path.iterdir()) == []


def test_a_feature_that_never_varies_is_refused(tmp_path: Path) -> None:
    given = demos().tasks[0]

    def still(t):
        return replace(t, features=t.features * [1.0, 1.0, 0.0])

    same = TaskDemos("ant", tuple(map(still, given.train)), tuple(map(still, given.heldout)))
    with pytest.raises(InvalidInput, match=r"'speed' is 0 in every step"):
        create(tmp_path / "run", small(), Demonstrations((same,), demos().features, {}))


def test_no_held_out_demonstrations_are_refused(tmp_path: Path) -> None:
    only = TaskDemos("ant", demos().tasks[0].train, ())
    with pytest.raises(InvalidInput, match="held-out"):
        create(tmp_path / "run", small(), Demonstrations((only,), demos().features, {}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {"observations": t.observations[:, :5]}, r"\(31, 27\): not demonstrations of"),
        (lambda t: {"actions": t.actions[:, :5]}, r"actions have shape \(30, 5\).* \(30, 8\)"),
        (lambda t: {"actions": t.actions + 1e6}, r"action 0 is 1e\+06 at step 0, outside its box"),
        (
            lambda t: {
                "observations": np.vstack([t.observations, t.observations[1:]]),
                "actions": np.vstack([t.actions] * 2),
                "rewards": np.hstack([t.rewards] * 2),
                "features": np.vstack([t.features] * 2),
            },
            "60 steps, but episodes of 'ant' have at most 30",
        ),
    ],
    ids=["observations", "actions", "box", "horizon"],
)
def test_demonstrations_of_another_world_are_refused(tmp_path: Path, change, words: str) -> None:
    given = demos().tasks[0]
    train, heldout = (
        tuple(replace(t, **change(t)) for t in part) for part in (given.train, given.heldout)
    )
    other = Demonstrations((TaskDemos("ant", train, heldout),), demos().features, {})
    with pytest.raises(InvalidInput, match=words):
        create(tmp_path / "run", small(), other)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("full_state", [False, True])
def test_demonstrations_in_another_unit_are_refused(tmp_path: Path, full_state: bool) -> None:
    given = demos()
    features = tuple(Feature(f.name, f.unit.replace("m/s", "km/h")) for f in given.features)
    with pytest.raises(InvalidInput, match=r"'speed' in km/h, task 'ant' in m/s; convert them"):
        create(
            tmp_path / "run",
            with_world(small(), full_state=full_state),
            Demonstrations(given.tasks, features, {}),
        )


# The page --------------------------------------------------------------------------------------


def test_the_page_shows_every_iteration_and_what_is_open(finished: Path) -> None:
    text = page.render(finished)
    summary = json.loads((finished / "summary.json").read_text())
    assert html.escape(summary["constraint"]["description"]) in text
    for i in (1, 2):
        assert f'<g data-i="{i}"' in text
        assert f'data-row="{i}"' in text
    assert 'id="iteration" type="range" min="1" max="2"' in text
    assert "What the demonstrations leave open" in text
    assert "(bootstrap over demonstrations)" in text
    assert "http" not in text.replace("http-equiv", "")


def changed(finished: Path, other: Path, old: str, new: str) -> Path:
    """A copy with another configuration."""
    shutil.copytree(finished, other)
    text = (other / "config.toml").read_text()
    assert old in text
    (other / "config.toml").write_text(text.replace(old, new))
    return other


def test_a_page_over_seeds_has_their_means(finished: Path, tmp_path: Path) -> None:
    other = changed(finished, tmp_path / "other", "seed = 0", "seed = 1")
    text = page.write_many([finished, other], tmp_path / "page.html").read_text()
    assert "over 2 seeds" in text
    assert text.count("<tr") == 3


def test_runs_of_different_experiments_are_not_averaged(finished: Path, tmp_path: Path) -> None:
    other = changed(finished, tmp_path / "other", '"regression"', '"payoff"')
    with pytest.raises(InvalidInput, match=r"one experiment: \[game\] player differs"):
        page.write_many([finished, other], tmp_path / "page.html")


def test_a_clock_that_was_cut_short_is_named(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    (other / "timing.json").write_text('{"seconds": 1')
    with pytest.raises(InvalidInput, match=r"timing.json: it can't be read .*delete it and resume"):
        page.render(other)
    with pytest.raises(InvalidInput, match=r"timing.json: it can't be read .*delete it and resume"):
        drive(other, quiet)


def test_a_torn_run_is_named(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    summary = json.loads((other / "summary.json").read_text())
    del summary["iterations"]
    (other / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(InvalidInput, match=r"not a whole run .*iterations"):
        page.render(other)


def test_the_last_constraint_judges_and_all_demonstrations_say_what_is_enough(
    finished: Path,
) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    last, task = constraint_files.load(finished / "constraints" / "c_001"), demos().tasks[0]
    expert_cost = J(behaviour_of(task.heldout), last)
    learners = [
        Ledger(finished / "ledger").get(row["ledger"][0]).behaviour for row in summary["iterations"]
    ]
    found = summary["heldout"]
    assert found["gap"] == pytest.approx([J(pi, last) - expert_cost for pi in learners])
    rewards = np.array([t.rewards.sum() for t in (*task.train, *task.heldout)])
    enough = rewards.mean() - rewards.std(ddof=1) / np.sqrt(len(rewards))
    assert found["enough_reward"] == pytest.approx(enough)
    assert found["reward_mean"] == pytest.approx(rewards[len(task.train) :].mean())


@pytest.mark.parametrize("rewarding", [True, False])
def test_a_game_whose_learners_earn_too_little_says_so(
    rewarding: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demonstrators' rewards are moved far below or above what such learners can earn."""
    given = demos().tasks[0]
    shift = -100.0 if rewarding else 100.0
    train, heldout = (
        tuple(replace(t, rewards=t.rewards + shift) for t in part)
        for part in (given.train, given.heldout)
    )
    create(
        tmp_path / "run",
        small(iterations=1),
        Demonstrations((TaskDemos("ant", train, heldout),), demos().features, {}),
    )
    assert main(["resume", str(tmp_path / "run")]) == 0
    told, shown = capsys.readouterr().out, (tmp_path / "run" / "report.html").read_text()
    assert ("no learner earned what the experts do" in told) is not rewarding
    assert ("the one that earns most, because none earns" in shown) is not rewarding
