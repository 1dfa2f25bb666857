"""Training on disk: files, refusals before the first step, and resuming to the same bytes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from PIL import Image

import ringfence
from ringfence.cli.main import main, parser
from ringfence.commands_train import demonstrated_starts
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory
from ringfence.runs import train
from ringfence.runs.folder import only_driver
from ringfence.runs.frames import draw_frames
from ringfence.runs.train import TrainConfig, create, drive, read
from ringfence.solvers.ppo import PPOConfig
from ringfence.worlds.ant import AntTask
from saved_constraints import random_network

TINY = TrainConfig(
    command="ringfence solve",
    seed=0,
    world="ant",
    constraint="speed <= 0.75",
    delta=20.0,
    ppo=PPOConfig(
        env_steps=4 * 4 * 64,
        copies=4,
        steps=64,
        batch=128,
        passes=1,
        hidden=(16,),
        evaluation_episodes=2,
        checkpoint_every=1,
    ),
)
RESULT = ("summary.json", "curves.csv", "policy/policy.safetensors", "policy/policy.json")

KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.runs.train import drive

def shoot(record):
    if record.update == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

drive(Path(sys.argv[1]), shoot)
"""


class Slide(gymnasium.Env):
    """x moves by the action; x and where it was are in `info`."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.1, 0.1)
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += 0.1 * float(action[0])
        return np.array([self.x], np.float32), float(action[0]), False, False, {"x": self.x}


def make_slide() -> Slide:
    return Slide()


class Broken(Slide):
    """From its thirtieth step on, rewards are NaN."""

    steps = 0

    def step(self, action):
        self.steps += 1
        seen, reward, *rest = super().step(action)
        return (seen, np.nan if self.steps >= 30 else reward, *rest)


def make_broken() -> Broken:
    return Broken()


GYM = ["solve", "--world", f"gym:{__name__}:make_slide", "--horizon", "20", "--steps", "4096"]


def quiet(record: object) -> None:
    """Records that nobody watches."""


def result(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in RESULT}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("train") / "run"
    create(run, TINY)
    drive(run, quiet)
    return run


def test_configuration_reads_back(trained: Path) -> None:
    assert read(trained) == TINY


def test_summary_and_curves_tell_the_same_course(trained: Path) -> None:
    summary = json.loads((trained / "summary.json").read_text())
    rows = list(csv.DictReader((trained / "curves.csv").read_text().splitlines()))
    assert len(rows) == 4
    assert summary["env_steps"] == int(rows[-1]["env_steps"]) == TINY.ppo.env_steps
    assert summary["lam"] == pytest.approx(float(rows[-1]["lam"]))
    for kind in ("stochastic", "deterministic"):
        assert summary[kind]["episodes"] == 2
        assert summary[kind]["true_cost"] >= 0.0


def test_picture_is_not_blank(trained: Path) -> None:
    pixels = np.asarray(Image.open(trained / "path.png").convert("RGB")).reshape(-1, 3)
    assert len(np.unique(pixels, axis=0)) > 50


@pytest.mark.parametrize("update", [1, 2, 4])
def test_a_killed_training_resumes_to_the_same_bytes(
    trained: Path, tmp_path: Path, update: int
) -> None:
    run = tmp_path / "run"
    create(run, TINY)
    done = subprocess.run([sys.executable, "-c", KILLED, str(run), str(update)], check=False)
    assert done.returncode == -9
    assert not (run / "summary.json").exists()
    drive(run, quiet)
    assert result(run) == result(trained)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"constraint": "height <= 1"}, "no feature 'height'; features are x, y, speed"),
        ({"constraint": "speed < 1"}, "<="),
        ({"delta": -1.0}, "--delta"),
        ({"delta": float("nan")}, "--delta"),
    ],
)
def test_what_can_be_known_is_refused_before_the_first_step(
    tmp_path: Path, change: dict, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        create(tmp_path / "run", replace(TINY, **change))
    assert list(tmp_path.iterdir()) == []


def test_the_ant_has_no_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--world", "ant", "--out", str(tmp_path / "run")]) == 2
    assert "state a constraint" in capsys.readouterr().err


def test_a_saved_inequality_is_solved_under_to_the_last_digit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, folder = AntTask(), str(tmp_path / "saved")
    c = parse_inequality(f"{1 / 3!r} x - 1e-7 y <= {2 / 3!r}", task.features)
    ringfence.save(c, folder, delta=7.5)
    text, delta = train.read_constraint(folder, task.features)
    again = parse_inequality(text, task.features)
    assert again.weights.tobytes() == c.weights.tobytes()
    assert (again.offset, delta) == (c.offset, 7.5)
    assert train.read_constraint("speed <= 0.75", task.features) == ("speed <= 0.75", 20.0)
    for name, saved, words in (
        ("network", random_network(), "'ringfence transfer {} --task FILE.toml'"),
        ("feet", LinearConstraint((Feature("x", "ft"),), np.ones(1), 1.0), "'x' in ft"),
        ("other", LinearConstraint((Feature("height", "m"),), np.ones(1), 1.0), "no feature 'hei"),
    ):
        place = str(tmp_path / name)
        ringfence.save(saved, place, delta=1.0)
        assert main(["solve", "--world", "ant", "--constraint", place, "--out", f"{place}-o"]) == 2
        assert words.format(place) in capsys.readouterr().err
        assert not Path(f"{place}-o").exists()


def test_a_gymnasium_environment_is_solved_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = [*GYM, "--feature", "x:m", "--constraint", "x <= 0.5", "--delta", "1"]
    assert main([*words, "--out", str(run)]) == 0
    summary = json.loads((run / "summary.json").read_text())
    assert summary["stochastic"]["length"] == 20
    assert summary["versions"]["gymnasium"] == gymnasium.__version__
    assert not (run / "path.png").exists()
    assert "only MuJoCo's Ant" in capsys.readouterr().out
    before = result(run)
    (run / "summary.json").unlink()
    assert main(["resume", str(run)]) == 0
    assert result(run) == before


LEARN = ["learn", "--world", "ant", "--demos", "nowhere", "--class", "speed <= ?"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*GYM, "--constraint", "x <= 1"], "declare at least one feature"),
        ([*GYM, "--feature", "x", "--constraint", "y <= 1"], "no feature 'y'; features are x"),
        (["solve", "--world", "gym:None-v0", "--feature", "x", "--constraint", "x <= 1"], "make"),
        (["solve", "--world", "ant", "--feature", "x", "--constraint", "x <= 1"], "own features"),
        (["solve", "--feature", "x"], "--feature"),
        (["solve", "--world", "ant", "--constraint", "none", "--start-share", "0.5"], "each other"),
        (["solve", "--world", "ant", "--constraint", "none", "--ppo", "marge=1"], "no entry"),
        (["solve", "--world", "ant", "--constraint", "none", "--ppo", "margin"], "NAME=VALUE"),
        (["learn", "--world", "maze", "--steps", "5"], "--steps is for continuous worlds; maze"),
        (["learn", "--world", "maze", "--ppo", "margin=0.3"], "--ppo is for continuous worlds"),
        (["learn", "--world", "ant-maze", "--full-state"], "--full-state is for continuous"),
        (["learn", "my.toml", "--steps", "5"], "--steps has no effect here; my.toml says it all"),
        (["learn", "my.toml", "--class", "x <= ?"], "--class has no effect here"),
        (["learn", "my.toml", "--noise", "0.1"], "--noise has no effect here"),
        (["learn", "my.toml", "--iterations", "0"], "--iterations has no effect here"),
        (["learn", "my.toml", "--buffer", "0"], "--buffer has no effect here"),
        (["learn", "my.toml", "--tolerance", "0"], "--tolerance has no effect here"),
        (["learn", "my.toml", "--expert-budget", "0"], "--expert-budget has no effect here"),
        (["learn", "my.toml", "--world", "ant"], "--world has no effect here"),
        (["learn", "my.toml", "--slip", "0.1"], "--slip is for maps"),
        ([*LEARN, "--solver", "lp"], "--solver is for maps"),
        ([*LEARN, "--horizon", "9"], "--horizon has no effect on ant, which has its own"),
        ([*LEARN, "--task", "walk"], "--task has no effect on ant"),
        (["learn", "--demos", "d", "--paths", "3"], "--paths is how demonstrations are made; d"),
        ([*LEARN, "--noise", "0.7"], "--noise is how demonstrations are made"),
        ([*LEARN, "--ppo", "marge=1"], "no entry"),
        ([*LEARN, "--ppo", "margin=2.0"], "margin must be in [0, 1)"),
        ([*LEARN, "--ppo", "cool_down=-1.0"], "cool_down must be in [0, 1]"),
        ([*LEARN, "--ppo", "keep_lag=-1"], "keep_lag must be at least 0"),
        ([*LEARN, "--ppo", "evaluation_episodes=1"], "evaluation_episodes must be at least 2"),
        (
            [*LEARN, "--ppo", "grace=0.5", "--ppo", "initial_lam=1.0"],
            "in its grace (0.5) a training has no multiplier",
        ),
        (["solve", "--policy", "run"], "--policy are for the Ant"),
        ([*GYM, "--feature", "x", "--constraint", "x <= 1", "--policy", "run"], "no policy in it"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_the_environment_does_not_have_stops_the_first_rollout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*GYM, "--feature", "height", "--constraint", "height <= 1"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "no info key 'height'" in told
    assert "after a step it has x" in told
    assert {p.name for p in (tmp_path / "run").iterdir()} == {"solve.toml", ".lock"}


def test_frames_are_drawn_or_it_is_said_why_not(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    told = draw_frames(copy)
    if "not drawn" in told:
        assert "MuJoCo can't draw" in told
        assert not (copy / "frames.png").exists()
    else:
        pixels = np.asarray(Image.open(copy / "frames.png").convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 200
    assert result(copy) == result(trained)


def test_a_module_of_the_working_directory_is_found_also_on_resume(tmp_path: Path) -> None:
    """As a command: a test's own path has the folder already."""
    source = "from test_train import Slide\n\n\ndef make():\n    return Slide()\n"
    (tmp_path / "my_slide.py").write_text(source)
    words = ["solve", "--world", "gym:my_slide:make", "--horizon", "20", "--steps", "4096"]
    words += ["--feature", "x", "--constraint", "x <= 0.5", "--out", "run"]
    script = "import sys; from ringfence.cli import main; sys.exit(main(sys.argv[1:]))"
    path = os.pathsep.join(str(p) for p in (Path(__file__).parent, Path(__file__).parents[1]))
    for command in (words, ["resume", "run"]):
        (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_a_policy_is_trained_on_with_its_critics_and_multiplier(
    trained: Path, tmp_path: Path
) -> None:
    start = ringfence.load_policy(trained).arrays
    still = replace(TINY, ppo=replace(TINY.ppo, learning_rate=0.0, gain_p=0.0, gain_i=0.0))
    create(tmp_path / "run", still, start=start)
    drive(tmp_path / "run", quiet)
    after = ringfence.load_policy(tmp_path / "run").arrays
    # the first layers follow the input statistics, which go on
    for name in ("actor/w1", "actor/log_std", "multiplier/integral"):
        assert np.asarray(after[name]).tobytes() == np.asarray(start[name]).tobytes()
    values = [a["critic/w1"] * a["critic/scale"][1] for a in (start, after)]  # in the old units
    np.testing.assert_allclose(*values, rtol=1e-4)
    assert after["norm/count"] > start["norm/count"] > 0
    (tmp_path / "run" / "start.safetensors").write_bytes(
        (trained / "policy" / "policy.safetensors").read_bytes()[:-4] + b"0000"
    )
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(InvalidInput, match="not the policy that it began with"):
        drive(tmp_path / "run", quiet)


def test_a_killed_training_on_goes_on_to_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    runs, start = (tmp_path / "one", tmp_path / "two"), ringfence.load_policy(trained).arrays
    for run in runs:
        create(run, TINY, start=start)
    drive(runs[0], quiet)
    done = subprocess.run([sys.executable, "-c", KILLED, str(runs[1]), "2"], check=False)
    assert done.returncode == -9
    drive(runs[1], quiet)
    assert result(runs[0]) == result(runs[1]) != result(trained)


def test_a_policy_of_other_shapes_is_refused_before_anything_is_written(
    trained: Path, tmp_path: Path
) -> None:
    wider = replace(TINY, ppo=replace(TINY.ppo, hidden=(8,)))
    with pytest.raises(InvalidInput, match=r"actor/w0 has shape \(28, 16\), not \(28, 8\)"):
        create(tmp_path / "run", wider, start=ringfence.load_policy(trained).arrays)
    assert not list(tmp_path.iterdir())


def test_only_one_process_drives_a_training(tmp_path: Path) -> None:
    create(tmp_path / "run", TINY)
    with only_driver(tmp_path / "run"), pytest.raises(InvalidInput, match="another process"):
        drive(tmp_path / "run", quiet)


def test_a_training_has_no_page_and_says_where_its_figures_are(trained: Path, capsys) -> None:
    assert main(["report", str(trained)]) == 2
    assert "in its summary.json, curves.csv and pictures" in capsys.readouterr().err


def test_a_finished_training_is_not_trained_again(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train.PPO, "solve", None)
    assert drive(trained, quiet) == json.loads((trained / "summary.json").read_text())


def test_the_clock_adds_up_over_sessions(tmp_path: Path) -> None:
    path = tmp_path / "timing.json"
    path.write_text('{"seconds": 100.0}')
    train.Clock(path).write()
    assert 100.0 <= json.loads(path.read_text())["seconds"] < 101.0


@pytest.mark.parametrize("name", ["summary.json", "timing.json"])
def test_a_file_that_was_cut_short_is_named(trained: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(trained, tmp_path / "run")
    if name == "timing.json":  # a finished run doesn't look at its clock
        (tmp_path / "run/summary.json").unlink()
    (tmp_path / "run" / name).write_text("{")
    with pytest.raises(InvalidInput, match=f"{name}: it can't be read .*delete it and resume"):
        drive(tmp_path / "run", quiet)


def test_curves_read_back(trained: Path) -> None:
    curves = train.read_curves(trained / "curves.csv")
    assert curves["update"].tolist() == [1, 2, 3, 4]
    assert np.isnan(curves["reward"]).any()  # no episode of 1000 steps ends in the first rollout


def test_demonstrations_are_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, n = np.random.default_rng(0), 5
    episode = Trajectory(
        rng.standard_normal((n + 1, 27)),
        np.zeros((n, 8)),
        np.zeros(n),
        rng.standard_normal((n, 3)),
        terminated=False,
    )
    given = Demonstrations((TaskDemos("ant", (episode,), ()),), AntTask().features, {})
    demos.save(given, tmp_path / "demos")
    words = ["solve", "--world", "ant", "--constraint", "none", "--start-share", "0.5"]
    options = parser().parse_args([*words, "--demos", str(tmp_path / "demos"), "--out", "run"])
    starts = demonstrated_starts(options)
    assert starts is not None
    np.testing.assert_array_equal(starts, AntTask().states_of(episode))


def test_nan_ends_the_run_and_leaves_nothing_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = ["solve", "--world", f"gym:{__name__}:make_broken", "--horizon", "20"]
    words += ["--feature", "x", "--constraint", "x <= 0.5", "--steps", "8192"]
    assert main([*words, "--out", str(run)]) == 1
    # 64 copies: the thirtieth step of each begins at environment step 29 * 64
    message = f"reward is nan at environment step {29 * 64} (copy 0): training stopped"
    assert message in capsys.readouterr().err
    assert {p.name for p in run.iterdir()} == {"solve.toml", ".lock"}
