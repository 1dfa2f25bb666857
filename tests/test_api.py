"""Ringfence from Python, on objects, on every world; what the command does is one call."""

from __future__ import annotations

import gc
import html
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest

import own_cart
import ringfence as rf
from own_cart import Cart
from ringfence import api
from ringfence.cli.main import main
from ringfence.demos import dataset
from ringfence.disk import read_json
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Finding
from ringfence.runs import config as configs
from ringfence.runs import driver
from small_worlds import (
    GYM,
    LEARNING,
    MAP,
    PPO,
    demos_of,
    document,
    every_world,
    of_kinds,
    result,
    strip,
)

Finished = Callable[[str], Path]
SPEED = ["speed:m/s"]
SETTINGS = {name: table for name, table in LEARNING.items() if name != "game"}
SHORT = {**SETTINGS, "game": {"iterations": 1}}


def episodes(count: int = 6, seeds: bool = True) -> list[dict[str, Any]]:
    """A driver's logs as arrays, one mapping for each."""
    given, T = own_cart.arrays((0.75,) * count), own_cart.STEPS
    found = []
    for n in range(count):
        steps = slice(n * T, (n + 1) * T)
        found.append(
            {
                "observations": given["observations"][n * (T + 1) : (n + 1) * (T + 1)],
                "actions": given["actions"][steps],
                "rewards": given["rewards"][steps],
                "infos": {"speed": given["info/speed"][steps]},
                **({"seed": n} if seeds else {}),
            }
        )
    return found


# Learning ----------------------------------------------------------------------------------------


@every_world
def test_a_call_learns_what_the_command_does(kind: str, finished: Finished, tmp_path: Path) -> None:
    """The same demonstrations and settings: the same bytes, but for the words of the command."""
    if kind == "ant-bullet":
        pytest.skip("its game is played often enough")
    given = document(kind)
    learned = rf.learn(
        given.pop("world"), demos_of(kind), seed=given.pop("seed"), settings=given,
        command="ringfence learn", out=tmp_path / "run",
    )  # fmt: skip
    assert result(tmp_path / "run") == result(finished(kind))
    assert learned.summary == read_json(tmp_path / "run" / "summary.json")


def test_without_a_folder_everything_is_in_memory_and_can_be_kept(tmp_path: Path) -> None:
    learned = rf.learn(strip(), settings={"game": {"iterations": 3}})
    place = learned.folder
    assert learned.constraint is not None
    assert learned.constraint.describe() in repr(learned)
    assert learned.evidence is not None
    assert learned.evidence.counts()["proven"] == 1
    assert learned.policies == {}
    assert learned.doubts == learned.summary["doubts"]
    kept = learned.save(tmp_path / "kept")
    assert result(kept) == result(place)
    assert "<html" in learned.report(tmp_path / "page.html").read_text()
    with pytest.raises(InvalidInput, match="exists already and is finished"):
        learned.save(tmp_path / "kept")
    del learned
    gc.collect()
    assert not place.exists()
    assert driver.drive(kept)["selected"]


def test_demonstrations_of_the_worlds_own_experts_are_made_where_that_takes_seconds() -> None:
    learned = rf.learn(rf.read_map("\n".join(MAP)), seed=4)
    assert learned.summary["constraint"]["iou"] == 1.0
    with pytest.raises(InvalidInput, match="no demonstrations: give --demos"):
        rf.learn(GYM, None, "speed <= ?", settings=SETTINGS)


def test_a_folder_of_demonstrations_is_as_good_as_the_object(tmp_path: Path) -> None:
    dataset.save(demos_of("grid"), tmp_path / "demos")
    world = document("grid")["world"]
    one = rf.learn(world, tmp_path / "demos", seed=0)
    two = rf.learn(world, demos_of("grid"), seed=0)
    assert one.summary["demonstrations_sha256"] == two.summary["demonstrations_sha256"]
    assert one.summary["iterations"] == two.summary["iterations"]


def test_the_seed_is_the_calls_then_the_files_then_0(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path)
    for text, seed, found in (("", None, 0), ("seed = 5\n", None, 5), ("seed = 5\n", 3, 3)):
        path.write_text(text + own_cart.TOML)
        asked = api.ask(path, None, None, None, None, seed, None, "")
        assert asked.config.seed == found


