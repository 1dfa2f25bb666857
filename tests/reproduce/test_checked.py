"""A user's environment: demonstrators, their check, and the game; beside them slow ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_study import game, row, study_of

from ringfence.reproduce import checked, run

SMALL = """
about = "a cart that learns in a moment"
kind = "game"

[base]
demonstrations = { expert = "limit", paths = 4, heldout = 2 }
game = { constraint = "x_velocity <= ?", iterations = 1 }
player = { kind = "payoff", expert_budget = 20.0 }
opening = { probe = false, steps = 50 }
analysis.resamples = 10

[base.world]
kind = "gym"
env = "own_cart:make_cart"
steps = 50
features = [{ name = "x_velocity", unit = "m/s", info = "speed" }]

[base.solver]
kind = "ppo"
env_steps = 512
copies = 8
steps = 32
minibatches = 2
hidden = [8]
evaluation_episodes = 2

[experts.limit]
training = { constraint = "x_velocity <= 1.37", delta = 20.0 }
[experts.slow]
training = { constraint = "x_velocity <= 0.4", delta = 20.0 }
[experts.slower]
training = { constraint = "x_velocity <= 0.2", delta = 20.0 }

[variants.gym]

[[table]]
rows = "checked"
columns = [["demonstrators", "demonstrators"], ["check", "check"], ["limit", "limit", ".4f"]]
[table.options]
truth = "x_velocity <= 1.37"
paces = ["slow", "slower"]
pace_paths = 2
pace_heldout = 1
pace_seed = 100
"""


def test_a_killed_study_goes_on_and_its_table_says_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cart.toml").write_text(SMALL)
    folder = run("cart.toml", say=lambda line: None) / "gym"
    table = (folder.parent / "table.md").read_text()
    first = (folder / "seed-0.json").read_bytes()
    limit = json.loads(first)["constraint"]["parameters"]["limit"]
    said = json.loads((folder / "check-0.json").read_text())
    assert f"| {'saturated' if said['saturated'] else 'not saturated'} | {limit:.4f} |" in table
    assert said["expert_true_cost"] >= 0
    assert any(f["where"].startswith("saturation") for f in said["findings"])
    (folder / "check-paces.json").unlink()
    checked_play = checked.play
    monkeypatch.setattr(checked, "play", lambda *_: None)
    run("cart.toml", say=lambda line: None)
    assert "| own paces | not run |" in (folder.parent / "table.md").read_text()
    monkeypatch.setattr(checked, "play", checked_play)
    run("cart.toml", say=lambda line: None)
    assert (folder / "seed-0.json").read_bytes() == first
    assert (folder.parent / "table.md").read_text() == table


def test_the_error_is_a_share_of_the_true_limit(tmp_path: Path) -> None:
    summary = game(
        row(learner_cost_mean=1.0, expert_cost_mean=2.0), used=["x_velocity"],
        constraint={"interval": {"parameters": {"limit": [0.7, 0.8]}}},
    )  # fmt: skip
    found = checked.learned(summary, "x_velocity <= 0.8")
    assert found["error"] == pytest.approx(0.06 / 0.8)
    assert (found["limit_low"], found["limit_high"]) == (0.7, 0.8)
    assert checked.learned({"selected": None}, "x_velocity <= 1") == {"limit": None}
    study = study_of(tmp_path, {"a": {}}, truth="x_velocity <= 1")
    assert [r["status"] for r in checked.checked(study).rows] == ["not run"] * 2
