"""What each subcommand does: build the configuration, call one function of the API, print.

Heavy modules are imported where they are used, so that `ringfence --help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.errors import InvalidInput

if TYPE_CHECKING:
    from ringfence.api import Learned, Solved
    from ringfence.objects import Demonstrations, Finding


def quickstart(options: Namespace) -> None:
    """The whole product on the built-in maze with default settings: it is one call of `learn`."""
    words = ["learn", "--world", options.world, "--seed", str(options.seed)]
    if options.world == "ant-maze":
        # Short: two episodes from each start, three iterations; the whole takes ten, and five.
        words += ["--paths", "2", "--heldout", "1", "--iterations", "3"]
        words += ["--set", "solver.episodes=2"]
    out = options.out = options.out or free_name(Path("runs/quickstart"))
    settings = options.parse([*words, "--out", str(out)])
    settings.command_line = " ".join(["ringfence", *words])
    learn(settings)
    print("Next: open the page, then try a task nobody demonstrated:")
    command = os.environ.get("RINGFENCE_COMMAND", "ringfence")
    print(f"  {command} transfer {out} --goal 2,7 --start 9,3")


# Demonstrations ----------------------------------------------------------------------------------


def demos_make(options: Namespace) -> None:
    from ringfence import api
    from ringfence.demos import checks, dataset
    from ringfence.progress import run_progress
    from ringfence.runs.config import merged, read_user
    from ringfence.runs.training import require_new

    ready()
    require_new(options.out)
    given = settings_of(options, "world", "solver", "experts")
    world = world_of(options, given)
    if options.config is not None:
        refuse_world(options)
        world = merged(read_user(options.config), {"world": given.get("world", {})})
    with run_progress("expert") as progress:
        made = api.make_demonstrations(
            world,
            {"seed": options.seed, **experts_of(options), **given.get("experts", {})},
            solver=given.get("solver"),
            out=options.out,
            policy=options.policy,
            workers=options.workers,
            on=options.on,
            say=print,
            on_event=progress,
        )
    dataset.save(made, options.out)
    print(checks.describe(made))
    for finding in checks.check(made):
        if finding.severity == "warning":
            print(finding)
    print(f"saved to {options.out}")


def experts_of(options: Namespace) -> dict[str, Any]:
    """The options that describe experts, as far as they were given."""
    names = {"paths", "heldout", "noise", "contaminated", "keep_saturated"}
    found = {n: getattr(options, n) for n in names if getattr(options, n, None) is not None}
    if getattr(options, "expert_delta", None) is not None:
        found["delta"] = options.expert_delta
    if getattr(options, "deterministic", False):
        found["kind"] = "deterministic"
    return found


def demos_check(options: Namespace) -> None:
    from ringfence import api
    from ringfence.demos import checks
    from ringfence.demos.logs import is_log
    from ringfence.runs.config import make_world, tagged

    ready()
    if options.demos.suffix == ".toml":
        if options.world is not None or options.feature:
            raise InvalidInput(f"--world has no effect here; {options.demos} says it all")
        findings = list(api.check(options.demos))
    else:
        given = None
        if options.world is None or not is_log(str(options.demos), Path()):
            given = load_any(options.demos)
            findings = checks.check(given)
        else:
            findings = list(api.check(world_of(options, {}), options.demos))
        if options.world is not None and given is not None:
            table = world_of(options, {})
            world = make_world(tagged("--world", "world", table))
            findings = [*world.check(given), *findings]
    tell_findings(findings)
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        raise InvalidInput(f"{options.demos}: {errors} errors (above); mend them before learning")
    remarks = sum(finding.severity in ("warning", "note") for finding in findings)
    print(f"{options.demos}: usable, {remarks} remarks")


def tell_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print(finding)


def demos_show(options: Namespace) -> None:
    from ringfence.demos import checks

    print(checks.describe(load_any(options.demos)))


def load_any(path: Path) -> Demonstrations:
    """A folder of ours, or logs as they are: an .npz, a Minari folder."""
    from ringfence.demos import dataset, logs

    if logs.is_log(str(path), Path()):
        return logs.as_demonstrations(logs.read(str(path), Path()), path.name)
    return dataset.load(path)


# Games -------------------------------------------------------------------------------------------


def learn(options: Namespace) -> None:
    from ringfence import api
    from ringfence.progress import run_progress
    from ringfence.runs.folder import refuse_existing

    ready()
    given = settings_of(options)
    if options.config is not None:
        world: Any = refuse_world(options)
    else:
        world = world_of(options, given)
        given.pop("world", None)
    if options.task:
        given.setdefault("game", {})["tasks"] = list(options.task)
    if options.out is not None:
        refuse_existing(options.out)
    demos = demos_of(options, world, given.pop("experts", {}))
    seed, command = options.seed, options.command_line
    asked = api.ask(world, demos, None, None, None, seed, given, command)
    name = asked.config.world.kind if asked.config.world.kind != "gym" else asked.config.world.env
    name = getattr(asked.config.world, "name", name).replace(":", "-").replace("/", "-")
    method = asked.config.game.method
    out = options.out = options.out or free_name(Path("runs") / f"{name}-{method}")
    with run_progress() as progress:
        learned = api.play(asked, options.workers, out, progress, tell_warning, options.on)
    tell_learned(learned)


def refuse_world(options: Namespace) -> Path:
    """The user's file, which says what the world is."""
    if "--world" in options.command_line.split() or options.feature:
        raise InvalidInput(
            f"--world has no effect here; {options.config} says it all: leave it out"
        )
    return options.config  # type: ignore[no-any-return]


