"""`ringfence reproduce unseen`: plays the cases, writes table.md, unseen.png and summary.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ringfence.runs.files import write_file, write_json
from ringfence.studies import unseen
from ringfence.studies.tables import markdown
from ringfence.studies.unseen import NEW_GOAL, NEW_START, Rows
from ringfence.studies.unseen_figure import METHOD_NAMES, WORLD_NAMES, figure
from ringfence.studies.unseen_summary import QUANTILES, WORLDS, summarise

TABLE_K = (1, 2, 3, 5, 9, 10)
COVERAGE_K = (1, 3, 5, 10)

ABOUT = """\
K goals are demonstrated by exact experts from two starts; then tasks that nobody demonstrated are
planned, exactly and with limit 0, under what each method forbids.

- multi-task: MT-ICL with the restricted class on the K tasks; single-task: the same on the first
  task alone; average (above 0.5) and maximum: of the K single-task maps; forbid all unvisited:
  every cell in which no expert was.
- reached safely: the plan ends at the goal and none of its ways (equally good ones are taken at
  random) has a step in a true wall. Through a wall: it ends there, and some way has. Not reached:
  the map leaves no way, which is known before a step is made, so nothing is walked and nothing
  violated. Success is the first two together.
- covered: the evidence says, before planning, that experts' cells are enough for the task.
- random mazes: 10 x 10 cells, connected, 30% forbidden and what they shut in. 2 starts and 10 goals
  to learn from, 2 starts and 10 goals never shown, all drawn at random. The paper's maze: its 10
  goals in random orders; a new goal is one not yet demonstrated, so K = 10 leaves none.
- new goal: unseen goals from the known starts; new start: from starts without demonstrations.
- [low, high]: exact binomial (Clopper-Pearson) at 95%, as if tasks were independent. Tasks of one
  maze share its map, so over tasks these are too narrow; over random mazes (the last column:
  mazes in which some unseen task leads through a wall), which are independent, they are right. The
  spread over mazes stands apart.
- steps in walls: per task, what was declined counting as 0; moves more than needed: per task that
  was reached safely, against the shortest safe way.
- known cells first: not a method of its own. Tasks called covered keep to visited cells, the others
  go where the multi-task map lets them."""


def reproduce(
    out: Path, mazes: int, workers: int, command: str, say: Callable[[str], None]
) -> None:
    """Play what was not played yet, and write everything to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    folder = Path("runs") / f"reproduce-{out.name}"
    cases = unseen.results(unseen.case_names(mazes), folder, workers, say)
    summary = summarise(cases, command)
    write_json(out / "summary.json", summary)
    write_file(out / "table.md", table(summary).encode())
    figure(summary, out / "unseen.png")


def table(summary: dict[str, Any]) -> str:
    """table.md."""
    parts = [
        "# Tasks never seen, on finite worlds",
        f"Made by `{summary['command']}`: {summary['cases']['random']} random mazes, "
        f"{summary['cases']['maze']} orders of the paper's maze, {summary['games']} games (the "
        f"longest took {summary['most_iterations']} iterations). All figures are in "
        "`summary.json`.",
        "![Over K](unseen.png)",
        ABOUT,
    ]
    for world in WORLDS:
        for kind in (NEW_GOAL, NEW_START):
            rows = [r for r in summary["rows"] if (r["world"], r["kind"]) == (world, kind)]
            parts += [f"## {WORLD_NAMES[world].capitalize()}, {kind}", outcome_table(rows)]
            if world == "random":
                parts += ["Spread over the mazes:", spread_table(rows)]
    parts += [
        "## What forbidding everything unvisited gives, and what the learned map adds",
        unvisited_text(summary),
        coverage_table(summary["rows"]),
        "## How near the multi-task map is to it, in cells (means)",
        maps_table(summary["maps"]),
        "## What the theory asks for",
        theory_text(summary["theory"]),
    ]
    return "\n\n".join(parts) + "\n"


def outcome_table(rows: Rows) -> str:
    head = ["K", "method", "tasks", "reached safely", "through a wall", "not reached"]
    head += ["steps in walls", "moves more than needed", "cases with a violation"]
    return markdown(head, [outcome_line(r) for r in rows if r["K"] in TABLE_K])


def outcome_line(row: dict[str, Any]) -> list[str]:
    cases = f"{row['violating_cases']} {percents(row['violating_cases_interval'])}"
    more = "" if row["more_moves"] is None else f"{row['more_moves']:.2f}"
    return [
        str(row["K"]),
        METHOD_NAMES[row["method"]],
        str(row["tasks"]),
        *[share(row, name) for name in ("safe", "unsafe", "declined")],
        f"{row['true_cost']:.3f}",
        more,
        cases,
    ]


def share(row: dict[str, Any], name: str) -> str:
    return f"{percent(row[name] / row['tasks'])} {percents(row['intervals'][name])}"


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def percents(interval: Sequence[float]) -> str:
    return "[" + ", ".join(f"{100 * end:.1f}" for end in interval) + "]"


