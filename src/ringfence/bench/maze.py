"""How fast a multi-task iteration on the AntMaze is, measured side by side in one run.

The peer is Gymnasium-Robotics' AntMaze on an open map of the same size: one environment, one
trajectory after the other, with the same controller on the same routes. Ours are all trajectories
of all tasks at once. A full iteration then is 200 trajectories, the regression on their points and
the discretisation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ringfence.constraints.family import make_family
from ringfence.objects import Array, Trajectory, behaviour_of
from ringfence.players.player import ConstraintPlayer, Ground
from ringfence.runs.config import make_player, tagged
from ringfence.solvers.planner import LEARNER, best_moves, plan
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze
from ringfence.worlds.sim import ant_symmetry as symmetry
from ringfence.worlds.sim.ant_walk import (
    SPEED_LIMIT,
    Pilot,
    Walk,
    controller,
    standing,
    walk_groups,
)
from ringfence.worlds.sim.floor import REACHED, flag

Report = Callable[[str], None]

ROUNDS = 5
EPISODES = 10  # from each start of each task


def bench_maze(threads: int = 2, report: Report = print) -> dict[str, float | None]:
    """Flat name -> number; null where the peer isn't installed."""
    world = AntMaze(maze())
    numbers: dict[str, float | None] = side_by_side(world, threads, report)
    split = one_iteration(world, threads)
    parts = ", ".join(f"{k} {v:.1f} s" for k, v in split.items())
    report(f"one iteration, {2 * EPISODES * len(world.tasks)} trajectories: {parts}")
    numbers |= {f"{name}_s": seconds for name, seconds in split.items()}
    return numbers