def demos_of(options: Namespace, world: Any, settings: Mapping[str, Any]) -> Any:
    """--demos, or demonstrations that are made now, if something is said of their experts."""
    experts = {**experts_of(options), **settings}
    if options.demos is not None:
        if experts:
            name = sorted(experts)[0]
            raise InvalidInput(
                f"--{name} is how demonstrations are made; {options.demos} has them: leave it out"
            )
        return options.demos
    if not experts:
        return None
    if options.config is not None:
        name = sorted(experts)[0]
        raise InvalidInput(
            f"--{name} is how demonstrations are made; {options.config} says where they are: leave "
            "it out"
        )
    from ringfence import api

    return api.make_demonstrations(world, {"seed": options.seed or 0, **experts})


def tell_warning(finding: Finding) -> None:
    if finding.severity == "warning":
        print(finding)


def tell_learned(learned: Learned) -> None:
    """What came of a game, in words."""
    summary, page = learned.summary, learned.report()
    if summary["outcome"] != "constraint":
        free = summary["unconstrained"]
        print(
            f"no constraint needed: without one, a learner earns {free['learner_reward_mean']:.1f} "
            f"in {free['env_steps']} steps, the demonstrators {free['expert_reward_mean']:.1f}, "
            "and does nothing that they avoid. If it learned too little: more steps, or "
            "--set opening.probe=false"
        )
        tell_doubts(summary, page)
        return
    best = summary["iterations"][summary["selected"] - 1]
    print(f"constraint (iteration {summary['selected']}): {best['constraint']['description']}")
    tell_interval(summary["constraint"]["interval"])
    for name in ("reward", "cost", "true_raw", "true_cost"):
        learner, expert = best[f"learner_{name}_mean"], best[f"expert_{name}_mean"]
        if learner is not None:
            print(
                f"{name.replace('_', ' ')}, mean over tasks: {learner:.3f} (experts {expert:.3f})"
            )
    if best["constraint"]["iou"] is not None:
        print(f"overlap with the true cells (IoU): {best['constraint']['iou']:.3f}")
    elif best["constraint_error"] is not None:
        print(f"error against the truth: {best['constraint_error']:.4f}")
    if summary["evidence"] is not None:
        counts = summary["evidence"].items()
        print("evidence: " + ", ".join(f"{count} {label}" for label, count in counts))
    tell_doubts(summary, page)


def tell_doubts(summary: Mapping[str, Any], page: Path) -> None:
    for doubt in summary["doubts"]:
        print(f"warning: {doubt}")
    print(f"page: {page}")


def tell_interval(interval: Mapping[str, Any] | None) -> None:
    """The curve, where limit and budget can't be told apart; else the interval."""
    if interval is None:
        return
    covered = interval.get("words", "over demonstrations only")
    if interval.get("curve"):
        print(f"  {covered}")
        return
    for name, (low, high) in interval["parameters"].items():
        print(f"  {name}: {low:.4g} to {high:.4g} ({interval['level']:.0%}: {covered})")


