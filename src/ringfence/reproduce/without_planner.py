"""The multi-task game without a planner: a point on the Ant's floor, PPO on a policy that sees the
goal.

Algorithm 3 as written: in each iteration PPO learns one policy that sees the goal, under the cost
of the learned network and the limit 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from ringfence.constraints.family import make_family
from ringfence.game import Record
from ringfence.game import play as play_game
from ringfence.objects import Behaviour, Trajectory, behaviour_of
from ringfence.players.player import Ground
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.exact_tasks import map_text, overlap
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.rows import Found, Row
from ringfence.reproduce.study import Study, Summary, finished, place
from ringfence.runs.config import Config, make_player, make_world
from ringfence.runs.driver import rules
from ringfence.runs.summary import SCHEMA, versions
from ringfence.selection import select
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.goal_ppo import GoalPPO, demonstrated_states
from ringfence.solvers.planner import EXPERT, HELD_OUT, best_moves, route
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.point_maze import PointTask, follow
from ringfence.worlds.sim.floor import CELL

NEAR = CELL / 2  # m: who ends this near to the goal has arrived
#: Of an iteration's positions, kept for the picture.
PICTURED = 2_000


def point_course(study: Study) -> Found:
    games = {v.name: study.summaries(v) for v in study.variants}
    rows = [
        {"variant": name, "seed": seed, **row}
        for name, seeds in games.items()
        for seed, summary in seeds.items()
        for row in summary["rows"]
    ]
    chosen = [str(s["selected"]) for seeds in games.values() for s in seeds.values()]
    return Found(rows, {"selected": ", ".join(chosen)})


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    config = configuration(study.experiment, variant, seed)
    paths = variant.get("demonstrations")["paths"]
    run = place("points", f"seed-{seed}", {**asdict(config), "command": "", "paths": paths})
    return finished(run, lambda: played(study, config, paths))


def played(study: Study, config: Config, paths: int) -> Summary:
    world = cast(AntMaze, make_world(config.world))
    train, heldout = (experts(world, config.seed, s, paths) for s in (EXPERT, HELD_OUT))
    behaviours, records, rows = [behaviour_of(d) for d in train], list[Record](), list[Row]()
    for record in game(world, train, config):
        records.append(record)
        rows.append(row_of(record, world, behaviours))
        study.say(", ".join(f"{k} {v:.3g}" for k, v in rows[-1].items() if k != "map"))
    chosen = select(records, behaviours, [behaviour_of(d) for d in heldout])
    return {
        "schema": SCHEMA,
        "command": config.command,
        "world": "point-maze",
        "kind": "point-maze",
        "seed": config.seed,
        "versions": versions(world),
        "solver": asdict(config.solver),
        "selected": chosen.i,
        "rows": rows,
        "positions": [positions(record) for record in records],
    }


def experts(world: AntMaze, seed: int, stream: int, count: int) -> list[list[Trajectory]]:
    """Points along shortest ways around the true walls, per task."""
    demos = []
    for k, task in enumerate(world.tasks):
        moves, goal = best_moves(world.truth.walls, task.goal), world.layout.centre(task.goal)
        paths = []
        for n, start in enumerate(task.starts):
            for j in range(count):
                rng = np.random.default_rng([seed, stream, k, n, j])
                line = world.layout.centre(route(moves, start, rng))
                line[0] += rng.uniform(-CELL / 4, CELL / 4, 2)
                paths.append(follow(line, goal))
        demos.append(paths)
    return demos


def game(world: AntMaze, demos: list[list[Trajectory]], config: Config) -> Iterator[Record]:
    tasks = [PointTask(world.layout, t.starts, (t.goal,)) for t in world.tasks]
    everyone = [t for d in demos for t in d]
    solver = GoalPPO(config.solver, demonstrated_states([t.observations for t in everyone]))
    behaviours, seed = [behaviour_of(d) for d in demos], config.seed
    family = make_family(config.game.constraint, (), world.features, None, None)
    ground = Ground(family, float(world.horizon), behaviours, True, config.game.iterations, seed)
    cloned = clone(everyone, tasks[0], (seed,), CloningConfig(log_std=config.opening.log_std))
    player = make_player(config.player, ground)
    return play_game(
        tasks, behaviours, solver.solve_all, player, rules(config), seed, lambda k, last: cloned
    )


def row_of(record: Record, world: AntMaze, experts: list[Behaviour]) -> Row:
    learners, forbidden = record.learners, world.cells.forbidden
    return {
        "i": record.i,
        "iou": overlap(forbidden(record.c_next), world.truth.walls),
        "true_cost": float(np.mean([world.truth.true_cost(pi) for pi in learners])),
        "reward": float(np.mean([pi.reward for pi in learners])),
        "expert_reward": float(np.mean([pi.reward for pi in experts])),
        "at_goal": float(np.mean([at_goal(world, k, pi) for k, pi in enumerate(learners)])),
        "lam": record.solutions[0].lam,
        "map": map_text(forbidden(record.c)),
    }


def at_goal(world: AntMaze, k: int, pi: Behaviour) -> float:
    """Steps per episode near the goal."""
    far = np.linalg.norm(pi.features - world.layout.centre(world.tasks[k].goal), axis=1)
    return float(pi.visits @ (far <= NEAR))


def positions(record: Record) -> Any:
    """Where the learners of an iteration were, thinned."""
    points = np.concatenate([pi.features for pi in record.learners])
    return points[:: max(1, len(points) // PICTURED)].round(2).tolist()