def test_settings_of_a_call_go_over_those_of_a_file(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path)
    asked = api.ask(path, None, "speed <= ?", None, None, None, {"game": {"iterations": 7}}, "x")
    assert (asked.config.game.iterations, asked.config.command) == (7, "x")
    assert asked.config.player.expert_budget == 0.5  # the file's
    assert asked.base == tmp_path


def test_what_is_wrong_is_said_before_anything_is_played(tmp_path: Path) -> None:
    found: list[Finding] = []
    with pytest.raises(InvalidInput, match=r"goal \(0,3\).*no such task"):
        rf.learn("maze", demos_of("grid"), out=tmp_path / "run", on_finding=found.append)
    assert {f.severity for f in found} == {"error"}
    with pytest.raises(InvalidInput, match=r"\[game\] rounds: unknown"):
        rf.learn(strip(), settings={"game": {"rounds": 1}}, out=tmp_path / "run")
    with pytest.raises(InvalidInput, match="--workers must be at least 1"):
        rf.learn(strip(), workers=0, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_check_tells_all_that_can_be_said() -> None:
    findings = rf.check(Cart, {"Cart": episodes()}, "speed <= ?", features=SPEED, steps=50)
    assert {f.severity for f in findings} == {"ok"}
    assert "error" in {f.severity for f in rf.check("maze", demos_of("grid"))}


@every_world
def test_every_worlds_run_has_a_page(kind: str, finished: Finished, tmp_path: Path) -> None:
    learned = api.read_learned(finished(kind))
    text = learned.report(tmp_path / "page.html").read_text()
    assert learned.constraint is not None
    for row in learned.summary["iterations"]:
        assert f'data-i="{row["i"]}"' in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    for reason in learned.summary["not_here"].values():
        assert html.escape(reason) in text


# Environments as functions -----------------------------------------------------------------------


def test_a_function_with_a_name_makes_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    learned = rf.learn(
        {"cart": own_cart.make_cart}, {"cart": episodes()}, "speed <= ?", features=SPEED,
        steps=50, settings=SHORT, out=tmp_path / "run", workers=2,
    )  # fmt: skip
    before = result(tmp_path / "run")
    assert configs.read(tmp_path / "run/config.toml").world.env == "own_cart:make_cart"
    (tmp_path / "run" / "summary.json").unlink()
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert result(tmp_path / "run") == before
    action = learned.policies["cart"].act(np.array([0.5]))
    assert action.shape == (1,)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> api.Learned:
    """A game with two functions that nothing can name."""
    pay = 2.0
    makers = {"slow": lambda: Cart(), "fast": lambda: Cart(pay=pay)}
    twice = [{k: v for k, v in e.items() if k != "rewards"} for e in episodes()]
    settings = {**SHORT, "player": {"kind": "payoff", "expert_budget": 0.5}}
    return rf.learn(
        makers, {"slow": episodes(), "fast": twice}, "speed <= ?", features=SPEED, steps=50,
        settings=settings, out=tmp_path_factory.mktemp("closed") / "run",
    )  # fmt: skip


def test_closures_are_played_in_this_process(closed: api.Learned) -> None:
    assert closed.summary["tasks"] == ["slow", "fast"]
    assert closed.summary["kind"] == "python"
    assert set(closed.policies) == {"slow", "fast"}
    paid = closed.summary["iterations"][0]["expert_reward"]
    assert paid[1] == pytest.approx(2 * paid[0])


@pytest.mark.parametrize("words", [[], ["--iterations", "2"]])
def test_resuming_closures_says_why_it_cannot(
    closed: api.Learned, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(closed.folder, run)
    if not words:
        (run / "summary.json").unlink()
    before = result(run)
    assert main(["resume", str(run), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "made by Python objects (functions that make environments: slow, fast)" in line
    assert "a killed run can't be resumed" in line
    assert "into a module" in line
    assert result(run) == before


def test_workers_for_closures_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="workers can't share it"):
        rf.learn(
            lambda: Cart(), {"task": episodes()}, "speed <= ?", features=SPEED, steps=50,
            settings=SHORT, workers=2, out=tmp_path / "run",
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_closures_constraint_is_transferred_and_evaluated_as_an_object(
    closed: api.Learned,
) -> None:
    solved = rf.transfer(closed, lambda: Cart(pay=3.0), solver={"env_steps": 256}, episodes=2)
    assert closed.constraint is not None
    assert solved.summary["constraint"]["description"] == closed.constraint.describe()
    assert solved.policy.act(np.array([0.1])).shape == (1,)
    given = rf.evaluate(closed, demonstrations=closed.folder / "demos")
    assert given["demonstrations"]["tasks"] == ["slow", "fast"]


def test_environments_need_features() -> None:
    with pytest.raises(InvalidInput, match="say what the constraint may be about"):
        rf.learn(Cart, episodes(), "speed <= ?", steps=50)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bus": episodes()}, "task 'bus': this world has Cart"),
        ({"Cart": [{"actions": np.zeros((2, 1))}] * 3}, "no 'observations'; it has actions"),
        ({"Cart": [3, 4]}, "a int; give a mapping of arrays"),
        (3, "got int"),
        ({"Cart": episodes(1)}, "1 episodes; at least 2 are needed"),
    ],
)
def test_demonstrations_that_are_none_are_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        rf.learn(Cart, given, "speed <= ?", features=SPEED, steps=50, settings=SHORT)


def test_a_minari_dataset_is_learned_from(tmp_path: Path) -> None:
    world = {**GYM, "steps": own_cart.STEPS}
    given = api.ask(world, episodes(), "speed <= ?", None, None, 0, SHORT, "").examine()
    assert given.demos is not None
    dataset.save(given.demos, tmp_path / "demos")
    opened = minari.MinariDataset(tmp_path / "demos" / "task-00-v0" / "data")
    one, two = (
        rf.learn(world, shown, "speed <= ?", settings=SHORT) for shown in (opened, episodes())
    )
    assert one.summary["iterations"] == two.summary["iterations"]


# Finite tables -----------------------------------------------------------------------------------


def test_a_rule_that_is_not_in_the_reward_is_learned_on_cliff_walking() -> None:
    """Its tables without the -100, and without the way back to the start, of who falls."""
    P, r = rf.from_gymnasium(gymnasium.make("CliffWalking-v1").unwrapped.P)  # type: ignore[attr-defined]
    cliff, row, col = range(37, 47), *np.divmod(np.arange(48), 12)
    falls = r == -100.0
    for s, a in np.argwhere(falls):
        down, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[a]
        P[s, a] = np.eye(48)[12 * min(row[s] + down, 3) + col[s] + right]
    assert set(cliff) <= set(P[falls].argmax(axis=1))
    world = rf.table_world(
        P, {"walk": np.where(falls, -1.0, r)}, 36, horizon=20, name="cliff", forbidden=list(cliff)
    )
    learned = rf.learn(world, settings={"game": {"iterations": 8}})
    best = learned.summary["iterations"][learned.summary["selected"] - 1]
    assert learned.summary["iterations"][0]["learner_true_cost_mean"] > 5
    assert best["learner_true_cost_mean"] == 0.0


@pytest.fixture(scope="module")
def lake() -> rf.TableWorld:
    """FrozenLake without ice, from four starts: be quick, until the episode ends. Who falls into a
    hole has ended quickly."""
    env: Any = gymnasium.make("FrozenLake-v1", is_slippery=False).unwrapped
    P, _ = rf.from_gymnasium(env.P)
    letters = env.desc.ravel()
    hurry = np.where(np.isin(letters, [b"H", b"G"]), 0.0, -1.0)
    starts = {f"from {s}": s for s in (0, 3, 6, 8)}
    return rf.table_world(
        P, dict.fromkeys(starts, hurry), starts, horizon=20, name="lake",
        features=[rf.Feature("row", "cell"), rf.Feature("col", "cell")],
        values=np.argwhere(np.ones((4, 4))), forbidden=np.flatnonzero(letters == b"H"),
    )  # fmt: skip


def test_all_holes_of_frozen_lake_are_proven_and_a_new_start_keeps_off_them(
    lake: rf.TableWorld, tmp_path: Path
) -> None:
    learned = rf.learn(lake)
    assert learned.summary["constraint"]["iou"] == 1.0
    assert learned.evidence is not None
    assert learned.evidence.counts()["proven"] == 4
    hurry = lake.tasks[0].mdp.reward[:, 0]
    solved = rf.transfer(learned, {"reward": hurry, "start": 1})
    assert (solved.summary["covered"], solved.summary["true_cost"]) == (True, 0)
    assert solved.summary["reward"] == pytest.approx(-5)
    found = rf.evaluate(learned, lake)
    assert (found["truth"]["iou"], found["truth"]["impossible"]) == (1.0, 0)
    free = rf.solve(lake, "none", task="from 3")
    kept = rf.solve(lake, learned.constraint, task="from 3")
    assert free.summary["reward"] > kept.summary["reward"]
    assert free.summary["true_cost"] > 0 == kept.summary["true_cost"]
    run = learned.save(tmp_path / "run")  # tables are in the configuration, so anyone goes on
    assert main(["resume", str(run)]) == 0


def test_paths_of_tables_are_states_and_actions(lake: rf.TableWorld) -> None:
    """Down the left side and along the bottom: 0 left, 1 down, 2 right."""
    path = {"observations": [0, 4, 8, 9, 13, 14, 15], "actions": [1, 1, 2, 1, 2, 2]}
    findings = rf.check(lake, {"from 0": [path] * 2})
    assert "error" not in {f.severity for f in findings}
    fell = {"observations": [0, 4, 5], "actions": [1, 1]}
    (error, *_) = [f for f in rf.check(lake, {"from 0": [fell] * 2}) if f.severity == "error"]
    assert "action 1 can't lead from state 4 to state 5" in error.message
    learned = rf.learn(lake, {"from 0": [path] * 3}, settings={"game": {"method": "icl"}})
    assert learned.summary["tasks"] == ["from 0"]


# Transfer, on every world ------------------------------------------------------------------------

NEW: dict[str, Any] = {
    "grid": {"goal": (3, 3), "start": (1, 1)},
    "tables": {"reward": np.eye(6)[5], "start": 3},
    "gym": {"name": "slowly", "reward": "own_cart:slowly"},
    "ant": {"name": "other way"},
    "ant-maze": {"goal": (0, 2), "start": (1, 0)},
}


@of_kinds("grid", "tables", "gym", "ant-maze")
def test_a_new_task_is_solved_under_the_learned_constraint(
    kind: str, finished: Finished, tmp_path: Path
) -> None:
    said: list[str] = []
    more = {"solver": {"env_steps": 256}, "episodes": 2} if kind == "gym" else {}
    solved = rf.transfer(finished(kind), NEW[kind], out=tmp_path / "t", say=said.append, **more)
    learned = read_json(finished(kind) / "summary.json")
    weights = "constraint/weights.safetensors"
    assert (tmp_path / "t" / weights).read_bytes() == (finished(kind) / weights).read_bytes()
    assert solved.summary["kind"] == kind
    assert learned["evidence"] is not None
    if kind != "gym":
        assert len(said) == 1
        assert ": covered" in said[0]
        assert (solved.summary["covered"], solved.summary["unknown"]) == (True, "avoid")
        assert solved.summary["true_cost"] == 0
    else:  # nothing can plan over its cells
        covered = solved.summary["leaving_episodes"] == 0
        assert (solved.summary["covered"], solved.summary["unknown"]) == (covered, "allow")


@every_world
def test_a_runs_own_task_is_solved_again(kind: str, finished: Finished, tmp_path: Path) -> None:
    tasks = read_json(finished(kind) / "summary.json")["tasks"]
    name = tasks[0] if len(tasks) > 1 else None
    trained = kind in ("gym", "ant", "ant-bullet")
    more: dict[str, Any] = {"steps": 256, "episodes": 2} if trained else {}
    solved = rf.transfer(finished(kind), name, out=tmp_path / "t", **more)
    assert solved.summary["task"] == tasks[0]
    assert np.isfinite(solved.summary["reward"])
    assert (tmp_path / "t" / "policy" / "policy.safetensors").is_file()


@of_kinds("gym")
def test_a_trained_policy_is_told_to_keep_to_known_cells(
    kind: str, finished: Finished, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"steps": 256, "episodes": 2, "out": tmp_path / "t"}
    solved = rf.transfer(finished(kind), unknown="avoid", **more).summary
    assert solved["unknown"] == "avoid"
    assert solved["covered"] == (solved["leaving_episodes"] == 0)
    assert bool(solved["unknown_cells"]) == (solved["leaving_episodes"] > 0)


@of_kinds("gym", "ant", "ant-bullet")
def test_who_knows_of_no_cells_cannot_keep_to_them(
    kind: str, finished: Finished, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished(kind), tmp_path / "run"))
    (run / "evidence.json").unlink()
    with pytest.raises(InvalidInput, match=r"--unknown avoid keeps to cells .*--unknown allow"):
        rf.transfer(run, unknown="avoid", out=tmp_path / "t")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("grid", {"goal": (3, 0), "start": (0, 0)}),
        ("tables", {"reward": np.eye(6)[1], "start": 0}),
        ("ant-maze", {"goal": (0, 1), "start": (0, 0)}),
    ],
)
def test_a_way_through_unknown_cells_is_avoided_or_allowed(
    kind: str, task: dict[str, Any], tmp_path: Path, finished: Finished
) -> None:
    """The cell was neither walked nor, in the copy, is it forbidden."""
    run = tmp_path / "run"
    shutil.copytree(finished(kind), run)
    shutil.rmtree(run / "constraint")
    shutil.copytree(run / "constraints" / "c_000", run / "constraint")  # forbids nothing
    said: list[str] = []
    with pytest.raises(InfeasibleLimit, match=r"no way .*known to be allowed.*--unknown allow"):
        rf.transfer(run, task, out=tmp_path / "t", say=said.append)
    assert "UNCOVERED" in said[0]
    assert not (tmp_path / "t").exists()
    solved = rf.transfer(run, task, unknown="allow", out=tmp_path / "t")
    assert (solved.summary["covered"], solved.summary["unknown"]) == (False, "allow")
    assert solved.summary["success"] == pytest.approx(1.0)