def resume(options: Namespace) -> None:
    from ringfence import api
    from ringfence.progress import run_progress
    from ringfence.runs import config, driver, problem
    from ringfence.runs.engines import engine

    ready()
    if (options.run / problem.FILE).is_file():
        if options.iterations is not None:
            raise InvalidInput("--iterations is for games; this is a single problem: leave it out")
        if options.workers != 1 or options.on:
            raise InvalidInput(
                "--workers and --on share a game; this is a single problem: leave them out"
            )
        agree(options.run, options.trust)
        finish_single(options.run)
        return
    agree(options.run, options.trust)
    found = config.read(options.run / "config.toml")  # refuses what this version can't go on with
    if options.iterations is not None:
        driver.extend(options.run, options.iterations)
    elif (options.run / "summary.json").is_file():
        print(f"{options.run} is finished already; this is what came of it")
    if options.on:
        config.make_world(found.world)  # of one's own: imported here before it is sent anywhere
    with (
        engine(options.workers, options.on, found.world, found.solver) as who,
        run_progress() as progress,
    ):
        summary = driver.drive(options.run, who, progress)
    tell_learned(api.read_learned(options.run, summary))


# Single problems ---------------------------------------------------------------------------------


def solve(options: Namespace) -> None:
    from ringfence import api
    from ringfence.progress import run_progress
    from ringfence.runs.scalars import Scalars

    ready()
    given = settings_of(options, "world", "solver")
    with run_progress("training") as progress, Scalars(options.out) as scalars:
        solved = api.solve(
            world_of(options, given),
            options.constraint,
            options.delta,
            task=options.task,
            solver=given.get("solver"),
            episodes=options.episodes,
            seed=options.seed,
            out=options.out,
            policy=options.policy,
            starts=options.demos,
            command=options.command_line,
            on_event=progress,
            on_record=scalars,
        )
    tell_solved(solved)


def transfer(options: Namespace) -> None:
    from ringfence import api
    from ringfence.progress import run_progress

    ready()
    if ".toml" not in (options.task or ""):  # a file that the user names is the user's own
        agree(options.run, options.trust)
    task: Any = options.task
    if (options.goal is None) != (options.start is None):
        raise InvalidInput("a new task on a map needs both --goal and --start")
    if options.goal is not None:
        if task is not None:
            raise InvalidInput("give --goal and --start, or --task, not both")
        task = {"goal": options.goal, "start": options.start}
    out = options.out = options.out or free_name(transfer_base(options.run, task))
    given = settings_of(options, "solver")
    with run_progress("transfer") as progress:
        solved = api.transfer(
            options.run,
            task,
            unknown=options.unknown,
            limit=options.delta,
            clearance=options.clearance,
            steps=options.steps,
            solver=given.get("solver"),
            episodes=options.episodes,
            seed=options.seed,
            out=out,
            command=options.command_line,
            say=print,
            on_event=progress,
        )
    tell_solved(solved)


def transfer_base(run: Path, task: Any) -> Path:
    return run / "transfer" if isinstance(task, Mapping) else Path("runs") / "transfer"


def finish_single(out: Path) -> None:
    """Go on with a solve or a transfer, and tell what came of it."""
    from ringfence.api import Solved
    from ringfence.progress import run_progress
    from ringfence.runs import solving
    from ringfence.runs.scalars import Scalars

    with run_progress("training") as progress, Scalars(out) as scalars:
        summary = solving.drive(out, progress, scalars)
    tell_solved(Solved(summary, out))


