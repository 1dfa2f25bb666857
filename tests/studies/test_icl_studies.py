"""`reproduce velocity|position|noisy|baselines` on tiny budgets: files, tables, figures."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput
from ringfence.runs import train
from ringfence.runs.control_config import ITERATION
from ringfence.solvers.ppo import PPOConfig
from ringfence.studies import ablation, chou, clearance, icl, selection
from ringfence.studies.icl_tables import is_good, parameters, table
from ringfence.studies.trainings import expert_run
from ringfence.worlds import ant

WEIGHTS = "policy/policy.safetensors"
TINY = {
    "copies": 16,
    "steps": 16,
    "batch": 128,
    "passes": 1,
    "hidden": (16,),
    "evaluation_episodes": 2,
}
PPO = PPOConfig(**{**ITERATION, **TINY})
EXPERT = PPOConfig(**TINY)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ants of 30 steps, and runs/ in a folder of the test's own."""
    monkeypatch.setattr(ant.AntTask.__init__, "__defaults__", ((1.0, 0.0), 30, False, 2))
    monkeypatch.chdir(tmp_path)


def tiny(experiment: icl.Experiment, **changes: object) -> icl.Study:
    expert = replace(experiment.expert, env_steps=512)
    after = None if experiment.settled.after is None else expert
    small = replace(
        experiment,
        expert=expert,
        settled=replace(experiment.settled, env_steps=512, after=after),
        iterations=2,
        steps=512,
    )
    return icl.Study("ant", small, seeds=1, ppo=PPO, expert_ppo=EXPERT, **changes)  # type: ignore[arg-type]


