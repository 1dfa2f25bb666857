"""Everything that is said of a world and demonstrations before a training: `demos check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import own_cart
import ringfence
from ringfence.api import ask
from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.runs.check import Examined, examine, shared_dynamics
from ringfence.runs.config import make_world
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.replay import TRIAL_SEED, TRIAL_STEPS, trial
from small_worlds import config_of, demos_of, every_world, of_kinds


def of(path: Path) -> Examined:
    return ask(path, None, None, None, None, None, None, "test").examine()


def words(examined: Examined, where: str) -> str:
    return "\n".join(str(f) for f in examined.findings if f.where.startswith(where))


def test_good_logs_pass_every_check(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path))
    assert {f.severity for f in found.findings} == {"ok"}
    assert "1 observations, 1 actions, 50 steps; features speed (m/s)" in words(found, "environ")
    assert "5 of 8 episodes, all the same" in words(found, "replay")
    assert "the same" in words(found, "rewards")
    assert "look saturated" in words(found, "saturation")
    assert found.demos is not None
    (task,) = found.demos.tasks
    assert (len(task.train), len(task.heldout)) == (6, 2)
    assert [t.seed for t in task.train] == list(range(6))


def test_an_environment_that_is_not_deterministic_is_not_replayed(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, own_cart.TOML.replace("make_cart", "Shaky")))
    assert "not deterministic" in words(found, "environment")
    assert "nothing can be replayed" in words(found, "replay")
    assert found.demos is not None


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
    found = of(own_cart.write(tmp_path, two_tasks()))
    assert found.demos is not None, found.errors
    assert [d.task for d in found.demos.tasks] == ["a", "b"]
    assert "2 tasks take the same steps" in words(found, "dynamics")


def two_tasks(second: str = "") -> str:
    tasks = f'steps = 50\ntasks = [{{ name = "a" }}, {{ name = "b"{second} }}]'
    text = own_cart.TOML.replace("steps = 50", tasks, 1)
    text = text.replace('path = "logs.npz"', 'paths = { a = "logs.npz", b = "logs.npz" }')
    return text.replace("iterations = 1", 'iterations = 1\nmethod = "mt-icl"')


def test_tasks_of_two_worlds_are_refused(tmp_path: Path) -> None:
    found = of(own_cart.write(tmp_path, two_tasks(", kwargs = { push = 0.1 }")))
    assert found.demos is None
    assert "don't share their dynamics" in found.errors[0].message
    assert "observation 1 differs" in found.errors[0].message


@pytest.mark.parametrize("other", ["goal = 0.7", "begin = 0.5", "goal = 0.7, begin = 0.5"])
def test_a_goal_in_the_observation_and_another_start_are_no_other_world(
    tmp_path: Path, other: str
) -> None:
    seen = own_cart.arrays()["observations"]
    text = two_tasks(f", kwargs = {{ {other} }}").replace("make_cart", "GoalCart")
    path = own_cart.write(
        tmp_path, text, observations=np.column_stack([seen, np.full(len(seen), 0.5)]),
        seeds=None, rewards=None,
    )  # fmt: skip
    found = of(path)
    assert "not tested: 'b' begin(s) with another observation than 'a'" in words(found, "dynamics")
    assert not any(f.where == "dynamics" for f in found.errors)


def test_a_task_of_choices_is_tried_out() -> None:
    """Random actions are among its choices, and their answers those of the environment."""
    task = GymTask("CartPole-v1", (Feature("x", "m"),), sources={"x": 0})
    one = trial(task)
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=TRIAL_SEED)
    pushes = np.random.default_rng(TRIAL_SEED).random((TRIAL_STEPS, 1)) >= 0.5
    seen = [env.step(int(push))[0] for push in pushes[: len(one), 0]]
    np.testing.assert_allclose(one.observations[1:], seen)


def test_tasks_that_begin_elsewhere_are_said_to_be_not_compared(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path, two_tasks())
    one, two = make_world(ask(path, None, None, None, None, None, None, "test").config.world).tasks
    tried = trial(one)  # type: ignore[arg-type]
    moved = replace(tried, observations=tried.observations + 1.0)
    found = shared_dynamics([one, two], [tried, moved])
    assert found.severity == "note"
    assert "not tested: 'b' begin(s) with another observation than 'a'" in found.message


def test_a_goal_that_is_seen_as_a_distance_is_a_remark_and_other_dynamics_are_refused(
    tmp_path: Path,
) -> None:
    """Two goals may be equally far at first: then only later observations differ."""
    path = own_cart.write(tmp_path, two_tasks())
    tasks = make_world(ask(path, None, None, None, None, None, None, "test").config.world).tasks
    seen = trial(tasks[0])  # type: ignore[arg-type]
    steps = np.arange(len(seen) + 1.0)[:, None]
    left, right = (
        replace(seen, observations=np.hstack([seen.observations, 1.0 + side * steps]))
        for side in (-1, 1)
    )
    found = shared_dynamics(tasks, [left, right])
    assert found.severity == "note"
    assert "('b' in 1), the others and all features are the same" in found.message
    for other in (
        replace(right, features=right.features + steps[1:]),
        replace(right, observations=right.observations + steps),
        replace(right, rewards=right.rewards[:-1], features=right.features[:-1]),
    ):
        with pytest.raises(InvalidInput, match="don't share their dynamics"):
            shared_dynamics(tasks, [left, other])


@every_world
def test_a_worlds_own_demonstrations_are_usable(kind: str) -> None:
    found = examine(config_of(kind), Path(), demos_of(kind))
    assert found.demos is demos_of(kind)
    assert found.errors == ()
    assert "shapes and numbers are in order" in words(found, "demonstrations")


@of_kinds("grid", "ant-maze", "gym")
def test_demonstrations_of_a_folder_are_read_from_where_the_file_is(
    kind: str, tmp_path: Path
) -> None:
    dataset.save(demos_of(kind), tmp_path / "demos")
    found = examine(config_of(kind), tmp_path)
    assert found.errors == ()
    assert found.demos is not None
    given = demos_of(kind)
    assert [len(d.train) for d in found.demos.tasks] == [len(d.train) for d in given.tasks]
    assert found.demos.tasks[0].train[0].features.tobytes() == (
        given.tasks[0].train[0].features.tobytes()
    )


@every_world
def test_demonstrations_of_another_world_are_one_error_and_unusable(kind: str) -> None:
    other = demos_of("gym" if kind != "gym" else "grid")
    found = examine(config_of(kind), Path(), other)
    assert found.demos is None
    assert len(found.errors) >= 1


def test_a_game_that_cannot_be_played_is_an_error_of_the_check() -> None:
    found = examine(config_of("grid", game={"method": "icl"}), Path(), demos_of("grid"))
    assert found.demos is None
    assert "icl learns from one task" in found.errors[0].message


def test_another_unit_is_refused_before_anything_is_read_as_it(tmp_path: Path) -> None:
    given = demos_of("gym")
    dataset.save(replace(given, features=(Feature("speed", "km/h"),)), tmp_path / "demos")
    found = examine(config_of("gym"), tmp_path)
    assert found.demos is None
    assert "'speed' in km/h" in found.errors[0].message
    assert "in m/s; convert them" in found.errors[0].message


def test_classes_with_several_unknowns_have_no_saturation_check() -> None:
    config = config_of("ant", game={"constraint": "? x + ? y <= ?"})
    assert "not checked" in words(examine(config, Path(), demos_of("ant")), "saturation")


def test_python_learns_what_the_command_does_from_a_file(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path)
    assert {f.severity for f in ringfence.check(path)} == {"ok"}
    learned = ringfence.learn(path, out=tmp_path / "run")
    assert learned.constraint is not None
    assert learned.constraint.delta == pytest.approx(0.5)  # the stated budget, used up
    assert learned.constraint.describe().startswith("speed <= 0.68")


def test_the_seed_is_the_callers_then_the_files_then_0(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path)

    def seed(given: int | None) -> int:
        return ask(path, None, None, None, None, given, None, "test").config.seed

    assert (seed(None), seed(3)) == (0, 3)
    own_cart.write(tmp_path, "seed = 5\n" + own_cart.TOML)
    assert (seed(None), seed(3)) == (5, 3)


def test_a_game_of_two_tasks_hands_back_two_policies(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path, two_tasks(", kwargs = { pay = 2.0 }"), rewards=None)
    learned = ringfence.learn(path, out=tmp_path / "run")
    assert list(learned.policies) == ["a", "b"]
    best = learned.summary["iterations"][learned.summary["selected"] - 1]
    for name, policy in learned.policies.items():
        assert policy.about["constraint"] == best["constraint"]["description"]
        assert policy.act([0.5], 0.0).shape == (1,)
        assert ringfence.load_policy(tmp_path / "run", name).about["task"] == name
    with pytest.raises(InvalidInput, match=r"several tasks \(a, b\); choose one with --task NAME"):
        ringfence.transfer(learned, steps=0, out=tmp_path / "t")
    done = ringfence.transfer(learned, "b", steps=0, episodes=2, out=tmp_path / "t")
    assert done.policy.about["task"] == "b"
