"""What each subcommand does, on a small map, an environment of one's own and the Ant's maze."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crossing_world
import own_cart
from ringfence.cli import commands
from ringfence.cli.commands import free_name, print_numbers, tell_interval, tell_learned
from ringfence.cli.main import main
from ringfence.demos import dataset
from ringfence.disk import read_json, write_document
from ringfence.runs import config as configs
from small_worlds import FLOOR, NETWORK, once, result

Ask = Callable[..., tuple[int, str, str]]


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_bytes()))


# Maps --------------------------------------------------------------------------------------------


def test_learn_prints_progress_and_result_in_plain_lines(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos"]
    code, out, _ = ask(*words, "--out", tmp_path / "run")
    assert code == 0
    first, second, *_ = out.splitlines()
    assert first == "2 tasks, at most 5 iterations"
    assert second.startswith("iteration 1/5  no cell")
    assert "constraint (iteration 2): 4 of 16 cells (row, col) forbidden" in out
    assert "overlap with the true cells (IoU): 0.750" in out
    assert "evidence: 12 allowed, 3 proven, 0 implicated, 1 unknown" in out
    assert out.splitlines()[-1] == f"page: {tmp_path / 'run/report.html'}"
    assert "\x1b[" not in out
    assert (tmp_path / "run/report.html").is_file()


def test_options_and_settings_arrive_in_the_configuration(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos", "--seed", 7]
    words += ["--class", "linear", "--iterations", 2, "--solver", "lp", "--horizon", 12]
    words += ["--task", "goal (0,3)", "--set", "player.restricted=false", "--method", "icl"]
    words += ["--set", "game.extra=3", "--over", "col", "--slip", "0"]
    assert ask(*words, "--out", tmp_path / "run")[0] == 0
    config = configs.read(tmp_path / "run/config.toml")
    assert (config.seed, config.world.horizon, config.game.iterations) == (7, 12, 2)
    assert (config.game.constraint, config.game.on) == ("linear", ("col",))
    assert (config.game.method, config.game.tasks) == ("icl", ("goal (0,3)",))
    assert (config.solver.kind, config.player.restricted) == ("lp", False)
    assert config.game.extra == 3
    assert config.command.startswith("ringfence learn --world")


def test_workers_change_nothing(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos"]
    assert ask(*words, "--out", tmp_path / "a")[0] == 0
    assert ask(*words, "--workers", 2, "--out", tmp_path / "b")[0] == 0
    assert result(tmp_path / "a") == result(tmp_path / "b")


def test_episodes_that_stop_early_leave_only_the_evidence_out(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos", "--horizon", 13]
    code, out, _ = ask(*words, "--iterations", 2, "--out", tmp_path / "run")
    assert code == 0
    assert "warning: task 'goal (0,3)'" in out
    summary = summary_of(tmp_path / "run")
    assert summary["evidence"] is None
    assert "it has 12 steps, the task's episodes 13" in summary["not_here"]["evidence"]


def test_relative_paths_work(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--world", here / "small.txt", "--paths", 2, "--heldout", 1]
    assert ask("learn", *small, "--out", "here/run")[0] == 0
    assert ask("resume", "here/run")[0] == 0
    assert ask("demos", "make", *small, "--out", "demos")[0] == 0
    assert ask("demos", "check", "demos", "--world", here / "small.txt")[0] == 0
    assert ask("report", "here/run", "--out", "page.html")[0] == 0
    assert Path("page.html").read_bytes() == Path("here/run/report.html").read_bytes()


def test_a_run_that_nobody_named_is_named_after_its_world(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos"]
    for name in ("runs/small-mt-icl", "runs/small-mt-icl-2"):
        _, out, _ = ask(*words)
        assert out.splitlines()[-1] == f"page: {name}/report.html"


def test_quickstart_is_learn_on_the_maze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(commands, "learn", asked.append)
    code, out, _ = ask("quickstart", "--seed", 3)
    assert code == 0
    assert out.splitlines()[-1] == "  ringfence transfer runs/quickstart --goal 2,7 --start 9,3"
    (options,) = asked
    assert (options.world, options.seed, options.out) == ("maze", 3, Path("runs/quickstart"))
    assert options.command_line == "ringfence learn --world maze --seed 3"
    assert ask("quickstart", "--world", "ant-maze")[0] == 0
    assert commands.settings_of(asked[1]) == {"game": {"iterations": 3}, "solver": {"episodes": 2}}


def test_resume_of_a_finished_run_says_so_and_changes_nothing(here: Path, ask: Ask) -> None:
    before = result(here / "run")
    code, out, _ = ask("resume", here / "run")
    assert code == 0
    assert "is finished already; this is what came of it" in out
    assert "constraint (iteration 2)" in out
    assert result(here / "run") == before


def test_a_game_that_is_played_on_is_one_that_was_to_be_longer(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos"]
    words += ["--set", "game.epsilon=-1", "--iterations"]
    assert ask(*words, 1, "--out", tmp_path / "a")[0] == 0
    assert ask("resume", tmp_path / "a", "--iterations", 3)[0] == 0
    assert ask(*words, 3, "--out", tmp_path / "b")[0] == 0
    assert result(tmp_path / "a") == result(tmp_path / "b")


@pytest.mark.parametrize("solver", ["soft", "lp", "lagrangian"])
def test_solve_writes_policy_summary_and_picture(
    solver: str, here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["solve", "--world", here / "small.txt", "--solver", solver]
    code, said, _ = ask(*words, "--out", tmp_path / "out")
    assert code == 0
    assert summary_of(tmp_path / "out")["reward"] == pytest.approx(3, rel=0.05)  # 9 moves of T = 12
    there = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"policy", "constraint", "summary.json", "path.png", "solve.toml"} <= there
    assert f"picture: {tmp_path / 'out/path.png'}" in said
    assert said.splitlines()[-1] == f"saved to {tmp_path / 'out'}"
    code, again, _ = ask("resume", tmp_path / "out")
    assert code == 0
    assert again == said.removeprefix("1 task\n")
    assert ask("resume", tmp_path / "out", "--iterations", 3)[0] == 2


def test_solve_says_when_no_way_is_left_to_the_goal(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["solve", "--world", here / "small.txt", "--out", tmp_path / "out", "--constraint"]
    assert "no way to the goal" in ask(*words, "col <= 1")[1]


def test_solve_takes_a_run_as_its_constraint(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["solve", "--world", here / "small.txt", "--task", "goal (3,3)", "--constraint"]
    code, out, _ = ask(*words, here / "run", "--out", tmp_path / "out")
    assert code == 0
    assert out.splitlines()[1].startswith("goal (3,3) under 4 of 16 cells")
    assert summary_of(tmp_path / "out")["true_cost"] == 0


def test_evaluate_tells_overlap_and_violation(here: Path, tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "result.json"
    words = ["evaluate", here / "run", "--world", here / "small.txt", "--demos", here / "demos"]
    code, said, _ = ask(*words, "--out", out)
    assert code == 0
    assert "iou: 0.75\n" in said
    found = json.loads(out.read_text())
    assert found["truth"]["impossible"] == 0
    assert found["truth"]["false_walls"] == [[3, 0]]
    assert found["truth"]["learner_true_cost_mean"] == 0
    assert found["demonstrations"]["expert_cost_mean"] == 0


def test_evaluate_says_what_it_could_not_compare(here: Path, ask: Ask) -> None:
    code, said, _ = ask("evaluate", here / "run", "--demos", here / "demos")
    assert code == 0
    assert "expert cost mean: 0\n" in said
    assert said.splitlines()[-1] == "not compared: no world is given"


def test_transfer_says_what_is_covered_before_it_runs(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["transfer", here / "run", "--goal", "3,3", "--start", "1,1", "--out", tmp_path / "t"]
    code, out, _ = ask(*words)
    summary = summary_of(tmp_path / "t")
    assert code == 0
    assert out.startswith("goal (3,3) from (1, 1): covered")
    assert summary["success"]
    assert summary["true_cost"] == 0


def test_transfer_repeats_what_speaks_against_the_constraint(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    shutil.copytree(here / "run", tmp_path / "run")
    summary = read_json(tmp_path / "run/summary.json")
    write_document(tmp_path / "run/summary.json", {**summary, "doubts": ["it\x1b[2J is a guess"]})
    words = ["transfer", tmp_path / "run", "--goal", "3,3", "--start", "1,1"]
    code, said, _ = ask(*words, "--out", tmp_path / "out")
    assert code == 0
    told = "of the constraint, where it was learned: it [2J is a guess"
    assert f"warning: {told}\n" in said
    assert summary_of(tmp_path / "out")["doubts"] == [told]
    code, said, _ = ask("resume", tmp_path / "out")
    assert f"warning: {told}\n" in said


def test_transfer_through_unknown_cells_is_chosen_by_hand(
    here: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["transfer", here / "run", "--goal", "3,0", "--start", "2,0", "--out", tmp_path / "t"]
    code, out, _ = ask(*words, "--unknown", "allow", "--delta", "5")
    assert code == 0
    assert out.startswith("goal (3,0) from (2, 0): UNCOVERED")
    assert summary_of(tmp_path / "t")["unknown_cells"] == [[3, 0]]


def test_transfer_that_nobody_named_stands_in_the_run(here: Path, tmp_path: Path) -> None:
    task = {"goal": (0, 0), "start": (1, 1)}
    assert commands.transfer_base(here / "run", task) == here / "run/transfer"
    assert commands.transfer_base(here / "run", "my.toml") == Path("runs/transfer")


def test_one_page_over_several_runs(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["learn", "--world", here / "small.txt", "--demos", here / "demos", "--seed", 1]
    assert ask(*words, "--out", tmp_path / "run")[0] == 0
    page = tmp_path / "page.html"
    code, out, _ = ask("report", here / "run", tmp_path / "run", "--out", page)
    assert (code, out) == (0, f"page: {page}\n")
    assert "<svg" in page.read_text()


# Demonstrations ----------------------------------------------------------------------------------


def test_demos_are_made_shown_and_checked(here: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["demos", "make", "--world", here / "small.txt", "--paths", 3, "--heldout", 2]
    words += ["--seed", 5, "--expert-delta", 0.5, "--deterministic", "--set", "experts.noise=0.1"]
    code, made, _ = ask(*words, "--out", tmp_path / "demos")
    assert code == 0
    assert made.splitlines()[-1] == f"saved to {tmp_path / 'demos'}"
    demos = dataset.load(tmp_path / "demos")
    assert [(len(d.train), len(d.heldout)) for d in demos.tasks] == [(3, 2), (3, 2)]
    code, shown, _ = ask("demos", "show", tmp_path / "demos")
    assert code == 0
    assert made.startswith(shown.rstrip())
    words = ["demos", "check", tmp_path / "demos", "--world", here / "small.txt"]
    code, said, _ = ask(*words)
    assert code == 0
    assert "the training trajectories visit" in said
    assert f"{tmp_path / 'demos'}: usable" in said.splitlines()[-1]


def test_demos_of_another_world_are_refused_with_every_error(here: Path, ask: Ask) -> None:
    code, out, err = ask("demos", "check", here / "demos", "--world", "maze")
    assert code == 2
    assert out.count("error: task 'goal (") == 2
    assert err.endswith("demos: 2 errors (above); mend them before learning\n")


# An environment of one's own ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def cart(shared: Path) -> Path:
    """my.toml and logs.npz, and run: what was learned from them."""

    def make(folder: Path) -> None:
        folder.mkdir()
        text = own_cart.TOML.replace("steps = 50", 'steps = 50\ntruth = "speed <= 0.75"', 1)
        own_cart.write(folder, text)
        assert main(["learn", str(folder / "my.toml"), "--out", str(folder / "run")]) == 0

    return once(shared, "cart", make)


def test_learn_on_a_file_tells_the_parameter_and_its_interval(cart: Path, ask: Ask) -> None:
    code, out, _ = ask("resume", cart / "run")
    assert code == 0
    summary = summary_of(cart / "run")
    (name, (low, high)) = next(iter(summary["constraint"]["interval"]["parameters"].items()))
    assert f"constraint (iteration 1): {summary['constraint']['description']}" in out
    assert f"  {name}: {low:.4g} to {high:.4g} (9" in out
    assert "error against the truth: " in out
    assert "reward, mean over tasks: " in out


def test_what_speaks_against_the_outcome_is_told(
    cart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from ringfence.api import read_learned

    learned = read_learned(cart / "run")
    summary = {**learned.summary, "doubts": ["the learners earn little"]}
    tell_learned(replace(learned, summary=summary))
    assert "warning: the learners earn little\n" in capsys.readouterr().out


def test_an_interval_is_told_with_what_it_covers_and_a_curve_in_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    interval = {"level": 0.95, "parameters": {"limit": [0.7, 0.8]}}
    tell_interval(None)
    tell_interval(interval)
    tell_interval({**interval, "words": "covers much", "curve": None})
    tell_interval({**interval, "words": "it depends on the budget", "curve": [{"budget": 5.0}]})
    assert capsys.readouterr().out.splitlines() == [
        "  limit: 0.7 to 0.8 (95%: over demonstrations only)",
        "  limit: 0.7 to 0.8 (95%: covers much)",
        "  it depends on the budget",
    ]


def test_that_no_constraint_is_needed_is_told_with_numbers(
    cart: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from ringfence.api import Learned, read_learned

    monkeypatch.setattr(Learned, "report", lambda self: "page.html")
    free = {"learner_reward_mean": 3.14, "env_steps": 512, "expert_reward_mean": 5.0}
    learned = read_learned(cart / "run")
    summary = {**learned.summary, "outcome": "no constraint needed", "unconstrained": free,
               "doubts": ["it learned too little"]}  # fmt: skip
    tell_learned(replace(learned, summary=summary))
    out = capsys.readouterr().out
    assert "a learner earns 3.1 in 512 steps, the demonstrators 5.0" in out
    assert out.endswith("warning: it learned too little\npage: page.html\n")


def test_a_file_that_says_what_the_world_is_is_not_contradicted(cart: Path, ask: Ask) -> None:
    for words in (["--world", "ant"], ["--feature", "speed"]):
        code, _, err = ask("learn", cart / "my.toml", *words)
        assert code == 2
        assert "my.toml says it all: leave it out" in err


def test_demos_check_reads_a_file(cart: Path, ask: Ask) -> None:
    code, out, _ = ask("demos", "check", cart / "my.toml")
    assert code == 0
    assert "ok: environment of 'own_cart:make_cart': 1 observations, 1 actions, 50 steps" in out
    assert "my.toml: usable" in out


SHORT = ["--steps", "256", "--episodes", "2"]


def test_a_policy_is_trained_on_and_counted(cart: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["transfer", cart / "run", *SHORT, "--clearance", "0.05", "--out", tmp_path / "t"]
    code, out, _ = ask(*words)
    assert code == 0
    summary = summary_of(tmp_path / "t")
    assert summary["clearance"] == 0.05
    assert "with a clearance of 0.05\n" in out
    assert "of 2 episodes exceed the limit: their chance is" in out
    assert "true cost (speed <= 0.75):" in out
    assert "counting violations in 2 episodes" in out


def test_a_policy_is_only_told_of_a_clearance(cart: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["transfer", cart / "run", "--steps", 0, "--episodes", 2, "--out", tmp_path / "t"]
    assert ask(*words, "--clearance", "0.1")[0] == 0
    assert summary_of(tmp_path / "t")["env_steps"] == 0


def test_a_task_of_another_file_is_learned_under_the_constraint(
    cart: Path, tmp_path: Path, ask: Ask
) -> None:
    tasks = 'tasks = [{ name = "a", kwargs = { pay = 2.0 } }, { name = "b" }]'
    path = own_cart.write(tmp_path, own_cart.TOML.replace("steps = 50", f"steps = 50\n{tasks}", 1))
    words = ["transfer", cart / "run/constraint", *SHORT, "--out", tmp_path / "t", "--task"]
    code, _, err = ask(*words, path)
    assert code == 2
    assert f"several tasks (a, b); choose one with --task {path}:NAME" in err
    code, _, err = ask(*words, f"{path}:c")
    assert code == 2
    assert "there is no task 'c'; it has a, b" in err
    assert ask(*words, f"{path}:a")[0] == 0
    assert summary_of(tmp_path / "t")["task"] == "a"


def test_solve_on_an_environment_that_is_named(tmp_path: Path, ask: Ask) -> None:
    words = ["solve", "--world", "gym:own_cart:make_cart", "--feature", "speed:m/s"]
    words += ["--horizon", 30, "--constraint", "speed <= 0.5", "--delta", 3, "--episodes", 2]
    for entry in ("copies=16", "steps=16", "minibatches=2", "passes=1", "hidden=[16]"):
        words += ["--set", f"solver.{entry}"]
    code, out, _ = ask(*words, "--steps", 512, "--out", tmp_path / "out")
    assert code == 0
    assert "training  update 1/2" in out
    assert summary_of(tmp_path / "out")["delta"] == 3
    assert (tmp_path / "out/curves.csv").is_file()
    words = ["evaluate", tmp_path / "out/constraint", "--world", "gym:own_cart:make_cart"]
    words += ["--feature", "speed:m/s", "--horizon", 30, "--truth", "speed <= 0.4"]
    code, out, _ = ask(*words)
    assert code == 0
    assert "speed <= 0.4" in out


def test_evaluate_takes_logs_as_they_come(tmp_path: Path, ask: Ask) -> None:
    own_cart.write(tmp_path)
    words = ["evaluate", "speed <= 0.5", "--world", "gym:own_cart:make_cart", "--feature"]
    words += ["speed:m/s", "--horizon", own_cart.STEPS, "--demos", tmp_path / "logs.npz"]
    code, out, _ = ask(*words, "--out", tmp_path / "found.json")
    assert code == 0
    assert "heldout expert cost" in out
    assert (
        json.loads((tmp_path / "found.json").read_bytes())["demonstrations"]["expert_cost_mean"] > 0
    )


# The Ant's maze ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def floor(shared: Path) -> Path:
    """map.txt, and run: a game with the Ant."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "map.txt").write_text("\n".join(FLOOR) + "\n")
        words = ["learn", "--world", f"ant-maze:{folder}/map.txt", "--horizon", "400"]
        words += ["--paths", "2", "--heldout", "1", "--iterations", "2", "--seed", "3"]
        words += ["--set", "solver.episodes=2"]
        for name, value in NETWORK.items():
            words += ["--set", f"player.network.{name}={value}"]
        assert main([*words, "--out", str(folder / "run")]) == 0

    return once(shared, "floor", make)