def test_position_from_nothing_to_table_and_figures(tmp_path: Path) -> None:
    study, out, said = tiny(icl.POSITION_), tmp_path / "results", []
    icl.reproduce(replace(study, seeds=1), out, "ringfence reproduce position", said.append)
    summary = json.loads((out / "seed-0.json").read_text())
    assert summary["true_parameters"] == {"x": 0.5}
    table = (out / "table.md").read_text()
    error = summary["iterations"][0]["constraint_error"]
    assert f"| first iteration | 0 | {error:.4f} |" in table
    assert "1 of 1" in table
    for name in ("curves.png", "paths.png"):
        pixels = np.asarray(Image.open(out / name).convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 50
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    icl.reproduce(study, out, "ringfence reproduce position", said.append)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    longer = replace(study, experiment=replace(study.experiment, iterations=3))
    with pytest.raises(InvalidInput, match=r"another game .*--iterations 2 .*another --out"):
        icl.reproduce(longer, out, "ringfence reproduce position", said.append)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    with pytest.raises(InvalidInput, match=r"seed-0 .*other settings \(iterations: 2, now 3\)"):
        icl.reproduce(longer, tmp_path / "other", "ringfence reproduce position", said.append)


def test_a_settled_expert_goes_on_from_the_plain_one(tmp_path: Path) -> None:
    study, said = tiny(icl.POSITION_, settled=True), []
    given = icl.demonstrations(study, 0, said.append)
    first, on = (tmp_path / expert_run("ant", e, 0) for e in (icl.POSITION_100, study.expert))
    assert (on / "start.safetensors").read_bytes() == (first / WEIGHTS).read_bytes()
    assert (on / WEIGHTS).read_bytes() != (first / WEIGHTS).read_bytes()
    config = train.read(on)
    assert (config.ppo.cool_down, config.ppo.margin) == (1.0, 0.85)
    assert config.command.endswith(f"--policy {expert_run('ant', icl.POSITION_100, 0)}")
    plain = icl.demonstrations(replace(study, settled=False), 0, said.append)
    assert demos.content_hash(given) != demos.content_hash(plain)
    again = icl.trained_expert("ant", study.expert, 0, EXPERT, said.append)  # nothing new
    assert again.run == Path("runs/reproduce-experts-mujoco/position-100-settled-seed-0")


def test_a_study_says_what_it_is() -> None:
    study = icl.Study("ant", icl.VELOCITY, player="payoff", saturated=True, budget=5.0)
    assert study.name == "velocity-mujoco-payoff-5-saturated"
    assert "keep-saturated 0.05" in icl.heading(study, "").demonstrations
    assert "a budget of 5" in icl.heading(study, "").player
    mlp = icl.Study("ant-bullet", icl.POSITION_.noisy, constraint="mlp", full_state=True)
    assert mlp.name == "noisy-position-bullet-mlp-full-state"
    assert icl.configuration(mlp, 0).game.initial == "free"
    stopped = icl.Study("ant-bullet", icl.VELOCITY, stop_share=0.9)
    assert stopped.name == "velocity-bullet-stop-0.9"
    config = icl.configuration(stopped, 0)
    assert (config.game.stop_share, config.ppo.learning_rate) == (0.9, 1e-4)
    assert config.command.endswith("--stop-share 0.9 --ppo stop_window=6")
    assert config.ppo.stop_window == 6
    assert "0.9 of the experts' reward" in icl.heading(stopped, "").player
    gentle = icl.Study("ant-bullet", icl.VELOCITY, own={"gain_p": 0.02})
    assert gentle.name == "velocity-bullet-gain-p-0.02"
    config = icl.configuration(gentle, 0)
    assert (config.ppo.gain_p, config.ppo.learning_rate) == (0.02, 1e-4)
    assert config.command.endswith("--ppo gain_p=0.02")
    assert icl.heading(gentle, "").player.endswith("the solver's gain_p=0.02")
    clean = icl.Study("ant-bullet", icl.VELOCITY, saturated=True, drop_failed=True, settled=True)
    assert clean.name == "velocity-bullet-settled-saturated-drop-failed"
    assert clean.demos(1).name == "velocity-bullet-settled-saturated-seed-1"
    assert clean.expert.ppo("ant-bullet", PPOConfig()).cool_down == pytest.approx(0.2)
    assert clean.expert.env_steps == 1.25 * icl.VELOCITY.expert.env_steps
    assert "whose learning rate fell to 0" in icl.heading(clean, "").demonstrations
    config = icl.configuration(clean, 0)
    assert config.game.drop_failed
    assert config.command.endswith("--drop-failed")
    assert "failed episodes are no evidence" in icl.heading(clean, "").player
    exact = icl.Study("ant-bullet", icl.POSITION_, buffer=0.0)
    assert exact.name == "position-bullet-buffer-0"
    assert icl.configuration(exact, 0).game.buffer == 0
    assert "--buffer 0 " in icl.configuration(exact, 0).command
    assert icl.heading(exact, "").player.endswith("a first buffer of 0 on the limit")
    later = icl.Study(
        "ant", icl.POSITION_, stop_share=1.0, own={"initial_lam": 0.5, "stop_window": 9}
    )
    config = icl.configuration(later, 0)  # an entry that is given twice would be refused
    assert config.command.endswith("--stop-share 1 --ppo initial_lam=0.5 --ppo stop_window=9")
    assert (config.ppo.initial_lam, config.ppo.stop_window) == (0.5, 9)
    with pytest.raises(InvalidInput, match="--ppo has no entry 'gain'"):
        icl.configuration(replace(gentle, own={"gain": 1.0}), 0)
    words = replace(gentle, own={"multiplier": "gradient", "hidden": [8, 8]})
    assert shlex.split(icl.configuration(words, 0).command)[-3:] == [
        'multiplier="gradient"',
        "--ppo",
        "hidden=[8, 8]",
    ]


def test_seeds_that_were_not_run_are_called_so() -> None:
    study = icl.Study("ant", icl.VELOCITY)
    text = table({}, {}, 2, icl.heading(study, "ringfence reproduce velocity"))
    assert text.count("not run") > 10


def played(limit: float, text: str = "speed <= ?") -> dict:
    """A game of one iteration, as far as the table of parameters reads it."""
    return {
        "iterations": [{"constraint": {"parameters": {"limit": limit}}}],
        "selected": 1,
        "class": text,
        "used": ["speed"],
        "true_parameters": {"limit": 0.75},
    }


def test_the_error_of_the_mean_is_not_the_mean_of_the_errors() -> None:
    _, text = parameters({0: played(0.70), 1: played(0.82)})
    assert "| selected | limit | 0.75 | 0.7600 ± 0.0600 | 0.0100 |" in text
    assert parameters({}) == []
    assert parameters({0: {**played(0.7), "true_parameters": None}}) == []


@pytest.mark.parametrize("text", ["linear", "? speed <= ?"])
def test_parameters_without_a_scale_have_no_error_of_the_mean(text: str) -> None:
    assert parameters({0: played(0.1557, text)}) == []


def row(**changes: float) -> dict:
    return {
        "expert_reward_mean": 100.0,
        "expert_reward_se_mean": 2.0,
        "learner_reward_mean": 96.5,
        "expert_true_raw_mean": -10.0,
        "learner_true_raw_mean": 9.0,
        "expert_length_mean": 1000.0,
        "learner_length_mean": 1000.0,
        **changes,
    }


def test_a_good_seed_earns_and_keeps_what_experts_do() -> None:
    assert is_good(row())
    assert not is_good(row(learner_reward_mean=95.9))
    assert not is_good(row(learner_true_raw_mean=10.5))
    assert not is_good(row(learner_true_raw_mean=9.0, learner_length_mean=500.0))


def test_choices_are_compared_over_all_games(tmp_path: Path) -> None:
    for place in (tmp_path / "selection", tmp_path / "nowhere" / "selection"):
        with pytest.raises(InvalidInput, match="no folder in it has a finished single-task game"):
            selection.reproduce(place, "ringfence reproduce selection")
    costs = {"expert_true_cost_mean": 10.0, "learner_true_cost_mean": 8.0}
    iterations = [
        row(**costs, learner_reward_mean=110.0),
        row(**costs | {"learner_true_cost_mean": 30.0}, learner_reward_mean=90.0),
    ]
    chosen = {"selected": {"i": 1}, "last": {"i": 2}, "random": {"i": None}, "truth": {"i": 1}}
    game = {"method": "icl", "iterations": iterations, "choices": chosen}
    (tmp_path / "velocity").mkdir()
    (tmp_path / "velocity" / "seed-0.json").write_text(json.dumps(game))
    no_game = {"method": "icl", "iterations": []}
    (tmp_path / "velocity" / "seed-1.json").write_text(json.dumps(no_game))
    selection.reproduce(tmp_path / "selection", "ringfence reproduce selection")
    text = (tmp_path / "selection" / "table.md").read_text()
    assert "| on held-out demonstrations | 1.100 | -2.0 | 1 of 1 |" in text
    assert "| the last | 0.900 | 20.0 | 0 of 1 |" in text
    assert "| a random one | 1.000 | 9.0 | 0.5 of 1 |" in text
    assert "| velocity | 1 | 1.100, -2.0, 1 | 0.900, 20.0, 0 | 1.000, 9.0, 0.5 |" in text


def test_selected_policies_are_told_of_a_clearance_and_trained_on(tmp_path: Path) -> None:
    study, out = tiny(icl.VELOCITY), tmp_path / "results"
    icl.reproduce(study, out, "ringfence reproduce velocity", lambda text: None)
    game = json.loads((out / "seed-0.json").read_text())
    words = ("ringfence reproduce velocity --clearance 0.1", lambda text: None)
    clearance.reproduce(study, 0.1, out / "inside", *words)
    best = game["iterations"][game["selected"] - 1]
    error, text = best["constraint_error"], (out / "inside" / "table.md").read_text()
    assert f"| selected in the game | 0 | {error:.4f} |" in text
    for name, file, steps in (
        ("the same, told of 0.1", "told", 0),
        ("and trained on", "trained", 512),
    ):
        found = json.loads((out / "inside" / f"{file}-0.json").read_text())
        assert found["constraint"]["description"] == best["constraint"]["description"]
        assert (found["clearance"], found["env_steps"]) == (0.1, steps)
        gained = best["expert_reward_mean"] - found["reward"]
        raw = best["expert_true_raw_mean"] - found["true_raw"]
        assert f"| {name} | 0 | {error:.4f} | {gained:.1f} | {raw:.1f} |" in text
    assert json.loads((out / "seed-0.json").read_text()) == game
    clearance.reproduce(study, 0.1, out / "inside", *words)  # nothing is trained again
    assert (out / "inside" / "table.md").read_text() == text
    place = clearance.folder(study, 0.1, 0, train=True) / "transfer.toml"
    place.write_text(place.read_text().replace("passes = 1\n", "passes = 2\n"))
    with pytest.raises(InvalidInput, match=r"other settings \(passes: 2, now 1\)"):
        clearance.reproduce(study, 0.1, out / "inside", *words)
    shutil.move(study.run(0), tmp_path / "aside")  # another game in its place
    payoff = replace(study, player="payoff", budget=0.0)
    icl.one(payoff, 0, lambda text: None)
    shutil.move(payoff.run(0), study.run(0))
    with pytest.raises(InvalidInput, match=r"other settings \(.*start: .*\)"):
        clearance.one(study, 0.1, 0, train=False)


def test_a_class_without_the_truth_has_no_error_at_a_clearance() -> None:
    study = icl.Study("ant", icl.VELOCITY, seeds=1)
    cost = {"expert_true_cost_mean": 1.0, "learner_true_cost_mean": 1.0}
    judged = {"selected": {0: row(**cost) | {"constraint_error": None, "constraint": {}}}}
    assert "| selected | 0 | - |" in clearance.page(study, 0.1, judged, "")
    assert "| **selected** | mean | - |" in clearance.page(study, 0.1, judged, "")


def test_a_clearance_that_could_only_fail_after_the_games_is_refused() -> None:
    study = icl.Study("ant", icl.VELOCITY, constraint="mlp", full_state=True)
    with pytest.raises(InvalidInput, match="a network has none"):
        clearance.check(study, 0.1)
    with pytest.raises(InvalidInput, match="see the constraint's value"):
        clearance.check(replace(study, constraint="", own={"augment": False}), 0.1)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="must be above 0 and finite"):
            clearance.check(replace(study, constraint=""), wrong)


