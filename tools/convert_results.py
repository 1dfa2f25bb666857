"""Converts the results of version 0.1.0 (schema 1) to results/<experiment>/<variant>/ (schema 2).

    python tools/convert_results.py move      git mv, so that the history follows
    python tools/convert_results.py convert   summaries, manifests, table.md and table.json
    python tools/convert_results.py check REV every number of results/ at REV is still there

What a schema-1 file does not say is null. Where the figures of a table were nowhere but in its
table.md, they are taken from there, as they were rounded.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.disk import write_json
from ringfence.reproduce import analyses, experiment
from ringfence.reproduce.ant_walks import maze_course, never_seen
from ringfence.reproduce.exact_tasks import map_text
from ringfence.reproduce.pages import write_page
from ringfence.reproduce.rows import Found, Rows, flat, mean_of, with_means
from ringfence.reproduce.study import NOT_RECORDED, Study, found_variants

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
Summary = dict[str, Any]

SIMULATOR = {"mujoco": "mujoco", "bullet": "bullet", "bullet-settled": "bullet"}
#: Of experts-bullet and experts-bullet-settled, what is not called bullet-<expert>.
RENAMED = {
    ("bullet", "position-100"): "bullet-position-100-before",
    ("bullet-settled", "velocity-20"): "bullet-velocity-20-again",
    ("bullet-settled", "standing-still"): "bullet-standing-still-again",
}
AGAIN = (
    "The same on the processor of the settled experts, to compare with them: a processor of "
    "another kind rounds otherwise, and its trainings come out otherwise."
)
#: Whose demonstrators had other settings than the experiments' files have today.
BEFORE = ("position/bullet", "position/bullet-stop-1", "position/bullet-payoff-100",
          "noisy/position-bullet", "baselines/position-bullet")  # fmt: skip
BEFORE_EXPERT = "experts/bullet-position-100-before"


# Where everything goes -------------------------------------------------------------------------


def moves() -> Iterator[tuple[str, str]]:
    """(old, new) paths below results/ of all files but the tables."""
    for path in sorted(p for p in RESULTS.rglob("*") if p.is_file()):
        old = str(path.relative_to(RESULTS))
        folder, _, name = old.partition("/")
        new = destination(folder, name)
        if new and new != old:
            yield old, new


def destination(folder: str, name: str) -> str | None:
    """The new place of a file; None: it stays."""
    kind, _, rest = folder.partition("-")
    if kind == "bench" or not name:
        return None
    if kind in ("velocity", "position", "noisy"):
        return f"{kind}/{rest}/{re.sub(r'^clearance-[0-9.]+/(?=t.*json)', 'clearance/', name)}"
    if kind == "maze":
        experiment_name = {"grid": "grid", "ant": "maze", "point": "point-maze"}[rest]
        part = {"grid": "sampled/", "maze": "restricted/", "point-maze": "point/"}[experiment_name]
        return f"{experiment_name}/{part if name.startswith('seed-') else ''}{name}"
    if kind == "experts":
        found = re.fullmatch(r"(.*)-(seed-\d+\.json)", name)
        if found:
            return f"experts/{expert_variant(rest, found[1])}/{found[2]}"
        if name == "standing-still.json":
            return f"experts/{expert_variant(rest, 'standing-still')}/seed-0.json"
        return f"experts/{Path(name).stem}-{rest}{Path(name).suffix}"
    if kind == "baselines":
        found = re.fullmatch(r"(.*)-(seed-\d+\.json)", name)
        return f"baselines/{found[1]}-{rest}/{found[2]}" if found else f"baselines/table-{rest}.md"
    if folder == "cheetah" and name not in ("table.md", "transfer-frugal.json"):
        return f"cheetah/gym/{name}"
    if kind in ("multipliers", "resets", "ablation", "unseen"):
        return f"{kind}/{name}"
    return None


def expert_variant(folder: str, expert: str) -> str:
    return RENAMED.get((folder, expert), f"{SIMULATOR[folder]}-{expert}")


def move() -> None:
    for old, new in list(moves()):
        (RESULTS / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", RESULTS / old, RESULTS / new], check=True, cwd=ROOT)
    for folder in sorted((p for p in RESULTS.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


# Summaries -------------------------------------------------------------------------------------

SIDE = ("reward", "reward_se", "length", "cost", "true_raw", "true_cost")
ROW = [
    *("i", "constraint", "constraint_error", "updated", "updated_error", "best_payoff", "bound"),
    *("delta", "delta_mean", "lam", "lam_mean"),
    *(f"learner_{n}{m}" for n in (*SIDE, "failed") for m in ("", "_mean")),
    *(f"expert_{n}{m}" for n in SIDE for m in ("", "_mean")),
    *("expert_updated_cost", "expert_updated_cost_mean", "env_steps", "ledger", "reused"),
    *("episodes", "violations"),
]
GAME = [
    *("schema", "command", "world", "kind", "outcome", "method", "player", "class", "used"),
    *("expert_budget", "truth", "true_parameters", "seed", "versions", "demonstrations_sha256"),
    *("tasks", "horizon", "features", "views", "unconstrained", "iterations", "selected"),
    *("constraint", "selection", "heldout", "choices", "budget_curve", "evidence", "doubts"),
    *("not_here", "failed_demonstrations", "env_steps"),
]
CONSTRAINT = ("description", "parameters", "forbidden", "iou")
KINDS = {"maze": "grid", "HalfCheetah-v5": "gym"}


def filled(keys: list[str], known: Summary) -> Summary:
    return {**{key: known.get(key) for key in keys}, **known}


def game(old: Summary) -> Summary:
    """A game's summary."""
    held = dict(old["heldout"])
    names = ("enough_reward", "learner_reward", "gap", "rewarding")
    selection = {"rule": None, **{name: held.pop(name, None) for name in names}}
    if not isinstance(held["reward"], list):  # maps: the mean over tasks, and its error
        mean, error = held.pop("reward"), held.pop("reward_se")
        held = {"reward": None, "reward_mean": mean, "reward_mean_se": error, **held}
        selection["enough_reward"] = mean - error
    held = {"reward_se": None, "reward_se_mean": None, **held}
    usual = {"maze": "table", "ant-maze": "mlp"}.get(old["world"])
    known = {
        **({"class": usual, "player": "regression", "outcome": "constraint"} if usual else {}),
        **old,
        "schema": 2,
        "kind": KINDS.get(old["world"], old["world"]),
        "iterations": [iteration(row) for row in old["iterations"]],
        "constraint": {**dict.fromkeys((*CONSTRAINT, "interval")), **old["constraint"]},
        "selection": selection,
        "heldout": held,
    }
    return {key: filled(GAME, known)[key] for key in GAME}


