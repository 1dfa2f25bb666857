"""`ringfence reproduce point-maze`: the multi-task game without a planner.

Algorithm 3 as written: in each iteration PPO learns, from nothing, one policy that sees the goal,
under the cost of the learned network and the limit 0. The floor is the Ant's, the walker a point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.game import Record, Rules, play
from ringfence.objects import Behaviour, Trajectory, behaviour_of
from ringfence.report.floor import FloorPanel, maze_figure
from ringfence.runs import maze as mazes
from ringfence.runs import maze_learn
from ringfence.runs.files import write_file, write_json
from ringfence.runs.summary import iou, versions
from ringfence.selection import select
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.goal_ppo import GoalPPO, demonstrated_states
from ringfence.solvers.planner import EXPERT, HELD_OUT, best_moves, flag, route
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.studies.tables import markdown
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze
from ringfence.worlds.point_maze import PointTask, follow
from ringfence.worlds.sim.floor import CELL

ITERATIONS = 8
PATHS = 10  # of the experts, from each start of each task, and as many held out
#: Every iteration starts from a clone of the experts. Without it, and with gains three times as
#: large, the policy of the second or third iteration stood still far from the goal.
CLONE = CloningConfig(log_std=-1.0)
#: With the Ant's gains lam was 1.4 after 600,000 steps, and every point walked through the walls:
#: the way around costs a third of the reward. Half of the episodes start where experts were.
PLAYER = PPOConfig(
    env_steps=500_000,
    learning_rate=5e-4,
    gae=0.95,
    entropy_weight=0.003,
    gain_p=0.1,
    gain_i=0.01,
    initial_lam=5.0,
    start_share=0.5,
)
NEAR = CELL / 2  # m: who ends this near to the goal has arrived

Say = Callable[[str], None]


def reproduce(out: Path, seed: int, command: str, say: Say, player: PPOConfig = PLAYER) -> None:
    world = AntMaze(maze())
    demos, heldout = experts(world, seed, EXPERT), experts(world, seed, HELD_OUT)
    rows: list[dict[str, Any]] = []
    records: list[Record] = []
    for record in game(world, demos, seed, player):
        records.append(record)
        rows.append(row_of(record, world, [behaviour_of(d) for d in demos]))
        say(", ".join(f"{k} {v:.3g}" for k, v in rows[-1].items()))
    out.mkdir(parents=True, exist_ok=True)
    settings = asdict(player)
    chosen = select(records, [behaviour_of(d) for d in heldout]).i
    result = {"command": command, "versions": versions(), "ppo": settings, "iterations": rows}
    write_json(out / "results.json", {**result, "selected": chosen})
    write_file(out / "table.md", table(command, rows, chosen).encode())
    panels = [panel(world, record) for record in records]
    maze_figure(panels, out / "maze.png", world.layout)


def experts(world: AntMaze, seed: int, stream: int) -> list[list[Trajectory]]:
    """Points along shortest ways around the true walls, per task."""
    demos = []
    for k, task in enumerate(world.tasks):
        moves, goal = best_moves(world.truth.walls, task.goal), world.layout.centre(task.goal)
        paths = []
        for n, start in enumerate(task.starts):
            for j in range(PATHS):
                rng = np.random.default_rng([seed, stream, k, n, j])
                line = world.layout.centre(route(moves, start, rng))
                line[0] += rng.uniform(-CELL / 4, CELL / 4, 2)
                paths.append(follow(line, goal))
        demos.append(paths)
    return demos


def game(
    world: AntMaze, demos: list[list[Trajectory]], seed: int, config: PPOConfig
) -> Iterator[Record]:
    tasks = [PointTask(world.layout, t.starts, (t.goal,)) for t in world.tasks]
    starts = demonstrated_states([t.observations for d in demos for t in d])
    solver = GoalPPO(config, starts)
    player = maze_learn.make_player(maze_learn.RESTRICTED, True, world, seed)
    rules = Rules(ITERATIONS, epsilon=maze_learn.PLAY_ON)
    behaviours = [behaviour_of(d) for d in demos]
    cloned = clone([t for d in demos for t in d], tasks[0], (seed,), CLONE)
    return play(
        tasks, behaviours, solver.solve_all, player, rules, seed, begin=lambda k, last: cloned
    )


def row_of(record: Record, world: AntMaze, experts: list[Behaviour]) -> dict[str, Any]:
    learners = record.learners
    return {
        "i": record.i,
        "iou": iou(mazes.as_table(record.c_next, world.layout), world.truth),
        "true_cost": float(np.mean([world.truth.true_cost(pi) for pi in learners])),
        "reward": float(np.mean([pi.reward for pi in learners])),
        "expert_reward": float(np.mean([pi.reward for pi in experts])),
        "at_goal": float(np.mean([at_goal(world, k, pi) for k, pi in enumerate(learners)])),
        "lam": record.solutions[0].lam,
    }


def at_goal(world: AntMaze, k: int, pi: Behaviour) -> float:
    """Steps per episode near the goal."""
    far = np.linalg.norm(pi.features - world.layout.centre(world.tasks[k].goal), axis=1)
    return float(pi.visits @ (far <= NEAR))


def panel(world: AntMaze, record: Record) -> FloorPanel:
    """Where the learners of an iteration were, over the constraint they were under."""
    flagged = flag(record.c, world.layout)
    points = np.concatenate([pi.features for pi in record.learners])
    return FloorPanel(f"iteration {record.i}", world.truth.walls, flagged, points=points)


def table(command: str, rows: list[dict[str, Any]], chosen: int) -> str:
    head = ["iteration", "IoU after", "steps in walls", "reward", "experts", "steps at goal", "lam"]
    names = ("i", "iou", "true_cost", "reward", "expert_reward", "at_goal", "lam")
    lines = [[f"{row[name]:.3g}" for name in names] for row in rows]
    return (
        "# The maze without a planner: a point, and PPO on a policy that sees the goal\n\n"
        f"Made by `{command}`; one seed, episodes of 150 steps, deterministic. Held-out "
        f"demonstrations, without the truth, select iteration {chosen}.\n\n"
        + markdown(head, lines)
        + "\n"
    )