def tell_solved(solved: Solved) -> None:
    """What came of a single problem, in words and as pictures."""
    from ringfence.cli.frames import draw_frames
    from ringfence.disk import write_file
    from ringfence.report.draw.run_figures import solve_picture

    s = solved.summary
    clearance = f" with a clearance of {s['clearance']:g}" if s["clearance"] else ""
    print(f"{s['task']} under {s['constraint']['description']}{clearance}")
    print_numbers(s, ("reward", "reward_se", "cost", "delta", "lam", "length", "success"))
    leaves = s.get("leaving_episodes")
    listed = ("unknown_cells",) if leaves is None else ()
    print_numbers(s, ("true_cost", "true_raw", *listed, "env_steps"))
    if leaves is not None:
        word = "covered" if s["covered"] else "UNCOVERED"
        print(f"{word}: {leaves} of {s['episodes']} episodes leave cells where demonstrators were")
    for kind in ("stochastic", "deterministic"):
        if kind in s:
            print(f"{kind} policy, mean of {s[kind]['episodes']} episodes:")
            print_numbers(s[kind], ("reward", "length", "speed", "true_cost", "true_raw"))
    tell_violations(s)
    for doubt in s.get("doubts", ()):
        print(f"warning: {doubt}")
    if isinstance(s["success"], float) and s["success"] < 1e-6:
        print("remark: within this limit the constraint leaves no way to the goal")
    if isinstance(picture := solve_picture(solved.folder), bytes):
        write_file(solved.folder / "path.png", picture)
        print(f"picture: {solved.folder / 'path.png'}")
    if s["kind"] == "ant":
        print(draw_frames(solved.folder))
    print(f"saved to {solved.folder}")


def tell_violations(s: Mapping[str, Any]) -> None:
    """Of counted episodes: how many exceed the limit, and the chance that one does."""
    if "violation_chance" not in s:
        return
    names = [("", "cost", f"{s['delta']:.4g}")]
    if "true_violation_chance" in s:
        limit = f"{s['true_limit']:.4g}: {s['true_limit_is']}"
        names.append(("true_", f"true cost ({s['truth']})", limit))
    for prefix, name, limit in names:
        count, (low, high) = s[f"{prefix}violating_episodes"], s[f"{prefix}violation_chance"]
        cost, se = s[f"{prefix}cost"], s[f"{prefix}cost_se"]
        print(f"{name}: {cost:.3f} +- {se:.3f} (limit {limit})")
        print(
            f"  {count} of {s['episodes']} episodes exceed the limit: their chance is {low:.3f} to "
            f"{high:.3f} ({s['confidence']:.0%}, exact binomial)"
        )


def evaluate(options: Namespace) -> None:
    from ringfence import api
    from ringfence.disk import write_json

    ready()
    given = settings_of(options, "world", "solver")
    world = None if options.world is None else world_of(options, given)
    if world is None and given.get("world"):
        raise InvalidInput("--truth and the like are of a world: give --world, too")
    result = api.evaluate(
        options.constraint,
        world,
        options.demos,
        solver=given.get("solver"),
        on_finding=tell_warning,
    )
    print(result["constraint"])
    for part in ("truth", "demonstrations"):
        for name, value in (result[part] or {}).items():
            if not isinstance(value, list) or name in ("false_walls", "missed_walls"):
                print_numbers({name: value}, (name,))
    print(f"limit: {result['delta']:.4g}")
    for reason in result["not_here"].values():
        print(f"not compared: {reason}")
    if options.out is not None:
        write_json(options.out, result)
        print(f"saved to {options.out}")


# Pages, experiments, speed -----------------------------------------------------------------------


def report(options: Namespace) -> None:
    from ringfence.report import page

    if len(options.runs) == 1:
        print(f"page: {page.write(options.runs[0], options.out)}")
        return
    if options.out is None:
        raise InvalidInput("a page over several runs needs --out FILE")
    print(f"page: {page.write_many(options.runs, options.out)}")


def plan(options: Namespace) -> None:
    from ringfence import api
    from ringfence.analysis.sufficiency import in_words
    from ringfence.disk import write_json

    ready()
    found = api.plan(options.run, options.spread)
    print("\n".join(in_words(found)))
    if options.out is not None:
        write_json(options.out, found)


def reproduce(options: Namespace) -> None:
    from ringfence import reproduce as experiments
    from ringfence.runs.backend import require_workers

    ready()
    if options.experiment is None:
        print("experiments: " + ", ".join(experiments.names()))
        return
    require_workers(options.workers)
    experiments.run(
        options.experiment,
        seeds=options.seeds,
        numbers=options.seed,
        only=tuple(options.only),
        variants=tuple(options.variant),
        settings=tuple(options.set),
        workers=options.workers,
        on=options.on,
        out=options.out,
        data=options.data,
        command=options.command_line,
        say=print,
    )


#: Of bench exact: stop when a game takes this, s.
BUDGET = 60.0


