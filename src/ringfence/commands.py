"""What each subcommand does: build the configuration, call one function, print.

Heavy modules are imported where they are used, so that `ringfence --help` answers at once.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.errors import InvalidInput
from ringfence.options import (
    DEMONSTRATORS,
    MAPS,
    chosen,
    free_name,
    one_of,
    refuse,
    refuse_continuous,
    require_workers,
)

if TYPE_CHECKING:
    from ringfence.demos.dataset import Demonstrations
    from ringfence.objects import Problem, Solution
    from ringfence.runs.config import SolverConfig, WorldConfig
    from ringfence.worlds.grid import GridWorld


def quickstart(options: Namespace) -> None:
    """The whole product on the built-in maze with default settings."""
    from ringfence.cli.main import parser

    words = ["learn", "--world", options.world, "--seed", str(options.seed)]
    if options.world == "ant-maze":
        # Short: two episodes from each start, three iterations; the whole takes ten, and five.
        words += ["--paths", "2", "--heldout", "1", "--iterations", "3"]
    out = options.out = options.out or free_name(Path("runs/quickstart"))
    settings = parser().parse_args([*words, "--out", str(out)])
    settings.command_line = " ".join(["ringfence", *words])
    learn(settings)
    print("Next: open the page, then try a task nobody demonstrated:")
    command = os.environ.get("RINGFENCE_COMMAND", "ringfence")
    print(f"  {command} transfer {out} --goal 2,7 --start 9,3")


def is_control(options: Namespace) -> bool:
    """Is this about a continuous world, by name or in a TOML file?"""
    return options.config is not None or options.world in ("ant", "ant-bullet")


def demos_make(options: Namespace) -> None:
    if is_control(options):
        from ringfence import control_commands

        control_commands.demos_make(options)
        return
    from ringfence.demos import checks as demo_checks
    from ringfence.demos import dataset as demos

    if options.out.exists():
        raise InvalidInput(f"{options.out}: it exists already; choose another --out")
    made = make_demos(options, world_of(options))
    demos.save(made, options.out)
    print(demo_checks.describe(made))
    print(f"saved to {options.out}")


def demos_check(options: Namespace) -> None:
    if options.demos.suffix == ".toml":
        from ringfence import control_commands

        control_commands.demos_check(options)
        return
    from ringfence.demos import checks as demo_checks
    from ringfence.demos import dataset as demos
    from ringfence.experts import optimal as experts
    from ringfence.runs.worlds import make_world

    refuse_file(options.demos)
    given = demos.load(options.demos)
    if options.world is None:
        findings = demo_checks.check(given)
    elif world_of(options).simulator == "ant":
        from ringfence import commands_maze

        findings = commands_maze.check_demos(given, world_of(options))
    else:
        findings = experts.check(given, make_world(world_of(options)).tasks)
    for finding in findings:
        print(finding)
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        raise InvalidInput(f"{options.demos}: {errors} errors (above); mend them before learning")
    print(f"{options.demos}: usable, {len(findings)} remarks")


def demos_show(options: Namespace) -> None:
    from ringfence.demos import checks as demo_checks
    from ringfence.demos import dataset as demos

    refuse_file(options.demos)
    print(demo_checks.describe(demos.load(options.demos)))


def refuse_file(path: Path) -> None:
    """Logs of one's own are read together with what a TOML file says of them."""
    if path.is_file():
        raise InvalidInput(
            f"{path}: logs are checked beside their environment: name both in a TOML file "
            "(docs/your-environment.md) and run 'ringfence demos check FILE.toml'"
        )


def learn(options: Namespace) -> None:
    if options.config is None and options.seed is None:
        options.seed = 0
    if options.demos is not None:
        refuse(options, DEMONSTRATORS, f"is how demonstrations are made; {options.demos} has them")
    if is_control(options):
        from ringfence import control_commands

        refuse(options, MAPS, "is for maps")
        control_commands.learn(options)
        return
    refuse_continuous(options)
    from ringfence.demos import dataset as demos
    from ringfence.experts import optimal as experts
    from ringfence.runs import learn as runs
    from ringfence.runs.config import DemosConfig, GameConfig, RunConfig
    from ringfence.runs.folder import refuse_existing
    from ringfence.runs.worlds import make_world

    require_workers(options.workers)
    world = world_of(options)
    method = one_of("--method", options.method, ("mt-icl", "icl"))
    out = options.out = options.out or free_name(Path("runs") / f"{world.name}-{method}")
    if world.simulator == "ant":
        from ringfence import commands_maze

        commands_maze.create(options, world, out)
        finish(out, options.workers)
        return
    refuse_existing(out)
    if options.demos is not None and options.experts == "exact":
        raise InvalidInput("--experts exact makes its own experts; leave --demos out")
    given = make_demos(options, world) if options.demos is None else demos.load(options.demos)
    for finding in experts.check(given, make_world(world).tasks):
        if finding.severity == "error":
            raise InvalidInput(f"{options.demos}: {finding.where}: {finding.message}")
    config = RunConfig(
        command=options.command_line,
        seed=options.seed,
        world=world,
        demos=DemosConfig(demos.content_hash(given), options.experts),
        game=GameConfig(
            method=method,
            tasks=tuple(task_name(make_world(world).tasks, task) for task in options.task),
            player=one_of("--player", options.player, ("regression", "ftrl")),
            constraint_class=one_of("--class", options.constraint_class, ("table", "linear")),
            restricted=not options.unrestricted,
            **chosen(options, ("iterations", "epsilon", "buffer", "anneal")),
        ),
        solver=solver_config(options),
    )
    runs.create(out, config, given)
    finish(out, options.workers)


