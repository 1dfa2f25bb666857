"""Frames of the Ant as a training left it: frames.png, where the machine can draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ringfence.constraints import constraint_files
from ringfence.deploy.policies import load_policy
from ringfence.disk import write_file
from ringfence.report.draw.figures import strip
from ringfence.runs import problem
from ringfence.runs.config import make_world
from ringfence.solvers.ppo import evaluate, seen_of
from ringfence.worlds.ant import AntTask
from ringfence.worlds.sim.ant_frames import draw

FRAMES = 6
PICTURE = 40  # its stream of random numbers
SECONDS = 0.05  # of a step


def draw_frames(run: Path) -> str:
    """One stochastic episode of a finished solve, as a strip; returns what to tell about it."""
    config, path = problem.read(run), run / "frames.png"
    if path.is_file():
        return f"frames: {path}"
    task = problem.find_task(make_world(config.world), config.task)
    assert isinstance(task, AntTask)
    policy = load_policy(run)
    raw = seen_of(constraint_files.load(run / "constraint"), policy.sees)
    (episode,) = evaluate(task, policy.arrays, raw, 1, (config.seed, PICTURE))
    at = np.linspace(0, len(episode) - 1, FRAMES).round().astype(int)
    pictures = draw(task.states_of(episode)[at])
    if isinstance(pictures, str):
        return f"frames: not drawn, {pictures}"
    x = episode.features[:, 0]
    titles = [f"{(t + 1) * SECONDS:.1f} s, x = {x[t]:.1f} m" for t in at]
    write_file(path, strip(pictures, titles))
    return f"frames: {path}"
