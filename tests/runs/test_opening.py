"""Before the game: clones, unconstrained learners, and where each solve begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from ringfence.disk import read_json
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Demonstrations, Solution, TaskDemos, behaviour_of
from ringfence.players.player import Begun
from ringfence.runs import driver
from ringfence.runs.config import make_world
from ringfence.runs.demonstrated import Demonstrated, match
from ringfence.runs.driver import assemble
from ringfence.runs.ledger import Ledger
from ringfence.runs.opening import (
    check_opening,
    follow,
    no_constraint,
    open_game,
    shows_nothing,
)
from ringfence.runs.training import make_demonstrations
from small_worlds import PPO, config_of, demos_of, play, result, small

Finished = Callable[[str], Path]


def solution(reward: float, speed: float, **policy: Array) -> Solution:
    """A learner of the cart's that earns so much at one speed, over 30 steps."""
    pi = Behaviour(np.full((1, 1), speed), np.array([30.0]), reward, 0.0, 30.0, 1)
    return Solution(policy, 0.0, pi, 100)


class Answers:
    """In the place of solves: notes what it is asked for and answers with one solution."""

    def __init__(self, *answers: Solution, learns: bool = True) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, Any]]()
        self.solver = type("Solver", (), {"learns": learns})

    def __call__(self, problems: Sequence[Any], way: str = "solve") -> list[Solution]:
        self.asked += [(way, problem) for problem in problems]
        return self.answers[: len(problems)]


def opened(run: Path, solves: Any, events: list[dict[str, Any]], **tables: Any) -> Any:
    config, demos = small("gym", **tables)
    pieces = assemble(config, demos)
    return open_game(run, config, pieces.shown, pieces.player, solves, {}, events.append), pieces


# Clones ------------------------------------------------------------------------------------------