def test_each_part_is_taken_away_from_the_same_game(tmp_path: Path) -> None:
    study, out = tiny(icl.VELOCITY), tmp_path / "results"
    ablation.reproduce(study, out, "ringfence reproduce ablation", lambda text: None)
    games = json.loads((out / "results.json").read_text())["games"]
    assert list(games) == list(ablation.PARTS)
    text = (out / "table.md").read_text()
    for part, seeds in games.items():
        for iterate in ("selected", "last", "mean"):
            error = seeds["0"][iterate]["\\|c* - c\\|"]
            assert f"| {part} | {error:.4f} |" in text
    configs = [icl.configuration(replace(study, **c), 0) for c in ablation.PARTS.values()]
    assert len({repr(replace(c, command="")) for c in configs}) == len(configs)
    assert len({c.command for c in configs}) == len(configs)
    assert list(Path("runs/reproduce-demos").iterdir()) == [study.demos(0)]
    shutil.rmtree(study.run(0))
    said: list[str] = []
    ablation.reproduce(study, out, "ringfence reproduce ablation", said.append)
    order = [line for line in said if line.startswith("other than usual")]
    assert order[-1] == "other than usual: nothing; seed 0"  # the only one not played yet
    assert (out / "table.md").read_text() == text
    uncloned = icl.configuration(replace(study, cloned=False), 0)
    assert (uncloned.clone.steps, uncloned.game.initial) == (0, "free")
    assert uncloned.command.endswith("--initial free --clone-steps 0")