def bench(options: Namespace) -> None:
    from ringfence.disk import write_json

    if options.what != "exact" and options.budget is not None:
        raise InvalidInput(f"--budget has no effect on {options.what}, only on exact: leave it out")
    numbers: Mapping[str, float | None]
    if options.what == "exact":
        from ringfence.bench.exact import bench_exact

        numbers = bench_exact(options.budget or BUDGET, lambda line: print(line, flush=True))
    else:
        from ringfence.bench.crl import bench_crl
        from ringfence.bench.maze import bench_maze

        numbers = bench_crl() if options.what == "crl" else bench_maze()
    if options.out is not None:
        write_json(options.out, numbers)
        print(f"saved to {options.out}")


# What options mean -------------------------------------------------------------------------------


def ready() -> None:
    """For anyone's environments: modules of the working directory, warnings said once."""
    from ringfence.worlds.named import from_working_directory
    from ringfence.worlds.sim.warnings_once import warn_once

    from_working_directory()
    warn_once()


def agree(run: Path, trust: bool) -> None:
    """The code that a run names is called if this user made it, or agrees to it now."""
    from ringfence.runs.config import agree as ask

    there = sys.stdin.isatty() and sys.stdout.isatty()
    ask(run, trust, input if there else None)


def settings_of(options: Namespace, *tables: str) -> dict[str, Any]:
    """The entries of the configuration that options and --set give, as a document.

    tables: those that have an effect here (none: all).
    """
    from ringfence.cli.options import OPTIONS
    from ringfence.runs.config import merged, setting

    document: dict[str, Any] = {}
    for entry, kind, _ in OPTIONS.values():
        value = getattr(options, entry, None)
        if value is not None:
            table, key = entry.split(".")
            value = value.split(",") if kind == "list" else value
            document = merged(document, {table: {key: value}})
    for text in options.set:
        document = merged(document, setting(text))
    for name in document:
        if tables and name not in tables:
            raise InvalidInput(f"--set {name}.: it has no effect here; use {', '.join(tables)}")
    return document


def world_of(options: Namespace, given: Mapping[str, Any]) -> Any:
    """The [world] that --world, --feature and the settings of it describe; or the user's file."""
    from ringfence.given import gym_features
    from ringfence.runs.config import merged, world_table

    if getattr(options, "config", None) is not None:
        return options.config
    settings = dict(given.get("world", {}))
    kind = str(options.world).partition(":")[0]
    if kind == "gym" and "horizon" in settings:
        settings["steps"] = settings.pop("horizon")
    maps = {name: settings.pop(name) for name in ("horizon", "slip", "reward") if name in settings}
    table = world_table(options.world, **maps)
    if options.feature:
        if table["kind"] != "gym":
            raise InvalidInput(
                f"--feature is for 'gym:' worlds; {options.world} has its own: leave it out"
            )
        table |= gym_features(options.feature)
    return merged(table, settings)


def defaults_text(words: Sequence[str], command: str) -> str:
    """For --help: what is not said has these values on the chosen world."""
    from dataclasses import asdict

    from ringfence.errors import RingfenceError
    from ringfence.runs.config import configure, world_table

    at = words.index("--world") + 1 if "--world" in words else None
    name = words[at] if at is not None and at < len(words) else "maze"
    try:
        table = world_table(name)
        if table["kind"] == "gym":
            table["full_state"] = True
        config = configure({"world": table})
    except RingfenceError as problem:
        return f"\n\ndefaults of {name}: not known ({problem})"
    tables = ("solver",) if command == "solve" else (
        "game", "player", "opening", "solver", "analysis")  # fmt: skip
    lines = []
    for table_name in tables:
        entries = asdict(getattr(config, table_name))
        said = ", ".join(f"{k} = {json.dumps(v)}" for k, v in entries.items() if v is not None)
        lines.append(f"  [{table_name}] {said}")
    return f"\n\ndefaults on {name}:\n" + "\n".join(lines)


def free_name(base: Path) -> Path:
    """The first of base, base-2, base-3, ... that is not there."""
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def print_numbers(row: Mapping[str, Any], names: Sequence[str]) -> None:
    """What is known of these, a line each."""
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        text = f"{value:.6g}" if isinstance(value, float) else json.dumps(value)
        print(f"  {name.replace('_', ' ')}: {text}")