def test_learn_plays_the_ants_game_and_writes_the_page(floor: Path) -> None:
    summary = summary_of(floor / "run")
    assert summary["world"] == "ant-maze-map"
    assert summary["iterations"][0]["updated"]["iou"] == 1
    assert "ringfence learn" in summary["command"]
    assert "<svg" in (floor / "run/report.html").read_text()


def test_the_ants_transfer_says_what_is_covered_first(
    floor: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["transfer", floor / "run", "--goal", "0,2", "--start", "1,1", "--out", tmp_path / "t"]
    code, out, _ = ask(*words, "--set", "solver.episodes=2")
    assert code == 0
    first, *_, last = out.splitlines()
    assert "covered" in first
    assert last == f"saved to {tmp_path / 't'}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "icl"], "icl learns from one task"),
        (["--solver", "soft"], "is not finite: soft, lp and lagrangian can't solve it"),
        (["--set", "demos.experts=exact"], "there are no exact occupancies"),
        (["--task", "goal (7,7)"], "'goal (7,7)' is not in the world"),
    ],
)
def test_what_the_ants_maze_does_not_have_is_refused(
    floor: Path, tmp_path: Path, words: list[str], said: str, ask: Ask
) -> None:
    out = tmp_path / "refused"
    world = ["--world", f"ant-maze:{floor}/map.txt", "--horizon", "400"]
    code, _, err = ask("learn", *world, "--demos", floor / "run/demos", *words, "--out", out)
    assert code == 2
    assert said in err
    assert not out.exists()