def iteration(row: Summary) -> Summary:
    found = filled(ROW, row)
    for name in ("constraint", "updated"):
        found[name] = {**dict.fromkeys(CONSTRAINT), **row[name]}
    return found


SOLVE = [
    *("schema", "command", "world", "kind", "task", "start", "seed", "versions", "constraint"),
    *("delta", "clearance", "unknown", "covered", "truth", "views", "features", "reward"),
    *("reward_se", "length", "cost", "lam", "env_steps", "success", "true_cost", "true_raw"),
    *("episodes", "update", "stochastic", "deterministic", "course", "judged"),
]


def training(old: Summary) -> Summary:
    return filled(SOLVE, {**old, "schema": 2, "kind": old["world"]})


def partial_training(variant: experiment.Variant, seed: int, row: Summary, course: bool) -> Summary:
    """A training of which only a table's row was kept."""
    stochastic = {"reward": row["reward"], "speed": row["speed"], "length": row.get("length")}
    stochastic["true_cost"] = row.get("true_cost", row.get("cost"))
    keys = ("highest", "excess", "reached", "overshoot", "oscillation", "share above")
    course_figures = {f"cost_{k.replace(' ', '_')}": row[k] for k in keys} if course else None
    known = {
        "schema": 2, "world": "ant", "kind": "ant", "seed": seed,
        "constraint": {"description": variant.get("training")["constraint"]},
        "delta": variant.get("training")["delta"], "stochastic": stochastic,
        "course": course_figures,
    }  # fmt: skip
    return filled(SOLVE, known)