def test_the_ablation_says_what_was_not_run() -> None:
    game = {
        name: dict.fromkeys(["good", *(c for c, _ in ablation.COLUMNS)], 1.0)
        for name in ("selected", "last", "mean")
    }
    played = {"nothing": {0: game}, "no buffer on the limit": {}}
    text = ablation.page(icl.Study("ant", icl.VELOCITY, seeds=2), played, "")
    assert "| nothing | 1.0000 | 1.0 | 1.0 | 1 of 1 (1 not run) |" in text
    assert "| no buffer on the limit | not run | not run | not run | not run |" in text


def test_baselines_from_nothing_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [tiny(e).experiment for e in (icl.VELOCITY,)]
    monkeypatch.setattr(chou, "EXPERIMENTS", tuple(small))
    monkeypatch.setattr(chou, "EPISODES", 16)
    study = icl.Study

    def with_tiny_experts(*arguments: object) -> icl.Study:
        return study(*arguments, expert_ppo=EXPERT)  # type: ignore[arg-type]

    monkeypatch.setattr(icl, "Study", with_tiny_experts)
    ppo = PPOConfig(**{**TINY, "env_steps": 512, "margin": 0.0})
    out, said = tmp_path / "results", []
    chou.reproduce("ant", 1, out, "ringfence reproduce baselines", said.append, ppo)
    summary = json.loads((out / "velocity-seed-0.json").read_text())
    assert summary["episodes"] == 16
    text = (out / "table.md").read_text()
    assert "ICL, weighted | last iteration | not run" in text
    if summary["result"] is not None:
        assert f"{summary['result']['constraint_error']:.4f}" in text
