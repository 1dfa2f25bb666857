"""Frames of the Ant as a training left it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence import api
from ringfence.cli.frames import FRAMES, draw_frames
from ringfence.cli.main import main
from small_worlds import PPO, result


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "ant"
    world = {"kind": "ant", "steps": 30}
    return api.solve(world, "speed <= 0.5", 2.0, solver=PPO, episodes=2, out=out).folder


def test_frames_are_drawn_or_it_is_said_why_not(trained: Path) -> None:
    before, told = result(trained), draw_frames(trained)
    picture = trained / "frames.png"
    if "not drawn" in told:
        assert "MuJoCo can't draw" in told
        assert not picture.exists()
    else:
        pixels = np.asarray(Image.open(picture).convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 200
        assert draw_frames(trained) == told == f"frames: {picture}"  # once is enough
        picture.unlink()
    assert result(trained) == before


def test_a_machine_that_cannot_draw_says_so(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.cli.frames.draw", lambda states: "MuJoCo can't draw here")
    assert draw_frames(trained) == "frames: not drawn, MuJoCo can't draw here"
    assert not (trained / "frames.png").exists()


def test_an_episode_is_drawn_at_six_times_of_its_course(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def draw(states: np.ndarray) -> np.ndarray:
        seen.append(states)
        return np.zeros((len(states), 40, 60, 3), np.uint8)

    monkeypatch.setattr("ringfence.cli.frames.draw", draw)
    draw_frames(trained)
    (trained / "frames.png").unlink()
    (states,) = seen
    assert len(states) == FRAMES
    assert not np.array_equal(states[0], states[-1])


def test_the_command_tells_of_the_frames(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ringfence.cli.frames.draw", lambda states: "MuJoCo can't draw here")
    assert main(["resume", str(trained)]) == 0
    out = capsys.readouterr().out
    assert "frames: not drawn, MuJoCo can't draw here\n" in out
    assert "stochastic policy, mean of 2 episodes:" in out