def side_by_side(world: AntMaze, threads: int, report: Report) -> dict[str, float | None]:
    """Trajectories per second, in rounds that alternate so that a noisy machine hits both.

    In each round we walk all episodes of two tasks, and the peer some of the same routes. Rates
    are steps over the tasks' mean length. Seconds of processor time are counted, too: they say
    what a machine does that has nothing else to do.
    """
    env = open_environment(world)
    if env is None:
        report("gymnasium-robotics is not installed (pip install 'ringfence[peers]'): no peer")
    ours, theirs = [], []
    for number in range(ROUNDS):
        all_routes = routes(world, EPISODES, seed=number)
        groups = [all_routes[number], all_routes[number + len(all_routes) // 2]]

        def walk_all(groups: list[list[Walk]] = groups) -> int:
            walked = walk_groups(groups, world.horizon, threads)
            return sum(len(w.trajectory) for group in walked for w in group)

        def walk_some(groups: list[list[Walk]] = groups) -> int:
            return sum(walk_alone(env, group[0], world.horizon) for group in groups)

        steps, *seconds = _timed(walk_all)
        length = steps / sum(map(len, groups))
        ours.append([steps / length / s for s in seconds])
        report(f"ringfence: {ours[-1][0]:.2f} trajectories/s, {steps / seconds[0]:,.0f} steps/s")
        if env is not None:
            steps, *seconds = _timed(walk_some)
            theirs.append([steps / length / s for s in seconds])
            report(
                f"AntMaze: {theirs[-1][0]:.2f} trajectories/s, {steps / seconds[0]:,.0f} steps/s"
            )
    return _rates(np.array(ours), np.array(theirs), report)


def _timed(work: Callable[[], int]) -> tuple[int, float, float]:
    """What came of it, in how many seconds, and of processor time."""
    began, busy = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - began, time.process_time() - busy


def _rates(ours: Array, theirs: Array, report: Report) -> dict[str, float | None]:
    """Medians over rounds; ours and theirs [rounds, 2] in trajectories per (processor) second."""
    rates: dict[str, float | None] = {
        "trajectories_per_s": float(np.median(ours[:, 0])),
        "gymnasium_trajectories_per_s": None,
        "trajectories_over_gymnasium": None,
        "trajectories_over_gymnasium_per_processor_second": None,
    }
    if len(theirs):
        ratio, busy = np.median(ours / theirs, axis=0).tolist()
        rates["gymnasium_trajectories_per_s"] = float(np.median(theirs[:, 0]))
        rates["trajectories_over_gymnasium"] = ratio
        rates["trajectories_over_gymnasium_per_processor_second"] = busy
        report(
            f"ratio, median of {ROUNDS} rounds: {ratio:.1f} ({busy:.1f} per second of processor "
            "time, of which we use two at once where they are free)"
        )
    return rates


def routes(world: AntMaze, episodes: int, seed: int) -> list[list[Walk]]:
    """A group of walks around the true walls for each task."""
    return [
        [
            plan(task, moves, start, np.random.default_rng([seed, LEARNER, k, n, j])).walk
            for n, start in enumerate(task.starts)
            for j in range(episodes)
        ]
        for k, task in enumerate(world.tasks)
        for moves in [best_moves(world.truth.walls, task.goal)]
    ]


def open_environment(world: AntMaze) -> Any:
    """The published environment without any wall, or None."""
    try:
        from gymnasium_robotics.envs.maze.ant_maze_v5 import AntMazeEnv
    except ImportError:
        return None
    rows, cols = world.grid.shape
    return AntMazeEnv(maze_map=[[0] * cols for _ in range(rows)], reward_type="dense")


def walk_alone(env: Any, walk: Walk, horizon: int) -> int:
    """One trajectory in the published environment with our controller; returns its steps."""
    (state,), actor, pilot = standing(walk.start[None]), controller(), Pilot([walk])
    far = np.array([0, env.maze.map_width - 1])  # it wants both, not in one cell; then ours
    env.reset(seed=0, options={"goal_cell": np.zeros(2, int), "reset_cell": far})
    env.goal = walk.goal
    env.ant_env.set_state(state[:15], state[15:])
    xy, seen, speed = state[:2], state[2:], 0.0
    for t in range(horizon):
        direction, quarters = pilot.steer(xy[None], seen[None])
        view = symmetry.view(seen[None], direction, quarters)
        action = actor.mean(np.column_stack([view, [speed]]))
        torques = symmetry.torques(np.clip(action, -1, 1), quarters)[0]
        observed, _, _, _, info = env.step(torques)
        xy, seen = observed["achieved_goal"], observed["observation"][:27]
        speed = float(np.hypot(info["x_velocity"], info["y_velocity"])) - SPEED_LIMIT
        if np.linalg.norm(xy - walk.goal) <= REACHED:
            return t + 1
    return horizon


def one_iteration(world: AntMaze, threads: int) -> dict[str, float]:
    """Seconds of each part, after a first fit that compiles."""
    player = default_player(world)
    few = [behaviour_of([_straight(task.layout.centre(task.goal))]) for task in world.tasks]
    player.update(few, [few])
    marks = [time.perf_counter()]
    walked = walk_groups(routes(world, EPISODES, seed=9), world.horizon, threads)
    behaviours = [behaviour_of([w.trajectory for w in group]) for group in walked]
    marks.append(time.perf_counter())
    c = player.update(behaviours, [behaviours])
    marks.append(time.perf_counter())
    flag(c, world.layout)
    marks.append(time.perf_counter())
    walk_s, fit_s, discretise_s = np.diff(marks).tolist()
    return {
        "walk": walk_s,
        "fit": fit_s,
        "discretise": discretise_s,
        "iteration": marks[-1] - marks[0],
    }


def default_player(world: AntMaze) -> ConstraintPlayer:
    """The constraint player of a game on this world with its default settings."""
    family = make_family("mlp", (), world.features, None, None)
    ground = Ground(family, float(world.horizon), [], multi_task=True, N=1, seed=0)
    return make_player(tagged("bench", "player", world.defaults({})["player"]), ground)


def _straight(goal: Array) -> Trajectory:
    """A made-up trajectory to a goal, only to compile with."""
    xy = np.linspace(np.zeros(2), goal, 50)
    return Trajectory(xy, np.zeros((49, 1)), np.zeros(49), xy[1:], True)
