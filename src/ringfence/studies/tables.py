"""`ringfence reproduce grid`: runs the studies of the maze, writes tables, figures, numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.demos.dataset import content_hash
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.report.draw import Curve
from ringfence.report.figures import Panel, curve_figure, maze_figure
from ringfence.runs import learn as runs
from ringfence.runs.config import DemosConfig, GameConfig, RunConfig, SolverConfig
from ringfence.runs.files import write_file, write_json
from ringfence.runs.summary import versions
from ringfence.runs.worlds import make_world, world_config
from ringfence.studies import maze
from ringfence.worlds.grid import GridWorld

RANDOM_MAZES = 50
HELD_OUT_PATHS = 10

SAME = (
    "Avoid and allow are the same here: the learned constraint forbids every cell that no "
    "demonstrator walked."
)

Rows = list[dict[str, Any]]


def grid(out: Path, seeds: int, command: str, say: Callable[[str], None]) -> None:
    """All studies of the paper's maze, into `out`; seeds' runs go beside it and can be resumed."""
    world = make_world(world_config("maze"))
    out.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        say(f"run with seed {seed}")
        seed_run(out, seed)
    say("exact games")
    exact = maze.exact_games(world)
    say("one task, ten tasks, average and maximum")
    single, tables = maze.single_tasks(world)
    entropy = maze.entropy(world)
    say("paths per start")
    curve = maze.path_curve(world, seeds)
    say("all ways to leave three goals out")
    held_out = {
        "exact": maze.held_out(world, None),
        "sampled": maze.held_out(world, HELD_OUT_PATHS),
    }
    say("asking for the next demonstration in random mazes")
    asking = maze.asking(RANDOM_MAZES)
    results = {
        "command": command,
        "versions": versions(),
        "exact": exact,
        "single": single,
        "entropy": entropy,
        "paths": curve,
        "held_out": held_out,
        "asking": asking,
    }
    write_json(out / "results.json", results)
    write_file(out / "table.md", table(results).encode())
    maze_picture(world, tables, single, out / "maze.png")
    path_picture(curve, out / "paths.png")


def seed_run(out: Path, seed: int) -> None:
    """One run with sampled demonstrations, on disk; its summary becomes seed-N.json."""
    world = world_config("maze")
    demos = make_demonstrations(make_world(world), ExpertConfig(seed=seed))
    config = RunConfig(
        command=f"ringfence learn --world maze --seed {seed}",
        seed=seed,
        world=world,
        demos=DemosConfig(content_hash(demos)),
        game=GameConfig(),
        solver=SolverConfig(),
    )
    run = Path("runs") / f"reproduce-{out.name}" / f"seed-{seed}"
    if not run.exists():
        runs.create(run, config, demos)
    write_json(out / f"seed-{seed}.json", runs.drive(run, 1, lambda event: None))


def table(results: dict[str, Any]) -> str:
    """table.md."""
    parts = [
        "# The paper's maze, exactly",
        f"Made by `{results['command']}`. IoU is the overlap of forbidden cells with the true "
        "ones; violation is steps per episode in forbidden cells.",
        "## Exact occupancies: IoU after each update, violation of that iteration's learners",
        exact_table(results["exact"]),
        "## Sampled paths per task and start",
        paths_table(results["paths"]),
        "## One task's data, ten constraints put together, and the multi-task game",
        markdown(
            ["constraint", "IoU", "of ten tasks made impossible"],
            [[r["constraint"], f"{r['iou']:.3f}", str(r["impossible"])] for r in results["single"]],
        ),
        "## Ill-posedness: one task, learners with more and more entropy",
        "The expert's task is the first goal. A deterministic learner (temperature 0) forbids its "
        "own path; any entropy, and all that the expert did not take ends up forbidden.",
        markdown(
            ["learner's temperature", "forbidden", "cells not taken", "IoU", "tasks impossible"],
            [
                [
                    f"{r['temperature']:g}",
                    str(r["forbidden"]),
                    str(r["not_taken"]),
                    f"{r['iou']:.3f}",
                    str(r["impossible"]),
                ]
                for r in results["entropy"]
            ],
        ),
        "## Tasks never seen: all 120 ways to leave three goals out, and five new starts",
        "Each way: 3 goals x 2 known starts, and 10 goals x 5 new starts. `covered` is said "
        "before the task is run.",
        *[held_out_table(kind, rows) for kind, rows in results["held_out"].items()],
        "## Asking for the next demonstration",
        asking_table(results["asking"]),
    ]
    return "\n\n".join(parts) + "\n"


def exact_table(rows: Rows) -> str:
    lines = []
    for player, restricted in dict.fromkeys((r["player"], r["restricted"]) for r in rows):
        course = [r for r in rows if (r["player"], r["restricted"]) == (player, restricted)]
        lines.append(
            [
                f"{player}, {'restricted' if restricted else 'unrestricted (the paper)'}",
                " ".join(f"{r['iou_after_update']:.3f}" for r in course),
                " ".join(f"{r['true_cost']:.2f}" for r in course),
                f"{min(r['worst_reward_gap'] for r in course):.1e}",
            ]
        )
    return markdown(["player", "IoU", "violation", "worst reward less the expert's"], lines)


def paths_table(rows: Rows) -> str:
    lines = []
    for paths in dict.fromkeys(r["paths"] for r in rows):
        of = [r for r in rows if r["paths"] == paths]
        lines.append(
            [
                str(paths),
                mean_se([r["iou"] for r in of]),
                mean_se([r["iou_regression"] for r in of]),
                f"{sum(r['wrong'] for r in of)}",
                f"{sum(r['wrong_and_visited'] for r in of)}",
            ]
        )
    head = ["paths", "IoU, restricted", "IoU, regression", "wrong cells, all seeds (restricted)"]
    return markdown([*head, "of them visited by an expert"], lines)


def held_out_table(kind: str, rows: Rows) -> str:
    columns = [f"{w}{c}" for w in ("covered", "uncovered") for c in ("", "_success", "_safe")]
    lines = []
    for unknown in ("avoid", "allow"):
        of = [r for r in rows if r["unknown"] == unknown]
        lines.append([f"{kind}, {unknown}", *[str(sum(r[c] for r in of)) for c in columns]])
    same = "" if lines[0][1:] != lines[1][1:] else f"\n\n{SAME}"
    names = [c.replace("_", ": ").replace("safe", "violation 0") for c in columns]
    return markdown(["experts, unknown cells", *names], lines) + same


def asking_table(rows: Rows) -> str:
    settled = {
        how: (sum(r[f"{how}_settled"] for r in rows), sum(r[f"{how}_decided"] for r in rows))
        for how in ("suggested", "random")
    }
    unknown = sum(r["unknown"] for r in rows)
    lines = [[how, *map(str, numbers)] for how, numbers in settled.items()]
    ratios = [f"{a / b:.2f}" for a, b in zip(settled["suggested"], settled["random"], strict=True)]
    lines.append(["ratio", *ratios])
    head = ["next demonstration", "unknown cells settled", "of them allowed or proven"]
    return (
        f"{len(rows)} random 8 x 8 mazes with unknown cells ({unknown} in all), one demonstration "
        "of ten paths more.\n\n" + markdown(head, lines)
    )


def mean_se(values: Sequence[float]) -> str:
    se = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {se:.3f}"


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def maze_picture(world: GridWorld, tables: dict[str, Any], single: Rows, path: Path) -> None:
    """The paper's maze figure, panels (a) to (h)."""
    demos = make_demonstrations(world, ExpertConfig())
    of = {row["constraint"]: row for row in single}
    walls = world.truth.walls

    def learned(title: str, name: str) -> Panel:
        note = f"IoU {of[name]['iou']:.2f}, {of[name]['impossible']} of 10 tasks impossible"
        return Panel(title, walls=walls, cost=tables[name], note=note)

    def data(title: str, tasks: Sequence[int]) -> Panel:
        paths = [t.features for k in tasks for t in demos.tasks[k].train]
        return Panel(title, walls=walls, paths=paths)

    panels = [
        Panel("truth", walls=walls),
        data("one task's data", [0]),
        data("ten tasks' data", range(len(demos.tasks))),
        learned("single-task constraint", "task 0"),
        learned("average of ten single-task", "average"),
        learned("maximum of ten single-task", "maximum"),
        learned("multi-task, one iteration", "multi-task, 1 iteration"),
        learned("multi-task, last", "multi-task, last"),
    ]
    places = dict.fromkeys(world.starts, "S")
    places |= {goal: str(k) for k, goal in enumerate(world.goals)}
    maze_figure(panels, path, world.shape, places)


def path_picture(rows: Rows, path: Path) -> None:
    counts = list(dict.fromkeys(r["paths"] for r in rows))

    def curve(name: str, column: str) -> Curve:
        values = [[r[column] for r in rows if r["paths"] == n] for n in counts]
        se = [float(np.std(v, ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0 for v in values]
        return Curve(name, counts, [float(np.mean(v)) for v in values], se)

    curves = [curve("restricted class", "iou"), curve("the paper's regression", "iou_regression")]
    curve_figure(curves, path, "paths per task and start", "IoU with the true cells")
