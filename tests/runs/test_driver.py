"""The driver, on every world: what a run learns, what it writes, and that no truth can reach it.

That a killed run ends in the same bytes: test_resuming.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringfence
from ringfence.constraints import constraint_files
from ringfence.disk import read_json, sealed_toml
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.objects import Demonstrations, Feature, J, TaskDemos, Trajectory, behaviour_of
from ringfence.report import page
from ringfence.runs import config as configs
from ringfence.runs import driver
from ringfence.runs.class_checks import warnings
from ringfence.runs.ledger import Ledger
from ringfence.runs.summary import is_whole
from ringfence.worlds.grid import read_map
from small_worlds import (
    FLOOR,
    MAP,
    PPO,
    config_of,
    demos_of,
    every_world,
    of_kinds,
    play,
    result,
    small,
)

Finished = Callable[[str], Path]


def summary_of(run: Path) -> dict[str, Any]:
    return read_json(run / "summary.json")


def changed(
    kind: str,
    train: Callable[[Trajectory], Trajectory],
    heldout: Callable[[Trajectory], Trajectory] = lambda t: t,
) -> Demonstrations:
    """The small game's demonstrations, each one put through a function."""
    given = demos_of(kind)
    tasks = tuple(
        TaskDemos(d.task, tuple(map(train, d.train)), tuple(map(heldout, d.heldout)))
        for d in given.tasks
    )
    return Demonstrations(tasks, given.features, {})


def test_a_run_that_is_stopped_in_its_analyses_has_its_answer_and_is_finished_by_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: Finished
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(driver, "parameter_interval", stopped)
        with pytest.raises(KeyboardInterrupt):
            play(run, "grid")
    early = summary_of(run)
    constraint_files.load(run / "constraint")
    assert not is_whole(early)
    assert "resume" in early["not_here"]["evidence"]
    page.write(run)
    (run / page.NAME).unlink()
    driver.drive(run)
    assert is_whole(summary_of(run))
    assert result(run) == result(finished("grid"))


def stopped(*_: Any) -> Any:
    raise KeyboardInterrupt


# What comes out ----------------------------------------------------------------------------------

HEAD = {
    "schema", "command", "world", "kind", "outcome", "method", "player", "class", "used",
    "expert_budget", "truth", "true_parameters", "seed", "versions", "demonstrations_sha256",
    "tasks", "horizon", "features", "views",
}  # fmt: skip
TOP = HEAD | {
    "unconstrained", "iterations", "selected", "constraint", "selection", "heldout", "choices",
    "budget_curve", "evidence", "doubts", "not_here", "failed_demonstrations", "env_steps",
}  # fmt: skip
SIDE = {"reward", "reward_se", "length", "cost", "true_raw", "true_cost"}
ROW = {
    "i", "constraint", "constraint_error", "updated", "updated_error", "best_payoff", "bound",
    "env_steps", "ledger", "reused", "episodes", "violations",
}  # fmt: skip
PER_TASK = {"delta", "lam", "learner_failed", "expert_updated_cost"} | {
    f"{who}_{name}" for who in ("learner", "expert") for name in SIDE
}


@every_world
def test_a_summary_has_the_contracts_fields_on_every_world(kind: str, finished: Finished) -> None:
    summary = summary_of(finished(kind))
    assert set(summary) == TOP
    assert summary["kind"] == kind
    assert summary["schema"] == 2
    assert summary["versions"]["ringfence"]
    for i, row in enumerate(summary["iterations"], start=1):
        assert set(row) == ROW | PER_TASK | {f"{name}_mean" for name in PER_TASK}
        assert row["i"] == i
        for name in PER_TASK:
            assert len(row[name]) == len(summary["tasks"])
            if None not in row[name]:
                assert row[f"{name}_mean"] == pytest.approx(np.mean(row[name]))
    for name in ("evidence", "interval", "budget_curve"):
        there = summary["constraint"]["interval"] if name == "interval" else summary[name]
        assert (there is None) == bool(summary["not_here"].get(name)), name