def test_what_is_neither_avoid_nor_allow_is_refused(finished: Finished) -> None:
    with pytest.raises(InvalidInput, match="unknown: 'ask' is not 'avoid' or 'allow'"):
        rf.transfer(finished("grid"), NEW["grid"], unknown="ask")


# Solving -----------------------------------------------------------------------------------------


@every_world
def test_one_problem_is_solved_on_every_world(kind: str, tmp_path: Path) -> None:
    trained = kind in ("gym", "ant", "ant-bullet")
    more: dict[str, Any] = {"solver": {**PPO, "env_steps": 256}, "episodes": 2} if trained else {}
    if kind == "ant-maze":
        more = {"solver": {"episodes": 2}}
    constraint = "speed <= 0.5" if trained else "none"
    solved = rf.solve(document(kind)["world"], constraint, 1.0, out=tmp_path / "s", **more)
    assert solved.summary["delta"] == 1.0
    assert solved.summary["kind"] == kind
    assert "<Solved: " in repr(solved)
    assert result(solved.save(tmp_path / "kept")) == result(tmp_path / "s")


def test_a_constraint_is_an_object_too(finished: Finished) -> None:
    saved = rf.load(finished("grid"))
    world = document("grid")["world"]
    by_object = rf.solve(world, saved)
    by_folder = rf.solve(world, finished("grid"))
    assert by_object.summary["reward"] == by_folder.summary["reward"]
    assert by_object.summary["delta"] == saved.delta
    with pytest.raises(InvalidInput, match="4 x 4 cells, this world has 10 x 10"):
        rf.solve("maze", saved)


