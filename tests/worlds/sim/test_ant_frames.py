"""Drawing the Ant: pictures where the machine can draw, a clear reason where not."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.worlds.ant import model
from ringfence.worlds.sim.ant_frames import HEIGHT, WIDTH, draw


def states() -> np.ndarray:
    """Upright, and on its side."""
    standing = np.concatenate([model().qpos0, np.zeros(14)])
    turned = standing.copy()
    turned[3:7] = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    return np.array([standing, turned])


def test_pictures_show_the_states_or_a_reason_is_given() -> None:
    frames = draw(states())
    if isinstance(frames, str):
        assert frames.startswith("MuJoCo can't draw without a screen on this machine (egl: ")
        assert "osmesa: " in frames
        pytest.skip(frames)
    assert frames.shape == (2, HEIGHT, WIDTH, 3)
    for frame in frames:
        assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 50
    assert (frames[0] != frames[1]).any(axis=-1).mean() > 0.01


def test_a_renderer_that_fails_is_named_and_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    answer = draw(states(), kinds=("nonsense",))
    assert isinstance(answer, str)
    assert "(nonsense: " in answer
    assert len(answer) > len("MuJoCo can't draw without a screen on this machine (nonsense: )")