@every_world
def test_a_configuration_has_all_that_a_run_was_started_with(kind: str, finished: Finished) -> None:
    run, given = finished(kind), config_of(kind)
    config = configs.read(run / "config.toml")
    assert replace(config, demos=given.demos) == given
    assert sealed_toml(configs.to_toml(config)) == (run / "config.toml").read_bytes()


@every_world
def test_the_selected_constraint_is_one_of_the_iterates(kind: str, finished: Finished) -> None:
    run = finished(kind)
    summary = summary_of(run)
    iterate = run / driver.constraint_folder(summary["selected"])
    name = "weights.safetensors"
    assert (run / "constraint" / name).read_bytes() == (iterate / name).read_bytes()
    chosen, one = (constraint_files.load_document(p)[1] for p in (run / "constraint", iterate))
    for document in (chosen, one):
        document.pop("interval", None)
        document.pop("document_sha256", None)
    assert chosen == one
    saved = constraint_files.load(run / "constraint")
    experts = [behaviour_of(d.train) for d in demos_of(kind).tasks]
    assert chosen["delta"] == pytest.approx(max(J(pi, saved) for pi in experts))


@of_kinds("gym", "ant", "ant-bullet")
def test_the_saved_constraint_has_its_interval(kind: str, finished: Finished) -> None:
    saved: Any
    saved, document = constraint_files.load_document(finished(kind) / "constraint")
    low, high = document["interval"]["limit"]
    assert low < saved.offset < high


def test_the_small_wall_is_learned(finished: Finished) -> None:
    summary = summary_of(finished("grid"))
    chosen = summary["iterations"][summary["selected"] - 1]
    assert chosen["learner_true_cost"] == [0.0, 0.0]
    assert np.allclose(chosen["learner_reward"], chosen["expert_reward"])
    # The wall, and the one cell that none of three paths per task happened to cross.
    assert chosen["constraint"]["description"].endswith("row 0-2 x col 2; row 3 x col 0")


def test_the_forbidden_state_of_a_table_is_learned(finished: Finished) -> None:
    summary = summary_of(finished("tables"))
    assert summary["constraint"]["forbidden"] == 1
    assert summary["constraint"]["iou"] == 1.0
    assert summary["evidence"]["proven"] == 1


def test_the_ants_wall_is_learned(finished: Finished) -> None:
    """The learner of c_1 = 0 walks through it; the experts never do."""
    rows = summary_of(finished("ant-maze"))["iterations"]
    assert rows[0]["constraint"]["forbidden"] == 0
    assert rows[0]["learner_true_cost_mean"] > 5
    assert rows[0]["expert_true_cost_mean"] == 0
    assert rows[0]["updated"]["iou"] == 1
    assert rows[1]["learner_true_cost_mean"] == 0
    assert rows[1]["violations"] == []
    assert rows[0]["violations"][0]["where"].startswith("(0,1)")
    for row in rows:
        assert max(row["expert_cost"]) <= 0.5
        assert row["episodes"]["arrived"] == 4


def test_an_unchanged_plan_is_walked_once_and_said_so(finished: Finished) -> None:
    rows = summary_of(finished("ant-maze"))["iterations"]
    assert rows[0]["reused"] == [None, None]
    for row in rows[1:]:
        for k, walked_in in enumerate(row["reused"]):
            same = row["ledger"][k] == rows[0]["ledger"][k]
            assert (walked_in == 1) == same


@of_kinds("gym", "ant")
def test_every_update_of_the_constraint_is_the_closed_form(kind: str, finished: Finished) -> None:
    """theta = (mean expert + mean learner) / 2 over all learners so far."""
    run, speeds = finished(kind), []
    features = [f.name for f in demos_of(kind).features]
    column = features.index("speed")
    for row in summary_of(run)["iterations"]:
        solution = Ledger(run / "ledger").get(row["ledger"][0])
        assert solution is not None
        pi = solution.behaviour
        assert pi.episodes in (PPO["evaluation_episodes"], PPO["test_episodes"])
        speeds.append((pi.visits @ pi.features[:, column], pi.length))
        learner = sum(s for s, _ in speeds) / sum(n for _, n in speeds)
        expert = behaviour_of(demos_of(kind).tasks[0].train)
        mean = expert.visits @ expert.features[:, column] / expert.length
        assert row["updated"]["parameters"]["limit"] == pytest.approx((mean + learner) / 2)
        assert row["updated_error"] == pytest.approx(abs((mean + learner) / 2 - 0.5))