def test_a_policy_that_the_solver_has_no_use_for_is_refused(
    finished: Finished, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="policy"):
        rf.solve(document("grid")["world"], "none", policy=finished("gym"), out=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_states_that_no_episode_would_begin_at_are_refused(tmp_path: Path) -> None:
    dataset.save(demos_of("ant"), tmp_path / "demos")
    world = document("ant")["world"]
    with pytest.raises(InvalidInput, match=r"--demos.*start_share"):
        rf.solve(world, "none", solver=PPO, starts=tmp_path / "demos", out=tmp_path / "s")
    assert [p.name for p in tmp_path.iterdir()] == ["demos"]


# Evaluating --------------------------------------------------------------------------------------


@every_world
def test_a_constraint_is_evaluated_on_every_world(kind: str, finished: Finished) -> None:
    found = rf.evaluate(finished(kind), document(kind)["world"], demos_of(kind))
    assert found["constraint"] == rf.load(finished(kind)).describe()
    assert found["demonstrations"]["tasks"] == [d.task for d in demos_of(kind).tasks]
    assert found["demonstrations"]["expert_cost_mean"] is not None
    assert found["truth"]
    assert found["not_here"] == {}
    if kind in ("grid", "tables", "ant-maze"):
        assert found["truth"]["missed_walls"] == []
    else:
        assert found["truth"]["truth"].startswith("speed <= 0.5")
        assert 0 <= found["demonstrations"]["agreement"] <= 1


def test_nothing_to_compare_with_is_refused(finished: Finished) -> None:
    with pytest.raises(InvalidInput, match="nothing to compare it with"):
        rf.evaluate(finished("grid"))
    with pytest.raises(InvalidInput, match="needs a world whose features it is about"):
        rf.evaluate("speed <= 1")