def test_clones_are_made_once_and_read_afterwards(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for _ in range(2):
        found, _ = opened(tmp_path, Answers(solution(1.0, 0.5)), events)
    assert [e["event"] for e in events] == ["cloning"]
    clone = safetensors.numpy.load_file(tmp_path / "start" / "0.safetensors")
    begin = found.begin(0, None)
    assert {k: v.tobytes() for k, v in begin.items()} == {k: v.tobytes() for k, v in clone.items()}
    file = tmp_path / "start" / "0.safetensors"
    other = {k: np.asarray(v + 1) for k, v in clone.items()}  # whole, but another policy
    for content in (b"torn", safetensors.numpy.save(other)):
        events.clear()
        file.write_bytes(content)
        found, _ = opened(tmp_path, Answers(solution(1.0, 0.5)), events)
        assert [e["event"] for e in events] == ["damaged", "cloning"]
        again = found.begin(0, None)
        assert {k: v.tobytes() for k, v in again.items()} == {
            k: v.tobytes() for k, v in clone.items()
        }


def test_the_first_constraint_answers_to_what_the_clone_does(tmp_path: Path) -> None:
    """theta = (mean expert + mean learner) / 2; a watched policy isn't trained."""
    solves = Answers(solution(1.0, 0.8))
    found, pieces = opened(tmp_path, solves, [])
    assert [way for way, _ in solves.asked] == ["watch"]
    assert isinstance(found.player, Begun)
    expert = pieces.shown.train[0]
    mean = float(expert.visits @ expert.features[:, 0] / expert.length)
    assert found.player.initial().offset == pytest.approx((mean + 0.8) / 2)


def test_the_first_constraint_may_answer_to_an_unconstrained_learner(tmp_path: Path) -> None:
    solves = Answers(solution(1.0, 0.9))
    found, pieces = opened(tmp_path, solves, [], opening={"initial": "free"})
    assert [way for way, _ in solves.asked] == ["free"]
    assert found.free is not None
    expert = pieces.shown.train[0]
    mean = float(expert.visits @ expert.features[:, 0] / expert.length)
    assert found.player.initial().offset == pytest.approx((mean + 0.9) / 2)


def test_without_an_opening_nothing_is_solved_and_solves_begin_from_nothing(tmp_path: Path) -> None:
    solves = Answers()
    found, pieces = opened(tmp_path, solves, [], opening={"kind": "none"})
    assert solves.asked == []
    assert found.player is pieces.player
    assert found.begin(0, None) is None
    assert not (tmp_path / "start").exists()


def test_only_solvers_that_learn_have_clones() -> None:
    with pytest.raises(InvalidInput, match="'soft' begins from nothing: use 'none'"):
        check_opening(config_of("grid", opening={"kind": "clone"}), learns=False)


# What a solve takes over -------------------------------------------------------------------------


def actor(value: float) -> dict[str, Array]:
    return {"actor/w0": np.full((2, 1), value), "actor/b0": np.zeros(1)}


LAST = solution(
    1.0, 0.5, **actor(2.0), **{"critic/w0": np.ones((2, 1)), "norm/mean": np.zeros(2),
                               "norm/std": np.ones(2), "multiplier/integral": np.array(3.0)},
)  # fmt: skip


def test_nothing_the_critics_or_all_of_the_last_policy_goes_on(tmp_path: Path) -> None:
    cloned = {**actor(1.0), "norm/mean": np.zeros(2), "norm/std": np.ones(2)}
    for carry in ("nothing", "critics", "policy"):
        assert follow(carry, cloned, None) is cloned
        assert follow(carry, None, None) is None
    assert follow("nothing", cloned, LAST) is cloned
    assert follow("policy", cloned, LAST) is LAST.policy
    both = follow("critics", cloned, LAST)
    assert both is not None
    np.testing.assert_allclose(both["actor/w0"], 1.0)  # the clone's
    assert both["critic/w0"] is LAST.policy["critic/w0"]
    assert "multiplier/integral" not in both
    alone = follow("critics", None, LAST)
    assert alone is not None
    assert set(alone) == {"critic/w0", "norm/mean", "norm/std"}


def test_the_critics_inputs_are_normalised_as_they_were(tmp_path: Path) -> None:
    """The clone's actor is brought to the critics' statistics, and acts as it did."""
    cloned = {**actor(1.0), "norm/mean": np.zeros(2), "norm/std": np.ones(2)}
    policy = {**LAST.policy, "norm/mean": np.array([1.0, 0.0]), "norm/std": np.array([2.0, 1.0])}
    both: Any = follow("critics", cloned, replace(LAST, policy=policy))
    for seen in np.random.default_rng(0).normal(size=(5, 2)):
        old = seen @ cloned["actor/w0"] + cloned["actor/b0"]
        new = ((seen - both["norm/mean"]) / both["norm/std"]) @ both["actor/w0"] + both["actor/b0"]
        np.testing.assert_allclose(new, old, rtol=1e-5)


# Is there anything to learn? ---------------------------------------------------------------------


def shown_at(*speeds: float) -> Demonstrated:
    """The cart's demonstrations, at these mean speeds, each earning 10."""
    (task,) = demos_of("gym").tasks
    made = [
        replace(t, features=np.full_like(t.features, v), rewards=np.full(len(t), 10.0 / len(t)))
        for t, v in zip(task.train, speeds, strict=False)
    ]
    demos = Demonstrations(
        (TaskDemos(task.task, tuple(made), tuple(made[:1])),), demos_of("gym").features, {}
    )
    config = config_of("gym")
    return match(config, assemble(config, demos_of("gym")).world, demos)


@pytest.mark.parametrize(
    ("reward", "speed", "nothing"),
    [
        (10.0, 0.5, True),  # it does what they do
        (10.1, 0.5, False),  # it earns more
        (9.0, 0.55, True),  # as the fastest of them
        (9.0, 0.9, False),  # it earns less, but does otherwise: perhaps it learned too little
    ],
)
def test_a_constraint_is_needed_where_a_free_learner_earns_more_or_does_otherwise(
    reward: float, speed: float, nothing: bool
) -> None:
    shown, player = shown_at(0.4, 0.5, 0.6), assemble(*small("gym")).player
    assert shows_nothing(shown, player, [solution(reward, speed)]) == nothing


def test_where_nothing_is_to_learn_no_game_is_played(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("ringfence.runs.opening.shows_nothing", lambda *_: True)
    run = tmp_path / "run"
    summary = play(run, "gym", opening={"probe": True})
    assert summary["outcome"] == "no constraint needed"
    assert summary["iterations"] == []
    assert summary["constraint"] is None
    assert summary["env_steps"] == summary["unconstrained"]["env_steps"] == PPO["env_steps"]
    assert not (run / "constraint").exists()
    (name,) = summary["unconstrained"]["ledger"]
    assert Ledger(run / "ledger").get(name) is not None
    assert driver.drive(run) == read_json(run / "summary.json")
    with pytest.raises(InvalidInput, match="no constraint was needed, so there is no game"):
        driver.extend(run, 5)


@pytest.mark.parametrize(("lines", "needed"), [(["S..0", "####"], False), (["S#.0", "...."], True)])
def test_on_a_map_a_wall_is_learned_only_where_it_is_in_the_way(
    tmp_path: Path, lines: list[str], needed: bool
) -> None:
    config = config_of("grid", world={"map": lines}, solver={"kind": "lp"}, opening={"probe": True})
    few = {"paths": 3, "heldout": 2}
    demos = make_demonstrations(config.world, make_world(config.world), few, None, Path())
    driver.create(tmp_path / "run", config, demos)
    summary = driver.drive(tmp_path / "run")
    assert (summary["outcome"] == "constraint") == needed
    assert bool(summary["iterations"]) == needed


def test_a_probe_is_beside_the_game_and_changes_none_of_its_constraints(
    tmp_path: Path, finished: Finished
) -> None:
    summary = play(tmp_path / "run", "gym", opening={"probe": True})
    assert summary["outcome"] == "constraint"
    probe = summary["unconstrained"]
    assert probe["learner_cost"] == [0.0]
    assert summary["env_steps"] == 3 * PPO["env_steps"]
    ours, theirs = result(tmp_path / "run"), result(finished("gym"))
    weights = [name for name in theirs if name.endswith("weights.safetensors")]
    assert weights
    assert all(ours[name] == theirs[name] for name in weights)


def test_no_constraint_costs_nothing_anywhere() -> None:
    c = no_constraint(shown_at(0.4, 0.5))
    assert not c.cost(np.array([[-9.0], [0.0], [9.0]])).any()
    assert behaviour_of(demos_of("gym").tasks[0].train).reward != 0