@of_kinds("gym", "ant")
def test_the_limit_is_the_experts_cost_and_the_annealed_buffer(
    kind: str, finished: Finished
) -> None:
    for row, buffer in zip(summary_of(finished(kind))["iterations"], (20.0, 10.0), strict=True):
        assert row["delta_mean"] == pytest.approx(row["expert_cost_mean"] + buffer)


def test_selection_is_by_all_demonstrators_and_all_learners(finished: Finished) -> None:
    run = finished("ant")
    summary, task = summary_of(run), demos_of("ant").tasks[0]
    solutions = [Ledger(run / "ledger").get(row["ledger"][0]) for row in summary["iterations"]]
    learners = [s.behaviour for s in solutions if s is not None]
    found = summary["selection"]
    assert found["learners"] == len(learners)
    for n, row in enumerate(summary["iterations"]):
        c = constraint_files.load(run / driver.constraint_folder(row["i"]))
        most = max(J(behaviour_of(side), c) for side in (task.train, task.heldout))
        charged = sum(J(pi, c) > most + 0.01 * pi.length for pi in learners)
        assert found["charged"][n] == charged
    rewards = np.array([t.rewards.sum() for t in (*task.train, *task.heldout)])
    enough = rewards.mean() - rewards.std(ddof=1) / np.sqrt(len(rewards))
    assert found["enough_reward"] == pytest.approx(enough)
    held_out = summary["heldout"]["expert_reward_mean"]
    assert held_out == pytest.approx(rewards[len(task.train) :].mean())


@every_world
def test_warnings_about_demonstrations_are_among_the_doubts(kind: str, finished: Finished) -> None:
    config, demos = config_of(kind), demos_of(kind)
    pieces = driver.assemble(config, demos)
    expected = warnings(config, pieces.family, pieces.shown, demos)
    doubts = summary_of(finished(kind))["doubts"]
    assert [doubt for doubt in doubts if doubt in expected] == expected


def test_a_limit_outside_its_intervals_for_every_budget_is_doubted() -> None:
    curve = [{"low": 0.7, "high": 0.8}, {"low": 0.6, "high": 0.65}]
    summary = {"constraint": {"interval": {"curve": curve}}}

    def said(value: float) -> list[str]:
        return driver.off_the_curve({"constraint": {"parameters": {"limit": value}}}, summary)

    assert said(0.75) == said(0.62) == said(0.68) == []
    assert "0.6 to 0.8" in said(0.5)[0]
    assert not driver.off_the_curve({"constraint": {"parameters": None}}, summary)


def test_a_warning_about_demonstrations_stands_on_top_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "warnings", lambda *_: ["the experts don't look saturated"])
    assert play(tmp_path / "run", "grid")["doubts"] == ["the experts don't look saturated"]
    page.write(tmp_path / "run")
    top = (tmp_path / "run" / page.NAME).read_text().split("<h2")[0]
    assert "the experts don&#x27;t look saturated" in top


def test_a_game_is_played_on_while_conflicts_are_unexplained_and_no_longer(tmp_path: Path) -> None:
    """c_1 forbids nothing, so its learners cross the wall; c_2 explains them."""
    summary = play(tmp_path / "one", "grid", game={"iterations": 1, "extra": 0})
    assert summary["selection"]["unexplained"] == [1]
    assert "1 of the 1 learners that earned more" in summary["doubts"][-1]
    longer = play(tmp_path / "more", "grid", game={"iterations": 1, "extra": 3, "epsilon": -1.0})
    assert longer["selection"]["unexplained"] == [1, 0]
    assert longer["doubts"] == []
    assert longer["iterations"][0] == summary["iterations"][0]


