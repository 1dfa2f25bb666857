"""Pictures of MuJoCo's Ant at given states, drawn without a screen where the machine can.

A graphics driver that fails may end the whole process, and its kind is fixed when MuJoCo's
renderer is first imported; so each kind is tried in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from ringfence.objects import Array

#: MuJoCo's names for drawing without a screen: on a graphics card or in software.
KINDS = ("egl", "osmesa")
HEIGHT, WIDTH = 240, 320
#: Seconds to wait for a renderer.
PATIENCE = 120.0
#: From behind and above, metres and degrees.
DISTANCE, ELEVATION, AZIMUTH = 4.5, -25.0, 120.0

Pictures = NDArray[np.uint8]


def draw(states: Array, kinds: tuple[str, ...] = KINDS) -> Pictures | str:
    """Pictures [n, 240, 320, 3] of states [n, 29] = (qpos, qvel), or why there are none.

    The user's own MUJOCO_GL, if it is set, is the only kind that is tried.
    """
    given = os.environ.get("MUJOCO_GL")
    reasons = []
    for kind in (given,) if given else kinds:
        answer = _draw_apart(states, kind)
        if not isinstance(answer, str):
            return answer
        reasons.append(f"{kind}: {answer}")
    return "MuJoCo can't draw without a screen on this machine (" + "; ".join(reasons) + ")"


def _draw_apart(states: Array, kind: str) -> Pictures | str:
    """In a process with that kind of renderer."""
    with TemporaryDirectory() as folder:
        given, made = Path(folder) / "states.safetensors", Path(folder) / "frames.safetensors"
        save_file({"states": np.ascontiguousarray(states, np.float64)}, given)
        command = [sys.executable, "-m", __name__, str(given), str(made)]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "MUJOCO_GL": kind},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer in {PATIENCE:g} s"
        if not made.is_file():
            words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return words[-1]
        frames = cast(Pictures, load_file(made)["frames"])
    return frames if len(np.unique(frames)) > 1 else "its pictures are blank"


def _render(states: Array) -> Pictures:
    """In this process; whatever goes wrong, goes wrong."""
    import mujoco

    from ringfence.worlds.ant import NQ, TORSO, model

    data, camera = mujoco.MjData(model()), mujoco.MjvCamera()
    camera.distance, camera.elevation, camera.azimuth = DISTANCE, ELEVATION, AZIMUTH
    frames = []
    with mujoco.Renderer(model(), HEIGHT, WIDTH) as renderer:
        for state in states:
            data.qpos[:], data.qvel[:] = state[:NQ], state[NQ:]
            mujoco.mj_forward(model(), data)
            camera.lookat[:] = data.xpos[TORSO]
            renderer.update_scene(data, camera)
            frames.append(renderer.render().copy())
    return np.array(frames, np.uint8)


if __name__ == "__main__":
    save_file({"frames": _render(load_file(sys.argv[1])["states"])}, sys.argv[2])