def resume(options: Namespace) -> None:
    from ringfence.runs.config import is_control as is_control_run

    require_workers(options.workers)
    config = options.run / "config.toml"
    game = config.is_file() and is_control_run(config)
    if options.iterations is not None and not game:
        raise InvalidInput("--iterations is for games on continuous worlds: leave it out")
    if (options.run / "solve.toml").is_file():
        from ringfence import commands_train

        commands_train.finish_training(options.run)
        return
    if (options.run / "transfer.toml").is_file():
        from ringfence import control_commands

        control_commands.finish_transfer(options.run)
        return
    if game:
        from ringfence import control_commands

        control_commands.resume(options.run, options.iterations)
    else:
        finish(options.run, options.workers)


def finish(run: Path, workers: int) -> None:
    """Play a run to its end, with progress, and tell what came of it."""
    from ringfence.cli.progress import run_progress
    from ringfence.report import page
    from ringfence.runs import learn, maze_learn

    with run_progress() as progress:
        if is_ant_maze(run):
            summary = maze_learn.drive(run, progress)
        else:
            summary = learn.drive(run, workers, progress)
    report = page.write(run)
    chosen = summary["iterations"][summary["selected"] - 1]
    print(f"constraint (iteration {summary['selected']}): {chosen['constraint']['description']}")
    rows = [
        ("reward", chosen["learner_reward_mean"], chosen["expert_reward_mean"]),
        ("true violation", chosen["learner_true_cost_mean"], chosen["expert_true_cost_mean"]),
    ]
    for name, learner, expert in rows:
        if learner is not None:
            print(f"{name}, mean over tasks: {learner:.3f} (experts {expert:.3f})")
    if chosen["constraint"].get("iou") is not None:
        print(f"overlap with the true cells (IoU): {chosen['constraint']['iou']:.3f}")
    counts = summary["evidence"]
    print("evidence: " + ", ".join(f"{count} {label}" for label, count in counts.items()))
    print(f"page: {report}")


def solve(options: Namespace) -> None:
    if options.world in ("ant", "ant-bullet") or options.world.startswith("gym:"):
        from ringfence import commands_train

        commands_train.train(options)
        return
    if options.feature or options.start_share or options.demos or options.policy:
        raise InvalidInput(
            "--feature, --start-share, --demos and --policy are for the Ant and Gymnasium's "
            "environments"
        )
    from ringfence.runs.single import solve_one

    answer = solve_one(
        world_of(options),
        options.task,
        options.constraint,
        options.delta,
        make_any_solver(options),
        options.seed,
        options.out,
        options.command_line,
    )
    print(f"{answer['task']} under {answer['constraint']['description']}")
    print_numbers(answer, ("reward", "cost", "delta", "lam", "true_cost", "length"))
    if answer["reward"] == 0:
        print("remark: within this limit the constraint leaves no way to the goal")
    print(f"saved to {options.out}")


def transfer(options: Namespace) -> None:
    from ringfence.runs.config import is_control as is_control_run

    config = options.run / "config.toml"
    if options.task is not None or (config.is_file() and is_control_run(config)):
        from ringfence import control_commands

        refuse(options, ("goal", "start", "unknown", "solver", "temperature"), "is for maps")
        control_commands.transfer(options)
        return
    refuse(options, ("steps", "episodes", "delta", "clearance"), "is for continuous worlds")
    if options.goal is None or options.start is None:
        raise InvalidInput(
            "what is the new task? --goal and --start on a map, --task FILE.toml elsewhere"
        )
    from ringfence.runs.transfer import from_run

    out = options.out or free_name(options.run / "transfer")
    if is_ant_maze(options.run):
        from ringfence.runs import maze_transfer

        done = maze_transfer.from_run(
            options.run, options.goal, options.start, options.unknown, options.seed, out, print
        )
        print_numbers(done, ("success", "reward", "true_cost", "episodes"))
        print(f"saved to {out}")
        return
    solver = make_any_solver(options)
    answer = from_run(
        options.run, options.goal, options.start, options.unknown, solver, options.seed, out, print
    )
    print_numbers(answer, ("success", "reward", "cost", "true_cost", "unknown_cells"))
    print(f"saved to {out}")