# Words -------------------------------------------------------------------------------------------


def test_a_free_name_is_the_first_that_is_not_there(tmp_path: Path) -> None:
    assert free_name(tmp_path / "run") == tmp_path / "run"
    (tmp_path / "run").mkdir()
    (tmp_path / "run-2").mkdir()
    assert free_name(tmp_path / "run") == tmp_path / "run-3"


def test_what_is_not_known_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"true_cost": None, "reward": 1 / 3, "unknown_cells": [[1, 2]], "success": True}
    print_numbers(row, ("reward", "true_cost", "unknown_cells", "success", "length"))
    assert capsys.readouterr().out == (
        "  reward: 0.333333\n  unknown cells: [[1, 2]]\n  success: true\n"
    )


def test_experiments_are_listed(ask: Ask) -> None:
    code, out, _ = ask("reproduce")
    assert code == 0
    assert out.startswith("experiments: ")
    assert "grid" in out


# Options without effect --------------------------------------------------------------------------

SMALL = "--world small.txt"
NEW = "--goal 3,3 --start 1,1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"learn {SMALL} --steps 5 --out new", "[solver] env_steps: unknown"),
        (f"learn {SMALL} --expert-budget 1 --out new", "[player] expert_budget: unknown"),
        (f"learn {SMALL} --over row --out new", "[game] on is for 'linear' and 'mlp'"),
        (f"learn {SMALL} --truth row<=1 --out new", "[world] truth: unknown"),
        (f"learn {SMALL} --feature row --out new", "--feature is for 'gym:' worlds"),
        (f"learn {SMALL} --demos demos --heldout 3 --out new", "--heldout is how demonstrations"),
        ("learn my.toml --paths 3 --out new", "--paths is how demonstrations are made; my.toml"),
        ("learn my.toml --set experts.noise=1 --out new", "--noise is how demonstrations are made"),
        ("learn my.toml --world maze --out new", "--world has no effect here; my.toml says it all"),
        ("learn my.toml --slip 0.1 --out new", "[world] slip: unknown"),
        ("learn --world ant --horizon 9 --demos demos --out new", "[world] horizon: unknown"),
        (f"solve {SMALL} --steps 5 --out new", "[solver] env_steps: unknown"),
        (f"solve {SMALL} --episodes 5 --out new", "--episodes are counted after a training"),
        (f"solve {SMALL} --demos demos --out new", "can't begin at demonstrated states"),
        (f"solve {SMALL} --policy run --out new", "no policy in it"),
        (f"solve {SMALL} --set game.iterations=2 --out new", "--set game.: it has no effect here"),
        (f"transfer run {NEW} --steps 5 --out new", "[solver] env_steps: unknown"),
        (f"transfer run {NEW} --episodes 5 --out new", "--episodes are counted after a training"),
        (f"transfer run {NEW} --clearance 1 --out new", "clearance"),
        (f"transfer run {NEW} --set world.slip=0.1 --out new", "--set world.: it has no effect"),
        (f"demos make {SMALL} --steps 5 --out new", "of experts that are trained"),
        (f"demos make {SMALL} --policy run --out new", "of experts that are trained"),
        (f"demos make {SMALL} --workers 2 --out new", "of experts that are trained"),
        (f"demos make {SMALL} --set game.buffer=1 --out new", "--set game.: it has no effect here"),
        ("demos make my.toml --world maze --out new", "--world has no effect here; my.toml says"),
        ("demos make my.toml --slip 0.1 --out new", "[world] slip: unknown"),
        ("demos make my.toml --contaminated 0.1 --out new", "contaminated: unknown"),
        ("demos check my.toml --world maze", "--world has no effect here; my.toml says it all"),
        ("evaluate run --demos demos --solver lp", "[solver] is for planning on a finite world"),
        ("evaluate run --demos demos --truth row<=1", "are of a world: give --world, too"),
        (f"evaluate run {SMALL} --set game.buffer=1", "--set game.: it has no effect here"),
        ("resume solved --workers 2", "--workers and --on share a game; this is a single problem"),
        ("resume solved --iterations 2", "--iterations is for games; this is a single problem"),
        ("bench maze --budget 5", "--budget has no effect on maze, only on exact"),
    ],
)  # fmt: skip
def test_an_option_that_has_no_effect_is_refused(
    words: str, said: str, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    place = tmp_path / "place"
    shutil.copytree(here, place)
    own_cart.write(place)
    (place / "solved").mkdir()
    (place / "solved" / "solve.toml").touch()
    monkeypatch.chdir(place)
    code, _, err = ask(*words.split())
    assert code == 2, err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (place / "new").exists()


def test_a_files_experts_are_trained_under_the_truth_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """Over the file's own, as any entry."""
    monkeypatch.chdir(tmp_path)
    own_cart.write(tmp_path)
    assert ask("demos", "make", "my.toml", "--paths", "2", "--out", "none")[0] == 2  # no truth
    words = ["demos", "make", "my.toml", "--truth", "speed <= 0.5", "--steps", "256"]
    code, _, err = ask(*words, "--paths", "2", "--heldout", "1", "--out", "made")
    assert code == 0, err
    made = json.loads((tmp_path / "made" / "demonstrations.json").read_text())
    assert made["provenance"]["world"]["truth"] == "speed <= 0.5"


def test_a_transfer_on_a_continuous_world_says_whether_it_was_covered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    crossing_world.play(run, analysis={"episodes": 2})
    for unknown in ("avoid", "allow"):
        words = ["transfer", str(run), "--task", "task 0", "--unknown", unknown]
        assert main([*words, "--out", str(tmp_path / unknown)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "leave cells" in line]
    assert said[0] == "covered: 0 of 100 episodes leave cells where demonstrators were"
    assert len(said) == 2
