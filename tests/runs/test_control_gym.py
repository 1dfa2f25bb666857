"""`ringfence learn my.toml`: anyone's environment, from a short file to a constraint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.cli.main import main
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, TaskDemos
from ringfence.runs import control
from ringfence.runs.control_config import ControlWorld, FeatureConfig, TaskConfig, read_user
from ringfence.runs.control_world import make_tasks
from ringfence.solvers.ppo import evaluate

TOML = """
[world]
kind = "gym"
env = "gym_worlds:make_walk"
kwargs = { stride = 0.2 }
steps = 20
features = [{ name = "speed", unit = "m/s" }, { name = "place", unit = "m", column = 0 }]
truth = "speed <= 0.5"
[demos]
path = "demos"
[game]
constraint = "speed <= ?"
iterations = 2
probe = false
resamples = 10
[clone]
steps = 20
[ppo]
env_steps = 512
copies = 16
steps = 16
batch = 128
passes = 1
hidden = [16]
evaluation_episodes = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """my.toml, its module and demonstrations, as a user would have them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    (tmp_path / "my.toml").write_text(TOML)
    config = read_user(tmp_path / "my.toml", "ringfence learn my.toml", 0)
    (task,) = make_tasks(config.world)
    runs = evaluate(task, policy_for(task), lambda phi: np.zeros(len(phi)), 6, (7,))
    given = TaskDemos(task.name, tuple(runs[:4]), tuple(runs[4:]))
    demos.save(Demonstrations((given,), task.features, {}), tmp_path / "demos")
    return tmp_path


def test_a_short_file_becomes_a_run(folder: Path) -> None:
    run = folder / "run"
    assert main(["learn", str(folder / "my.toml"), "--out", str(run), "--seed", "3"]) == 0
    summary = json.loads((run / "summary.json").read_text())
    assert summary["seed"] == 3
    assert summary["used"] == ["speed"]
    assert len(summary["iterations"]) == 2
    assert summary["iterations"][0]["learner_length_mean"] == 20
    assert (run / "report.html").stat().st_size > 10_000
    written = (run / "config.toml").read_text()
    assert 'kwargs = { "stride" = 0.2 }' in written


def test_a_world_beside_a_file_is_refused_even_if_it_is_the_default(folder: Path, capsys) -> None:
    assert main(["learn", str(folder / "my.toml"), "--world", "maze"]) == 2
    assert "--world has no effect here" in capsys.readouterr().err


def test_the_seed_is_the_options_then_the_files_then_0(folder: Path) -> None:
    path = folder / "my.toml"
    assert read_user(path, "").seed == 0
    path.write_text("seed = 5\n" + TOML)
    assert (read_user(path, "").seed, read_user(path, "", 3).seed) == (5, 3)


def test_a_longer_game_of_a_file_is_that_of_a_file_with_so_many(folder: Path) -> None:
    path, run = folder / "my.toml", folder / "run"
    assert main(["learn", str(path), "--out", str(run)]) == 0
    control.extend(run, 3)
    config = control.configs.read(run / "config.toml")
    assert config.game.iterations == 3
    assert "--iterations" not in config.command  # which `learn FILE` refuses


def test_features_come_from_info_columns_and_functions(folder: Path) -> None:
    (task,) = make_tasks(read_user(folder / "my.toml", "", 0).world)
    by_function = ControlWorld(
        "gym",
        "gym_worlds:make_walk",
        steps=20,
        features=(FeatureConfig("speed", "m/s"),),
        feature_function="gym_worlds:speed",
    )
    (other,) = make_tasks(by_function)
    for one, column in ((task, 0), (other, 0)):
        (run,) = evaluate(one, policy_for(one), lambda phi: np.zeros(len(phi)), 1, (0,))
        stride = np.abs(np.diff(run.observations[:, 0]))
        width = 0.2 if one is task else 0.1
        np.testing.assert_allclose(run.features[:, column], stride / width, atol=1e-5)
    (run,) = evaluate(task, policy_for(task), lambda phi: np.zeros(len(phi)), 1, (0,))
    np.testing.assert_array_equal(run.features[:, 1], run.observations[1:, 0])


def test_tasks_have_their_own_arguments_and_rewards(folder: Path) -> None:
    world = ControlWorld(
        "gym",
        "gym_worlds:make_walk",
        steps=20,
        features=(FeatureConfig("x", "m"),),
        tasks=(
            TaskConfig("right", {"stride": 0.3}),
            TaskConfig("left", reward="gym_worlds:leftwards"),
        ),
    )
    right, left = make_tasks(world)
    assert (right.name, left.name) == ("right", "left")
    (r,) = evaluate(right, policy_for(right), lambda phi: np.zeros(len(phi)), 1, (0,))
    (q,) = evaluate(left, policy_for(left), lambda phi: np.zeros(len(phi)), 1, (0,))
    np.testing.assert_allclose(r.rewards, np.diff(r.observations[:, 0]), atol=1e-6)
    np.testing.assert_allclose(q.rewards, -np.diff(q.observations[:, 0]), atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("gym_worlds:make_walk", "gym_worlds:nothing", "no attribute 'nothing'"),
        ("gym_worlds:make_walk", "Nothing-v0", "can't make the environment"),
        ("stride = 0.2", "pace = 0.2", "can't make the environment"),
        ("column = 0", "column = 7", "columns 0 to 1"),
        ("iterations", "rounds", "no entry 'rounds'"),
        ('kind = "gym"', 'kind = "golf"', "not one of 'ant', 'ant-bullet', 'gym'"),
        ("steps = 20", "", "no registered episode length"),
        ('path = "demos"', 'path = "nowhere"', "nowhere: not a file, a Minari folder"),
        ("[ppo]", "[pop]", "no entry 'pop'"),
        ('constraint = "speed <= ?"', "", "[game] needs an entry 'constraint'"),
        ('kind = "gym"', "", "[world] needs an entry 'kind'"),
        ("gym_worlds:make_walk", "gym_worlds.make_walk", "'gym_worlds:make_walk'"),
    ],
)
def test_a_file_that_cannot_work_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, word: str
) -> None:
    path = folder / "my.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    assert main(["learn", str(path), "--out", str(folder / "run")]) == 2
    assert word in capsys.readouterr().err
    assert not (folder / "run").exists()


def test_stored_demonstrations_in_another_unit_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "my.toml"
    path.write_text(path.read_text().replace('unit = "m/s"', 'unit = "km/h"'))
    assert main(["learn", str(path), "--out", str(folder / "run")]) == 2
    assert "'speed' in m/s" in (said := capsys.readouterr().err)
    assert "in km/h; convert them" in said
    assert not (folder / "run").exists()


def test_a_file_gets_its_worlds_learning_rate_unless_it_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    for world, own, rate in (
        ("ant", "", 3e-4),
        ("ant-bullet", "", 1e-4),
        ("ant-bullet", "[ppo]\nlearning_rate = 2e-4", 2e-4),
    ):
        path.write_text(f'[world]\nkind = "{world}"\n[game]\nconstraint = "speed <= ?"\n{own}')
        assert read_user(path, "", 0).ppo.learning_rate == rate


def test_a_source_that_is_two_things_is_refused() -> None:
    features = (FeatureConfig("x", "m", info="x", column=0),)
    with pytest.raises(InvalidInput, match="info or column"):
        make_tasks(ControlWorld("gym", "Pendulum-v1", features=features))