def test_extra_iterations_end_where_one_repeats_the_one_before(tmp_path: Path) -> None:
    """Careless wanderers were everywhere and earn little: no table says why learners earn more."""
    world = read_map("S..0\n.#..\n", horizon=20)
    demos = make_demonstrations(world, ExpertConfig(paths=40, noise=1.0))
    game = {"game": {"iterations": 1, "extra": 5, "epsilon": -1.0}}
    learned = ringfence.learn(world, demos, settings=game, out=tmp_path / "run")
    assert len(learned.summary["iterations"]) == 2
    assert "iteration 2 was the one before once more" in learned.doubts[-1]
    assert driver.drive(tmp_path / "run")["doubts"] == learned.doubts


# The truth ---------------------------------------------------------------------------------------


def test_no_learning_or_selection_step_can_read_the_truth(
    tmp_path: Path, finished: Finished
) -> None:
    """The same demonstrations in a world with another truth, or none: the same constraint."""
    expected, other = result(finished("grid")), ["S..0", "##..", "....", "...1"]
    for n, lines in enumerate([other, [line.replace("#", ".") for line in MAP]]):
        run = tmp_path / f"{n}"
        play(run, "grid", world={"map": lines})
        learned = result(run)
        for name in expected:
            if name.startswith(("constraint", "evidence")):
                assert learned[name] == expected[name], name
        ours, theirs = (json.loads(r["summary.json"]) for r in (learned, expected))
        assert ours["selected"] == theirs["selected"]
        mean = "learner_true_cost_mean"
        assert ours["iterations"][0][mean] != theirs["iterations"][0][mean]