def cheetah(old: Summary) -> tuple[Summary, Summary]:
    """The game's summary as far as it was kept, and what the check said."""
    constraint = {"description": None, "parameters": {"limit": old["limit"]}}
    row = {
        "constraint": {**dict.fromkeys(CONSTRAINT), **constraint},
        "learner_reward_mean": old["learner_reward"],
        "learner_cost_mean": old["learner_cost"],
        "expert_cost_mean": old["expert_cost"],
        "expert_reward_mean": old["expert_reward"],
    }
    interval = {"parameters": {"limit": old["interval"]}}
    known = {
        "schema": 2, "world": "HalfCheetah-v5", "kind": "gym", "outcome": old["outcome"],
        "method": "icl", "player": "payoff", "class": "x_velocity <= ?", "used": ["x_velocity"],
        "expert_budget": 20.0, "seed": old["seed"], "versions": old["versions"],
        "iterations": [filled(ROW, row)], "selected": 1,
        "constraint": {**row["constraint"], "interval": interval}, "env_steps": old["env_steps"],
    }  # fmt: skip
    return filled(GAME, known), check_of(old)


def check_of(old: Summary) -> Summary:
    names = ("saturated", "verdict", "findings", "expert_true_cost", "expert_reward")
    return {**{n: old[n] for n in names}, "expert_mean": old["expert_velocity"]}


# Tables in Markdown ----------------------------------------------------------------------------


