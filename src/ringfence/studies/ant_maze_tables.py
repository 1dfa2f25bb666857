"""Tables and figures of `ringfence reproduce maze`, from the files of its runs alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.demos.dataset import load
from ringfence.report.draw import Curve
from ringfence.report.floor import FloorPanel, curves_figure, evidence_figure, maze_figure
from ringfence.runs import config as configs
from ringfence.runs.files import write_file
from ringfence.runs.worlds import make_maze
from ringfence.studies.tables import markdown, mean_se

#: The paper's maze figures by iteration: IoU, violation and reward.
PAPER = {
    "iou": (0.898, 0.947, 0.947, 0.965, 0.982),
    "violation": (311.8, 16.0, 0.0, 0.0, 0.0),
    "reward": (15.3, 14.9, 14.9, 14.2, 14.6),
}

Rows = list[dict[str, Any]]


def write(out: Path, runs: Path, seeds: int, command: str) -> None:
    """table.md and the figures."""
    ours = [_read(runs / f"seed-{s}" / "summary.json")["iterations"] for s in range(seeds)]
    theirs = [_read(run / "summary.json")["iterations"] for run in sorted(runs.glob("paper-*"))]
    single, unseen = _read(out / "single.json"), _read(out / "unseen.json")
    parts = [
        "# The paper's maze with the Ant",
        f"Made by `{command}`: {seeds} seeds, 10 tasks x 2 starts x 10 trajectories per iteration. "
        "IoU is after the update of the iteration, violation and reward are its learners'; "
        "mean ± standard error over seeds. The paper's column is from its figure.",
        "## Restricted class (experts' cost within the tolerance)",
        course_table(ours),
        experts_sentence(ours),
        violations_text(ours),
        "## The paper's regression (unrestricted) on the same demonstrations",
        f"The first {len(theirs)} of the seeds.",
        course_table(theirs),
        "## One task's data, ten constraints put together, and the multi-task game (seed 0)",
        single_table(single),
        "## Tasks that nobody demonstrated (seed 0)",
        unseen_table(unseen),
    ]
    write_file(out / "table.md", ("\n\n".join(parts) + "\n").encode())
    pictures(out, runs, ours, theirs, single)


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _column(runs: Sequence[Rows], i: int, name: str) -> list[float]:
    return [float(rows[i][name]) for rows in runs]


def _ious(runs: Sequence[Rows], i: int) -> list[float]:
    return [float(rows[i]["updated"]["iou"]) for rows in runs]


def course_table(runs: Sequence[Rows]) -> str:
    head = ["iteration", "IoU", "paper", "violation", "paper", "reward", "experts", "arrived"]
    head += ["fell or late", "plans reused", "experts' cost, largest"]
    lines = []
    for i in range(len(runs[0])):
        ends = [rows[i]["episodes"] for rows in runs]
        reused = sum(x is not None for rows in runs for x in rows[i]["reused"])
        lines.append(
            [
                str(i + 1),
                mean_se(_ious(runs, i)),
                f"{PAPER['iou'][i]:.3f}",
                mean_se(_column(runs, i, "learner_true_cost_mean")),
                f"{PAPER['violation'][i]:g}",
                mean_se(_column(runs, i, "learner_reward_mean")),
                mean_se(_column(runs, i, "expert_reward_mean")),
                str(sum(e["arrived"] for e in ends)),
                str(sum(e["fell"] + e["late"] for e in ends)),
                str(reused),
                f"{max(max(rows[i]['expert_cost']) for rows in runs):.3f}",
            ]
        )
    return markdown(head, lines)


def experts_sentence(runs: Sequence[Rows]) -> str:
    cost = [float(rows[0]["expert_true_cost_mean"]) for rows in runs]
    return f"The experts' own true cost, measured: {mean_se(cost)} steps per episode."


def violations_text(runs: Sequence[Rows]) -> str:
    """Every violating trajectory from iteration 2 on."""
    found = [
        f"- seed {s}, iteration {row['i']}, {v['task']}, episode {v['episode']}: {v['where']}"
        for s, rows in enumerate(runs)
        for row in rows[1:]
        for v in row["violations"]
    ]
    if not found:
        return "No trajectory of any seed violates from iteration 2 on."
    return "Trajectories that violate from iteration 2 on:\n\n" + "\n".join(found)


def single_table(single: dict[str, Any]) -> str:
    lines = [[name, f"{r['iou']:.3f}", str(r["impossible"])] for name, r in single.items()]
    return markdown(["constraint", "IoU", "of ten tasks made impossible"], lines)


def unseen_table(rows: Rows) -> str:
    """Trajectories by training set and by what was said before the run."""
    lines = []
    for what in dict.fromkeys(r["trained"] for r in rows):
        for covered in (True, False):
            of = [r for r in rows if r["trained"] == what and r["covered"] == covered]
            if of:
                episodes, arrived = (sum(r[c] for r in of) for c in ("episodes", "arrived"))
                cost = max(r["true_cost"] for r in of)
                worst = min(r["arrived"] / r["episodes"] for r in of)
                line = [what, "covered" if covered else "uncovered", str(len(of))]
                lines.append([*line, f"{arrived}/{episodes}", f"{worst:.0%}", f"{cost:g}"])
    head = ["trained on", "said before", "tasks and starts", "arrived", "worst", "true cost, worst"]
    return markdown(head, lines)


def pictures(
    out: Path, runs: Path, ours: Sequence[Rows], theirs: Sequence[Rows], single: dict[str, Any]
) -> None:
    maze = make_maze(configs.read(runs / "seed-0" / "config.toml").world)
    walls, demos = maze.truth.walls, load(runs / "seed-0" / "demos").tasks

    def learned(title: str, name: str) -> FloorPanel:
        one = single[name]
        note = f"IoU {one['iou']:.2f}, {one['impossible']} of 10 tasks impossible"
        return FloorPanel(title, walls, np.array(one["flagged"], np.bool_), note=note)

    def data(title: str, tasks: Sequence[int]) -> FloorPanel:
        paths = [t.observations[:, :2] for k in tasks for t in demos[k].train]
        return FloorPanel(title, walls, paths=paths)

    panels = [
        FloorPanel("truth", walls, walls),
        data("one task's data", [0]),
        data("ten tasks' data", range(len(demos))),
        learned("single-task constraint", "task 0"),
        learned("average of ten single-task", "average"),
        learned("maximum of ten single-task", "maximum"),
        learned("multi-task, one iteration", "multi-task, 1 iteration"),
        learned("multi-task, last", "multi-task, last"),
    ]
    maze_figure(panels, out / "maze.png", maze.layout)
    evidence_figure(runs / "seed-0", out / "evidence.png")
    curves_figure(
        [
            ("IoU with the true walls", _curves("iou", ours, theirs)),
            ("Steps in walls per episode", _curves("violation", ours, theirs)),
            ("Reward per episode", _curves("reward", ours, theirs)),
        ],
        out / "curves.png",
    )


def _curves(what: str, ours: Sequence[Rows], theirs: Sequence[Rows]) -> list[Curve]:
    x = list(range(1, len(ours[0]) + 1))

    def curve(name: str, runs: Sequence[Rows], column: str) -> Curve:
        values = [
            _ious(runs, i) if what == "iou" else _column(runs, i, column) for i in range(len(x))
        ]
        se = [float(np.std(v, ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0 for v in values]
        return Curve(name, x, [float(np.mean(v)) for v in values], se)

    column = "learner_reward_mean" if what == "reward" else "learner_true_cost_mean"
    curves = [
        curve("restricted class", ours, column),
        curve("the paper's regression", theirs, column),
    ]
    if what == "reward":
        return [*curves, curve("experts", ours, "expert_reward_mean")]
    return [*curves, Curve("the paper's figures", x, PAPER[what][: len(x)])]