def evaluate(options: Namespace) -> None:
    from ringfence.constraints.saved import load
    from ringfence.runs.files import write_json
    from ringfence.runs.worlds import make_world

    world = make_world(world_of(options))
    saved = load(options.constraint) if Path(options.constraint).is_dir() else None
    if saved is not None and [f.name for f in saved.features] != [f.name for f in world.features]:
        from ringfence import control_commands

        result = control_commands.evaluate(saved, options)
    else:
        result = evaluate_on_map(options, world)
    if options.out is not None:
        write_json(options.out, result)
        print(f"saved to {options.out}")


def evaluate_on_map(options: Namespace, world: GridWorld) -> dict[str, Any]:
    from ringfence.demos import dataset as demos
    from ringfence.runs import evaluate as evaluation
    from ringfence.runs.single import read_constraint

    c, delta = read_constraint(options.constraint, world)
    result: dict[str, Any] = {"constraint": c.describe(), "delta": delta}
    print(result["constraint"])
    if world.truth.known:
        truth = evaluation.against_truth(world, c, delta, make_any_solver(options))
        result["truth"] = truth
        print_numbers(truth, ("iou", "false_walls", "missed_walls", "impossible"))
        print_numbers(
            truth, ("learner_reward_mean", "expert_reward_mean", "learner_true_cost_mean")
        )
    if options.demos is not None:
        costs = evaluation.against_demonstrations(c, demos.load(options.demos))
        result["demonstrations"] = costs
        print_numbers(costs, ("expert_cost_mean", "heldout_expert_cost_mean"))
    return result


def report(options: Namespace) -> None:
    from ringfence.report import page

    if len(options.runs) == 1:
        print(f"page: {page.write(options.runs[0], options.out)}")
        return
    if options.out is None:
        raise InvalidInput("a page over several runs needs --out FILE")
    print(f"page: {page.write_many(options.runs, options.out)}")


def bench(options: Namespace) -> None:
    from ringfence.runs.files import write_json

    if options.what in ("crl", "maze"):
        from ringfence.bench.crl import bench_crl
        from ringfence.bench.maze import bench_maze

        numbers = bench_crl() if options.what == "crl" else bench_maze()
        if options.out is not None:
            write_json(options.out, numbers)
            print(f"saved to {options.out}")
        return
    from ringfence.bench import exact as benchmarks

    print(benchmarks.HEADER)
    rows = []
    for row in benchmarks.exact(options.budget):
        rows.append(row)
        print(row.line(), flush=True)
    if options.out is not None:
        write_json(options.out, benchmarks.flat(rows))
        print(f"saved to {options.out}")


def is_ant_maze(run: Path) -> bool:
    from ringfence.runs import config

    return config.read(run / "config.toml").world.simulator == "ant"


def world_of(options: Namespace) -> WorldConfig:
    from ringfence.runs.worlds import world_config

    return world_config(options.world, options.horizon, options.slip, options.reward)


def make_demos(options: Namespace, world: WorldConfig) -> Demonstrations:
    if world.simulator == "ant":
        from ringfence import commands_maze

        return commands_maze.make_demos(options, world)
    from ringfence.experts.optimal import ExpertConfig, make_demonstrations
    from ringfence.runs.worlds import make_world

    grid = make_world(world)
    if not grid.truth.known:
        raise InvalidInput(
            f"{options.world}: this map has no '#' cell, so nobody knows what its demonstrators "
            "avoid: give theirs (learn --demos), or mark the forbidden cells to have some made"
        )
    config = ExpertConfig(
        paths=10 if options.paths is None else options.paths,
        heldout=5 if options.heldout is None else options.heldout,
        kind="deterministic" if options.deterministic else "soft",
        delta=options.expert_delta or 0.0,
        noise=options.noise,
        contaminated=options.contaminated,
        seed=options.seed,
    )
    return make_demonstrations(grid, config)


def solver_config(options: Namespace) -> SolverConfig:
    from ringfence.runs.config import SolverConfig

    return SolverConfig(options.solver, options.temperature)


def make_any_solver(options: Namespace) -> Callable[[Problem], Solution]:
    """The game's solvers, and Algorithm 1 with either multiplier."""
    if options.solver in ("gradient", "pid"):
        from ringfence.solvers.lagrangian import GRADIENT, PID, LagrangianSolver

        return LagrangianSolver(PID if options.solver == "pid" else GRADIENT)
    from ringfence.runs.worlds import make_solver

    return make_solver(solver_config(options))


def task_name(tasks: Any, word: str) -> str:
    """A task's name from its number in the world, or as it is."""
    return str(tasks[int(word)].name) if word.isdecimal() and int(word) < len(tasks) else word


def print_numbers(row: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        value = row.get(name)
        text = f"{value:.6g}" if isinstance(value, float) else json.dumps(value)
        print(f"  {name.replace('_', ' ')}: {text}")