def md_tables(path: Path) -> list[list[Summary]]:
    """The tables of a page: rows by their headings, as text."""
    tables, rows = [], []
    for line in [*path.read_text().splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            head, _, *body = rows
            tables.append([dict(zip(unique(head), cells, strict=True)) for cells in body])
            rows = []
    return tables


def unique(head: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for name in head:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return names


def number(text: str) -> float:
    return float(text.rstrip("%").replace(",", "")) / (100 if text.endswith("%") else 1)


def expert_extras(folder: str) -> None:
    """Courses, judgements and minutes of experts, which only their page has."""
    page = RESULTS / f"experts/table-{folder}.md"
    stochastic, _, references, courses = md_tables(page)
    names = ("quarter_1", "quarter_2", "quarter_3", "quarter_4", "highest", "above_0")
    for row in courses:
        values = [number(text) for text in list(row.values())[2:]]
        add(folder, row["expert"], row["seed"], "course", dict(zip(names, values, strict=True)))
    for row in references:
        if row["seed"]:
            keys = {"reward": "reward", "length": "length", "speed": "speed",
                    "cost": "true_cost", "raw": "true_raw"}  # fmt: skip
            figures = {new: number(row[old]) for old, new in keys.items()}
            judged = {row["actions"]: {row["constraint"].strip("`"): figures}}
            add(folder, row["policy"], row["seed"], "judged", judged)
    for row in stochastic:
        if row["seed"] != "mean" and row["minutes"] != "not run":
            place = RESULTS / "experts" / expert_variant(folder, row["expert"])
            note_seconds(place, int(row["seed"]), round(60 * number(row["minutes"]), 6))
    page.unlink()


def add(folder: str, expert: str, seed: str, key: str, value: Summary) -> None:
    place = RESULTS / "experts" / expert_variant(folder, expert)
    path = place / f"seed-{seed}.json"
    if not path.is_file():  # of an unconstrained one that was judged on another day
        raise FileNotFoundError(path)
    summary = json.loads(path.read_text())
    write_json(path, {**summary, key: experiment.merged(summary.get(key) or {}, value)})


def note_seconds(folder: Path, seed: int, seconds: float) -> None:
    path = folder / "timing.json"
    times = json.loads(path.read_text()) if path.is_file() else {}
    write_json(path, {**times, f"seed-{seed}": seconds})


# All of it -------------------------------------------------------------------------------------


def convert() -> None:
    commands = {
        str(p.parent.relative_to(RESULTS)): command_of(p) for p in RESULTS.rglob("table*.md")
    }
    for folder in ("mujoco", "bullet"):
        commands[f"baselines-{folder}"] = command_of(RESULTS / f"baselines/table-{folder}.md")
    for folder in ("mujoco", "bullet", "bullet-settled"):
        commands[f"experts-{folder}"] = command_of(RESULTS / f"experts/table-{folder}.md")
        still = RESULTS / "experts" / expert_variant(folder, "standing-still") / "seed-0.json"
        write_json(still, standing_still(json.loads(still.read_text()), folder))
        expert_extras(folder)
    for name in ("experts", "baselines"):  # one page has both simulators now
        commands[name] = f"ringfence reproduce {name} --world ant|ant-bullet"
    regression = regression_course(RESULTS / "maze/table.md")
    for path in sorted(RESULTS.glob("*/*/seed-*.json")):
        summary = json.loads(path.read_text())
        name = path.parent.parent.name
        if name in ("velocity", "position", "noisy", "grid", "maze"):
            write_json(path, game(summary))
        elif name == "experts" and "standing-still" not in path.parent.name:
            write_json(path, training(summary))
        elif name == "baselines":
            note_seconds(path.parent, summary["seed"], summary.pop("seconds"))
            write_json(path, {**summary, "schema": 2, "kind": summary["world"]})
        elif name == "cheetah":
            converted, check = cheetah(summary)
            write_json(path, converted)
            write_json(path.with_name(f"check-{summary['seed']}.json"), check)
    for path in sorted(RESULTS.glob("*/*/clearance/*.json")):
        summary = json.loads(path.read_text())
        write_json(path, {**summary, "schema": 2, "kind": summary["world"]})
    paces = RESULTS / "cheetah/gym/slow.json"
    old = json.loads(paces.read_text())
    write_json(paces.with_name("check-paces.json"), {**check_of(old), "paces": old["paces"]})
    paces.unlink()
    of_trainings()
    given = {
        "ablation": ablation(),
        "grid": grid(),
        "maze": maze(regression),
        "unseen": unseen(),
    }
    point_maze()
    for old_page in RESULTS.glob("*/*/clearance-*/table.md"):
        old_page.unlink()
        old_page.parent.rmdir()
    for old_page in RESULTS.glob("baselines/table-*.md"):
        old_page.unlink()
    for name in experiment.names():
        write_experiment(name, commands, given.get(name, {}))


def command_of(path: Path) -> str:
    """The command that a page says made it."""
    found = re.search(r"`(ringfence reproduce [^`]*)`", path.read_text())
    return re.sub(r" --only \S+", "", found[1]) if found else NOT_RECORDED


def standing_still(old: Summary, folder: str) -> Summary:
    world = "ant" if folder == "mujoco" else "ant-bullet"
    known = {"schema": 2, "world": world, "kind": world, "seed": 0, "judged": old}
    return filled(SOLVE, known)


def of_trainings() -> None:
    """multipliers and resets: rows become summaries of what is known."""
    for name, course, names in (
        ("multipliers", True, {"PID": "pid", "classical": "gradient"}),
        ("resets", False, {"without": "without", "with (30%)": "with"}),
    ):
        path = RESULTS / name / "results.json"
        variants = experiment.read(name).variants
        for old, new in names.items():
            for seed, row in enumerate(json.loads(path.read_text())["rows"][old]):
                found = partial_training(variants[new], seed, row, course)
                (RESULTS / name / new).mkdir(exist_ok=True)
                write_json(RESULTS / name / new / f"seed-{seed}.json", found)
        path.unlink()


def ablation() -> dict[str, Found]:
    path = RESULTS / "ablation/results.json"
    games = json.loads(path.read_text())["games"]
    variants = list(experiment.read("ablation").variants.values())
    iterates = {"selected": "selected", "last": "last iteration", "mean": "all iterations"}
    names = {"\\|c* - c\\|": "constraint_error", "reward above the experts'": "reward_above",
             "true cost above the experts'": "cost_above", "good": "good_raw"}  # fmt: skip
    rows: Rows = []
    for key, iterate in iterates.items():
        for variant, seeds in zip(variants, games.values(), strict=True):
            for seed, game in seeds.items():
                row = {"iterate": iterate, "variant": variant.name, "seed": int(seed)}
                found = {names[k]: v for k, v in game[key].items()}
                if key != "mean":
                    found["good_raw"] = bool(found["good_raw"])
                rows.append({**row, "reason": variant.reason, **found, "good_cost": None})
    path.unlink()
    return {"iterates": Found(with_means(rows, ["iterate", "variant", "reason"]))}


def grid() -> dict[str, Found]:
    path = RESULTS / "grid/results.json"
    old = json.loads(path.read_text())
    players = {("regression", True): "regression, restricted", ("ftrl", True): "ftrl, restricted",
               ("regression", False): "regression, unrestricted (the paper)"}  # fmt: skip
    exact = [
        {"player": players[r.pop("player"), r.pop("restricted")], "i": r.pop("i"),
         "iou": r.pop("iou_after_update"), **r}
        for r in old["exact"]
    ]  # fmt: skip
    paths: Rows = []
    for n in dict.fromkeys(r["paths"] for r in old["paths"]):
        of = [r for r in old["paths"] if r["paths"] == n]
        counts = {k: sum(r[k] for r in of) for k in ("wrong", "wrong_and_visited")}
        paths += [*of, {**mean_of(of), "paths": n, "seed": "mean", **counts}]
    left: Rows = []
    for experts, ways in old["held_out"].items():
        for unknown in ("avoid", "allow"):
            of = [w for w in ways if w["unknown"] == unknown]
            counts = [k for k in of[0] if k.startswith(("covered", "uncovered"))]
            left += [
                {"experts": experts, **w, "left_out": " ".join(map(str, w["left_out"]))} for w in of
            ]
            total = {k: sum(w[k] for w in of) for k in counts}
            left.append({"experts": experts, "unknown": unknown, "left_out": "all", **total})
    asked: Rows = []
    for row in old["asking"]:
        for how in ("suggested", "random"):
            counts = {k: row[f"{how}_{k}"] for k in ("settled", "decided")}
            asked.append({"maze": row["seed"], "asked": how, "unknown": row["unknown"], **counts})
    totals = {
        how: {k: sum(r[k] for r in asked if r["asked"] == how) for k in ("settled", "decided")}
        for how in ("suggested", "random")
    }
    asked += [{"maze": "all", "asked": how, **of} for how, of in totals.items()]
    ratio = {k: round(totals["suggested"][k] / v, 2) for k, v in totals["random"].items()}
    asked.append({"maze": "all", "asked": "ratio", **ratio})
    facts = {"mazes": len(old["asking"]), "unknown": sum(r["unknown"] for r in old["asking"])}
    path.unlink()
    return {
        "exact_games": Found(exact),
        "path_curve": Found(paths),
        "one_task_alone": Found(old["single"]),
        "entropy": Found(old["entropy"]),
        "left_out": Found(left),
        "asking": Found(asked, facts),
    }


def regression_course(path: Path) -> Rows:
    """The course of the paper's regression with the Ant, of which only the page was kept."""
    rows: Rows = []
    paper = experiment.read("maze").tables[0].options["paper"]
    for i, row in enumerate(md_tables(path)[1]):
        found: Summary = {"variant": "regression", "i": i + 1}
        for old, new in (("IoU", "iou"), ("violation", "violation"), ("reward", "reward"),
                         ("experts", "expert_reward")):  # fmt: skip
            mean, error = row[old].split(" ± ")
            found |= {new: number(mean), f"{new}_se": number(error)}
        found |= {f"paper_{key}": of[i] for key, of in paper.items()}
        found |= {"arrived": int(row["arrived"]), "fell_or_late": int(row["fell or late"])}
        found |= {"reused": int(row["plans reused"])}
        rows.append({**found, "expert_cost": number(row["experts' cost, largest"])})
    return rows


def maze(regression: Rows) -> dict[str, Any]:
    single = json.loads((RESULTS / "maze/single.json").read_text())
    walks = json.loads((RESULTS / "maze/unseen.json").read_text())
    rows = [
        {"constraint": name, "iou": of["iou"], "impossible": of["impossible"],
         "map": map_text(np.array(of["flagged"], np.bool_))}
        for name, of in single.items()
    ]  # fmt: skip
    for name in ("single.json", "unseen.json"):
        (RESULTS / "maze" / name).unlink()

    def course(study: Study) -> Found:
        if study.options["variant"] == "regression":
            return Found(regression)
        return maze_course(study)

    return {
        "maze_course": course,
        "walks_of_one_task": Found(rows),
        "walks_never_seen": Found(never_seen(walks)),
    }


def point_maze() -> None:
    path = RESULTS / "point-maze/results.json"
    old = json.loads(path.read_text())
    folder = RESULTS / "point-maze/point"
    folder.mkdir(exist_ok=True)
    summary = {
        "schema": 2, "command": old["command"], "world": "point-maze", "kind": "point-maze",
        "seed": 0, "versions": old["versions"], "solver": old["ppo"], "selected": old["selected"],
        "rows": old["iterations"],
    }  # fmt: skip
    write_json(folder / "seed-0.json", summary)
    path.unlink()


def unseen() -> dict[str, Found]:
    path = RESULTS / "unseen/summary.json"
    old = json.loads(path.read_text())
    rows: Rows = []
    for r in old["rows"]:
        row = {
            k: r[k] for k in ("world", "kind", "K", "method", "tasks", "safe", "unsafe", "declined")
        }
        for name in ("safe", "unsafe", "declined"):
            row[f"{name}_share"] = r[name] / r["tasks"]
            row[f"{name}_low"], row[f"{name}_high"] = r["intervals"][name]
            q = ("q10", "q50", "q90")
            row |= {f"{name}_{k}": v for k, v in zip(q, r["over_cases"][name], strict=True)}
        row["violating_cases"] = r["violating_cases"]
        row["violating_low"], row["violating_high"] = r["violating_cases_interval"]
        row |= {"true_cost": r["true_cost"], "more_moves": r["more_moves"]}
        rows.append({**row, **flat({k: r[k] for k in ("covered", "uncovered")})})
    facts = {**old["cases"], "games": old["games"], "most_iterations": old["most_iterations"]}
    theory = old["theory"]
    asked = [{"asked": "tasks", **r} for r in theory["tasks_needed"]]
    asked += [{"asked": "epsilon", **r} for r in theory["epsilon_of_K"]]
    about = {k: theory[k] for k in ("confidence", "class_bits", "not_vacuous_from")}
    last = theory["epsilon_of_K"][-1]
    about |= {"most_tasks": last["K"], "epsilon": last["epsilon"]}
    path.unlink()
    return {
        "unseen_outcomes": Found(rows, facts),
        "unseen_maps": Found(old["maps"]),
        "unseen_theory": Found(asked, about),
    }


# Manifests and pages ---------------------------------------------------------------------------


def write_experiment(name: str, commands: dict[str, str], given: dict[str, Any]) -> None:
    """Manifests of all variants, their pages and the experiment's."""
    of = experiment.read(name)
    out = RESULTS / name
    for folder in sorted({p.parent for p in out.glob("*/seed-*.json")}):
        variant = of.variants.get(folder.name)
        manifest(of, variant, folder, commands)
    variants = found_variants(of, out, [])
    for variant in variants if of.each else ():
        made = commands.get(f"{name}/{variant.name}", NOT_RECORDED)
        text = [made_by(made, variant), of.file.text, variant.reason]
        heading = [f"{of.title}: {variant.name}", *text]
        study = Study(of, (variant,), out)
        write_page(study, of.each, out / variant.name, heading)
    made = commands.get(name, NOT_RECORDED)
    if name == "ablation":
        variants = list(of.variants.values())
    if of.tables:
        study = Study(of, tuple(variants), out)
        heading = [of.title, made_by(made), of.file.text]
        write_page(study, of.tables, out, heading, lambda rows: rows_from(given, rows))
    version = "0.1.0"
    write_json(
        out / "manifest.json",
        {
            "experiment": name,
            "command": made,
            "version": version,
            "experiment_sha256": NOT_RECORDED,
        },
    )


def rows_from(given: dict[str, Any], name: str) -> Callable[[Study], Found]:
    found = given.get(name)
    if found is None:
        return analyses.rows_of(name)
    return found if callable(found) else lambda study: found


def made_by(command: str, variant: experiment.Variant | None = None) -> str:
    if command == NOT_RECORDED:
        return "From runs of version 0.1.0; their commands are in the variants' manifest.json."
    today = "" if variant is None else f" (today `--variant {variant.name}`)"
    return f"Made by `{command}` of version 0.1.0{today}."


def manifest(
    of: experiment.Experiment,
    variant: experiment.Variant | None,
    folder: Path,
    commands: dict[str, str],
) -> None:
    place = f"{of.name}/{folder.name}"
    seeds = sorted(int(p.stem.removeprefix("seed-")) for p in folder.glob("seed-*.json"))
    settings: Any = NOT_RECORDED if variant is None else variant.settings
    if variant is None:  # the same on another processor
        settings = of.variants[folder.name.removesuffix("-again")].settings
    if place in BEFORE:
        settings = experiment.merged(settings, {"demonstrations": {"expert": BEFORE_EXPERT}})
    order: Any = (
        "0 to 2, then 3 and 4" if place.endswith("margin-0.8") and 4 in seeds else NOT_RECORDED
    )
    group = next((g for g in ("bullet-settled", "bullet", "mujoco") if g in folder.name), "")
    document = {
        "experiment": of.name,
        "variant": folder.name,
        "reason": " ".join((variant.reason if variant else AGAIN).split()),
        "settings": settings,
        "order": order,
        "seeds": seeds,
        "command": commands.get(
            place, commands.get(f"{of.name}-{group}", commands.get(of.name, NOT_RECORDED))
        ),
        "version": "0.1.0",
        "experiment_sha256": NOT_RECORDED,
    }
    write_json(folder / "manifest.json", document)


# Does every number survive? --------------------------------------------------------------------


def numbers_of(document: Any) -> Iterator[float]:
    if isinstance(document, dict):
        for value in document.values():
            yield from numbers_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from numbers_of(value)
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield float(document)


def check(revision: str) -> int:
    """Numbers of JSON files at `revision` that are nowhere in results/, and of its pages."""
    kept = {n for p in RESULTS.rglob("*.json") for n in numbers_of(json.loads(p.read_text()))}
    shown = {t for p in RESULTS.rglob("*.md") for t in tokens(p.read_text())}
    listed = git("ls-tree", "-r", "--name-only", revision, "results").splitlines()
    lost = 0
    for path in listed:
        if path.endswith(".json"):
            missing = set(numbers_of(json.loads(git("show", f"{revision}:{path}")))) - kept
        elif path.endswith(".md"):
            missing = tokens(git("show", f"{revision}:{path}")) - shown  # type: ignore[assignment]
        else:
            continue
        if missing:
            lost += len(missing)
            print(f"{path}: {len(missing)} not found: {sorted(missing)[:8]}")
    print(f"{lost} numbers not found")
    return lost


def tokens(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[-+]\d+)?", text))


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    if sys.argv[1:] == ["move"]:
        move()
    elif sys.argv[1:] == ["convert"]:
        convert()
    elif len(sys.argv) == 3 and sys.argv[1] == "check":
        check(sys.argv[2])
    else:
        print(__doc__)