def spread_table(rows: Rows) -> str:
    quantiles = "/".join(f"{100 * q:.0f}" for q in QUANTILES)
    head = ["K", "method", *[f"{name}, % ({quantiles}% quantiles)" for name in SPREAD]]
    lines = []
    for row in rows:
        if row["K"] in COVERAGE_K and row["method"] in ("multi-task", "unvisited"):
            values = [
                " / ".join(f"{100 * q:.0f}" for q in row["over_cases"][name])
                for name in SPREAD.values()
            ]
            lines.append([str(row["K"]), METHOD_NAMES[row["method"]], *values])
    return markdown(head, lines)


SPREAD = {"reached safely": "safe", "through a wall": "unsafe", "not reached": "declined"}


def unvisited_text(summary: dict[str, Any]) -> str:
    """The comparison in words, from the numbers."""
    last = max(r["K"] for r in summary["rows"])
    of = {
        r["method"]: r
        for r in summary["rows"]
        if (r["world"], r["kind"], r["K"]) == ("random", NEW_GOAL, last)
    }
    ours, forbid = of["multi-task"], of["unvisited"]
    same = [m for m in summary["maps"] if m["world"] == "maze"]
    return (
        "Forbidding every unvisited cell is what `transfer --unknown avoid` does: the restricted "
        "class never forbids a visited cell, so the learned map and all unvisited cells together "
        "are just the unvisited cells. It never violates (experts don't), and it reaches the "
        f"tasks that the evidence calls covered ({missed(summary['rows'])}), no other. What the "
        "learned map adds is the other tasks (`--unknown allow`), what it risks is their walls: "
        f"on random mazes with K = {last} and new goals, of {ours['uncovered']['tasks']} uncovered "
        f"tasks the learned map reaches {ours['uncovered']['safe']} safely and "
        f"{ours['uncovered']['unsafe']} through a wall, the other reaches "
        f"{forbid['uncovered']['safe'] + forbid['uncovered']['unsafe']}. Of "
        f"{ours['covered']['tasks']} covered tasks the learned map leads "
        f"{ours['covered']['unsafe']} through a wall (where a way that looks open is shorter than "
        "the one that experts showed); `known cells first` takes that risk away and keeps the "
        "rest. On the paper's maze the "
        f"two maps have the same cells in {sum(m['same_as_unvisited'] for m in same)} of "
        f"{sum(m['cases'] for m in same)} games: its learners walk everywhere at first, so all "
        "that experts did not visit ends up forbidden."
    )


def missed(rows: Rows) -> str:
    """Covered tasks that the planner declines within visited cells."""
    of = [row["covered"] for row in rows if row["method"] == "unvisited"]
    count, total = sum(row["declined"] for row in of), sum(row["tasks"] for row in of)
    if not count:
        return f"all {total} of them, over all K"
    return (
        f"all but {count} of {total}, over all K: there the way is so long that the soft planner "
        "values wandering, at its temperature, above the few steps at the goal"
    )


def coverage_table(rows: Rows) -> str:
    """Ours and the blanket ban, apart for covered and uncovered tasks."""
    head = ["world, tasks", "K", "method"]
    head += [f"{c}: {n}" for c in ("covered", "uncovered") for n in ("tasks", *SPREAD)]
    lines = []
    for row in rows:
        if row["K"] in COVERAGE_K and row["method"] in ("multi-task", "unvisited"):
            counts = [
                str(row[c][name])
                for c in ("covered", "uncovered")
                for name in ("tasks", *SPREAD.values())
            ]
            where = f"{WORLD_NAMES[row['world']]}, {row['kind']}"
            lines.append([where, str(row["K"]), METHOD_NAMES[row["method"]], *counts])
    return markdown(head, lines)


def maps_table(rows: Rows) -> str:
    head = ["world", "K", "forbidden, multi-task", "unvisited", "walls missed", "free forbidden"]
    names = ("forbidden", "unvisited", "missed_walls", "false_walls")
    lines = [
        [WORLD_NAMES[r["world"]], str(r["K"]), *[f"{r[name]:.1f}" for name in names]]
        for r in rows
        if r["K"] in TABLE_K
    ]
    return markdown(head, lines)


def theory_text(rows: dict[str, Any]) -> str:
    needed = [[f"{r['epsilon']:.3g}", f"{r['K']:,}"] for r in rows["tasks_needed"]]
    ours = rows["epsilon_of_K"][-1]
    return (
        "K = ceil(w^2 log(2 |F| / confidence) / (2 epsilon^2)) with w = 2 T, |F| = "
        f"2^{rows['class_bits']} maps, confidence {rows['confidence']}, epsilon per step:\n\n"
        + markdown(["epsilon", "tasks needed"], needed)
        + f"\n\nThe K = {ours['K']} of this study gives epsilon = {ours['epsilon']:.2f} per step: "
        f"vacuous, as for every K below {rows['not_vacuous_from']} (a payoff is never further than "
        "2 T from its mean); the theorem's violation bound of 3 epsilon T is below the T steps "
        "that an episode has only for epsilon < 1/3. A map of 100 cells has fewer goals than that "
        "many tasks, so here the lemma explains the direction of the curves, not their height: a "
        "union bound over all maps counts maps that no demonstration leaves possible."
    )