@of_kinds("gym", "ant-maze", "tables")
def test_another_truth_teaches_nobody_anything(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    truths = {
        "gym": {"truth": "speed <= 0.9"},
        "tables": {"forbidden": [4]},
        "ant-maze": {"map": [line.replace("#", ".") for line in FLOOR]},
    }
    play(tmp_path / "run", kind, world=truths[kind])
    ours, theirs = result(tmp_path / "run"), result(finished(kind))
    weights = [name for name in theirs if name.endswith("weights.safetensors")]
    assert len(weights) > 1
    assert all(ours[name] == theirs[name] for name in weights)
    assert summary_of(tmp_path / "run")["selected"] == summary_of(finished(kind))["selected"]


@of_kinds("grid", "tables", "gym", "ant", "ant-maze")
def test_an_unknown_truth_is_null_never_zero(kind: str, tmp_path: Path) -> None:
    without = {
        "grid": {"map": [line.replace("#", ".") for line in MAP]},
        "ant-maze": {"map": [line.replace("#", ".") for line in FLOOR]},
        "tables": {"forbidden": []},
    }
    summary = play(tmp_path / "run", kind, world=without.get(kind, {"truth": ""}))
    for row in summary["iterations"]:
        for who in ("learner", "expert"):
            for name in ("true_cost", "true_raw"):
                assert set(row[f"{who}_{name}"]) == {None}
                assert row[f"{who}_{name}_mean"] is None
        assert row["constraint_error"] is None
        assert row["updated_error"] is None
        assert row["constraint"]["iou"] is None
        assert row["violations"] is None
    assert summary["truth"] is None
    assert summary["true_parameters"] is None
    assert summary["choices"]["truth"] is None


# Other games -------------------------------------------------------------------------------------

ONE_TASK = {"method": "icl", "tasks": ["goal (0,3)"]}


@pytest.mark.parametrize(
    "tables",
    [
        {"player": {"kind": "ftrl"}},
        {"game": ONE_TASK},
        {"game": {**ONE_TASK, "tasks": ["0"]}},
        {"game": {**ONE_TASK, "buffer": 2.0, "anneal": 1.0}},
        {"game": {**ONE_TASK, "constraint": "linear"}, "player": {"restricted": False}},
        {"game": {"constraint": "linear"}},
        {"game": {"constraint": "col <= ?"}, "player": {"kind": "payoff"}},
        {"demos": {"experts": "exact"}},
        {"solver": {"kind": "lp"}},
        {"solver": {"kind": "lagrangian"}},
        {"opening": {"initial": "free"}},
        {"opening": {"probe": True}},
    ],
    ids=str,
)
def test_other_games_on_a_map_end_with_a_constraint(tmp_path: Path, tables: dict) -> None:
    summary = play(tmp_path / "run", "grid", **tables)
    constraint_files.load_document(tmp_path / "run" / "constraint")
    assert all(np.isfinite(row["learner_reward_mean"]) for row in summary["iterations"])
    assert "data-i" in page.render(tmp_path / "run")


@pytest.mark.parametrize(
    "tables",
    [
        {"player": {"kind": "payoff", "expert_budget": 3.0}},
        {"player": {"weighted": True}},
        {"game": {"constraint": "? x + ? y <= ?"}},
        {"world": {"full_state": True}, "game": {"constraint": "linear"},
         "opening": {"initial": "free"}},
        {"game": {"constraint": "mlp"}, "player": {"network": {"hidden": [8], "steps": 50}},
         "opening": {"initial": "free"}},
        {"game": {"stop_share": 0.5}, "opening": {"carry": "critics"}},
        {"opening": {"carry": "nothing"}},
        {"opening": {"kind": "none"}},
        {"solver": {"start_share": 0.5}},
    ],
    ids=["payoff", "weighted", "line", "full state", "network", "critics", "anew", "no clone",
         "starts"],
)  # fmt: skip
def test_other_classes_and_players_play_on_the_ant(tmp_path: Path, tables: dict) -> None:
    summary = play(tmp_path / "run", "ant", **tables)
    assert len(summary["iterations"]) == 2
    assert "data-i" in page.render(tmp_path / "run")
    networks = summary["class"] == "mlp"
    assert bool(summary["constraint"]["parameters"]) != networks
    if summary["player"] == "payoff":
        first = summary["iterations"][0]
        assert first["expert_cost_mean"] == pytest.approx(3.0)
        assert summary["expert_budget"] == 3.0


def test_the_probe_is_not_stopped_at_what_is_enough_in_the_game(tmp_path: Path) -> None:
    """Even where a share of the experts' reward, which is next to nothing here, stops a solve."""
    summary = play(
        tmp_path / "run",
        "ant",
        opening={"probe": True, "initial": "free"},
        game={"stop_share": 1e-6},
        solver={"window": 1},
    )
    assert summary["unconstrained"]["env_steps"] == PPO["env_steps"]
    assert summary["iterations"][0]["env_steps"] < summary["unconstrained"]["env_steps"]


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tables", "words"),
    [
        ("grid", {"game": {"method": "icl"}}, r"one task, there are 2 \(goal \(0,3\), goal"),
        ("grid", {"game": {"tasks": ["goal (9,9)"]}}, r"'goal \(9,9\)' is not in the world"),
        ("grid", {"player": {"kind": "payoff"}}, "payoff is for inequalities"),
        ("grid", {"game": {"on": ["row"]}}, r"\[game\] on is for 'linear' and 'mlp'"),
        ("grid", {"opening": {"kind": "clone"}}, "for solvers that learn, such as ppo"),
        ("ant", {"game": {"constraint": "speed <= 1"}}, "nothing in it is to be learned"),
        ("ant", {"game": {"constraint": "height <= ?"}}, "no feature 'height'"),
        ("ant", {"game": {"constraint": "linear", "on": ["height"]}}, "no feature 'height'"),
        ("ant", {"game": {"constraint": "table(x, z)"}}, "can't read 'z'"),
        ("ant", {"game": {"on": ["x"]}}, r"\[game\] on is for 'linear' and 'mlp'"),
        ("ant", {"game": {"constraint": "mlp"}, "player": {"kind": "payoff"}}, "payoff is for"),
        ("ant", {"player": {"kind": "ftrl"}}, "ftrl needs a convex class"),
        ("ant", {"player": {"tolerance": 1.0}}, "tolerance is for the class 'mlp'"),
        (
            "ant",
            {"game": {"constraint": "? x - y <= 0"}, "player": {"kind": "payoff"}},
            "within a budget of 0 per episode",
        ),
        ("ant", {"world": {"truth": "height <= 1"}}, "no feature 'height'"),
        ("gym", {"solver": {"start_share": 0.5}}, "can't begin at demonstrated states"),
        ("ant-maze", {"game": {"method": "icl"}}, "icl learns from one task, there are 2"),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_is_written(
    tmp_path: Path, kind: str, tables: dict, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        driver.create(tmp_path / "run", *small(kind, **tables))
    assert list(tmp_path.iterdir()) == []


def test_a_constraint_that_shuts_the_experts_out_is_said(tmp_path: Path) -> None:
    """Unrestricted FTRL puts cost on experts' cells: limit 0 can't be kept."""
    with pytest.raises(InfeasibleLimit, match=r"iteration 3, goal \(0,3\)"):
        play(tmp_path / "run", "grid", player={"kind": "ftrl", "restricted": False})


@of_kinds("gym", "ant")
def test_a_feature_that_never_varies_is_refused(kind: str, tmp_path: Path) -> None:
    still = changed(kind, lambda t: replace(t, features=0 * t.features))
    with pytest.raises(InvalidInput, match=r"'speed' is 0 in every step"):
        driver.create(tmp_path / "run", config_of(kind), still)


@every_world
def test_no_held_out_demonstrations_are_refused(kind: str, tmp_path: Path) -> None:
    given = demos_of(kind)
    only = tuple(TaskDemos(d.task, d.train, ()) for d in given.tasks)
    with pytest.raises(InvalidInput, match="held-out"):
        driver.create(tmp_path / "run", config_of(kind), replace(given, tasks=only))


def doubled(t: Trajectory) -> dict[str, Any]:
    return {
        "observations": np.vstack([t.observations, t.observations[1:]]),
        "actions": np.vstack([t.actions] * 2),
        "rewards": np.hstack([t.rewards] * 2),
        "features": np.vstack([t.features] * 2),
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {"observations": t.observations[:, :5]}, r"\(31, 27\): not demonstrations of"),
        (lambda t: {"actions": t.actions[:, :5]}, r"actions have shape \(30, 5\).* \(30, 8\)"),
        (lambda t: {"actions": t.actions + 1e6}, r"action 0 is 1e\+06 at step 0, outside its box"),
        (doubled, "60 steps, but episodes of 'ant' have at most 30"),
    ],
    ids=["observations", "actions", "box", "horizon"],
)
def test_demonstrations_of_another_world_are_refused(tmp_path: Path, change: Any, words: str):
    def other(t: Trajectory) -> Trajectory:
        return replace(t, **change(t))

    with pytest.raises(InvalidInput, match=words):
        driver.create(tmp_path / "run", config_of("ant"), changed("ant", other, other))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("full_state", [False, True])
def test_demonstrations_in_another_unit_are_refused(tmp_path: Path, full_state: bool) -> None:
    given = demos_of("ant")
    features = tuple(Feature(f.name, f.unit.replace("m/s", "km/h")) for f in given.features)
    with pytest.raises(InvalidInput, match=r"'speed' in km/h, task 'ant' in m/s; convert them"):
        driver.create(
            tmp_path / "run",
            config_of("ant", world={"full_state": full_state}),
            replace(given, features=features),
        )


# Folders -----------------------------------------------------------------------------------------


def test_an_existing_folder_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine").touch()
    with pytest.raises(InvalidInput, match="exists and is not a run"):
        driver.create(tmp_path / "run", *small("grid"))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_an_empty_folder_becomes_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    driver.create(tmp_path / "run", *small("grid"))
    assert (tmp_path / "run/config.toml").is_file()
    with pytest.raises(InvalidInput, match="exists already; go on with 'ringfence resume"):
        driver.create(tmp_path / "run", *small("grid"))


def test_the_working_folder_does_not_become_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="exists and is not a run"):
        driver.create(Path("."), *small("grid"))
