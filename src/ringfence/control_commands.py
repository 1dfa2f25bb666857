"""What the subcommands do on continuous worlds: build a configuration, call a function, print."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringfence.cli.progress import control_progress
from ringfence.constraints.saved import SavedConstraint, load
from ringfence.demos import checks as demo_checks
from ringfence.demos import dataset as demos
from ringfence.deploy.policies import load_policy
from ringfence.errors import InvalidInput
from ringfence.experts.trained import ExpertSettings, roll_out, train_experts
from ringfence.options import CONTINUOUS, DEMONSTRATORS, EVERYWHERE, chosen, free_name, refuse
from ringfence.report import page
from ringfence.runs import control, control_transfer, own_check
from ringfence.runs.config import build, read_entries
from ringfence.runs.control_config import (
    CloneConfig,
    ControlConfig,
    ControlDemos,
    ControlGame,
    ControlWorld,
    iteration,
    read_user,
    solve_settings,
)
from ringfence.runs.evaluate import against_demonstrations
from ringfence.runs.folder import refuse_existing
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.worlds import named
from ringfence.worlds.sim.warnings_once import warn_once

#: Of an expert's training.
EXPERT_STEPS = 1_000_000
#: Where an option of the command line is an entry of a section.
GAME = (
    *("method", "player", "expert_budget", "tolerance", "iterations", "epsilon"),
    *("buffer", "anneal", "initial", "stop_share", "drop_failed"),
)


def learn(options: Namespace) -> None:
    """`ringfence learn my.toml`, or `ringfence learn --world ant ...`."""
    config, given = own(options) if options.config else from_options(options)
    name = config.world.name.replace(":", "-").replace("/", "-")
    out = options.out = options.out or free_name(Path("runs") / f"{name}-{config.game.method}")
    refuse_existing(out)
    control.create(out, config, given)
    finish(out)


def ready() -> None:
    """For anyone's environments: modules of the working directory, warnings said once."""
    named.from_working_directory()
    warn_once()


def own(options: Namespace) -> tuple[ControlConfig, demos.Demonstrations]:
    """The user's file with its demonstrations, after every check: none fails during training."""
    why = f"has no effect here; {options.config} says it all"
    refuse(options, EVERYWHERE + CONTINUOUS + DEMONSTRATORS, why)
    if "--world" in options.command_line.split():  # also if it is the default
        raise InvalidInput(f"--world {why}: leave it out")
    config = from_file(options)
    if options.demos is not None:
        config = replace(config, demos=replace(config.demos, path=str(options.demos.absolute())))
    examined = own_check.examine(config, options.config.parent)
    warn(examined.findings)
    if examined.demos is None:
        first = examined.errors[0]
        raise InvalidInput(f"{options.config}: {first.message}")
    return config, examined.demos


def demos_check(options: Namespace) -> None:
    """`ringfence demos check my.toml`: every check, in words."""
    ready()
    config = read_user(options.demos, options.command_line)
    examined = own_check.examine(config, options.demos.parent)
    for finding in examined.findings:
        print(finding)
    if examined.demos is None:
        raise InvalidInput(
            f"{options.demos}: {len(examined.errors)} errors (above); mend them before learning"
        )
    remarks = [f for f in examined.findings if f.severity in ("warning", "note")]
    print(f"{options.demos}: usable, {len(remarks)} remarks")


def transfer(options: Namespace) -> None:
    """`ringfence transfer CONSTRAINT --task my.toml`, or a run's own task: `transfer RUN`."""
    ready()
    start = None
    if options.task is not None and ".toml" in options.task:
        world, ppo = control_transfer.read_task(options.task)
    else:
        world, ppo, start = control_transfer.own_task(options.run, options.task)
    if options.steps:
        ppo = replace(ppo, env_steps=options.steps)
    folder = control_transfer.saved_folder(options.run)
    saved = load(folder)
    settings = control_transfer.Settings(
        saved.delta if options.delta is None else options.delta,
        options.episodes,
        clearance=options.clearance,
        train=options.steps != 0,
    )
    config = control_transfer.TransferConfig(
        options.command_line, options.seed, world, settings, ppo
    )
    out = options.out = options.out or free_name(Path("runs") / "transfer")
    control_transfer.create(out, config, folder, start)
    finish_transfer(out)


def finish_transfer(out: Path) -> None:
    """Train a transfer to its end, and tell what came of it."""
    ready()
    with control_progress() as progress:
        s = control_transfer.drive(out, progress)
    clearance = f" with a clearance of {s['clearance']:g}" if s["clearance"] else ""
    print(
        f"{s['task']} under {s['constraint']['description']}{clearance}, {s['episodes']} episodes"
    )
    print(f"reward: {s['reward']:.2f} +- {s['reward_se']:.2f}")
    tell_violations("cost", "", f"{s['delta']:.4g}", s)
    if s["truth"] is not None:
        limit = f"{s['true_limit']:.4g}: {s['true_limit_is']}"
        tell_violations(f"true cost ({s['truth']})", "true_", limit, s)
    if s["cost"] - 2 * s["cost_se"] > s["delta"]:
        print("warning: the policy does not keep the limit yet; train it longer (--steps)")
        if not s["delta"]:
            print("         A limit of 0 is approached, never reached: allow some cost (--delta).")
    print(f"saved to {out}")


def tell_violations(name: str, prefix: str, limit: str, s: dict[str, Any]) -> None:
    cost, se = s[f"{prefix}cost"], s[f"{prefix}cost_se"]
    count, (low, high) = s[f"{prefix}violating_episodes"], s[f"{prefix}violation_chance"]
    print(f"{name}: {cost:.3f} +- {se:.3f} (limit {limit})")
    print(
        f"  {count} of {s['episodes']} episodes exceed the limit: their chance is {low:.3f} to "
        f"{high:.3f} ({s['confidence']:.0%}, exact binomial)"
    )


def from_file(options: Namespace) -> ControlConfig:
    """The user's file; its "module:function" are found from the working directory."""
    ready()
    return read_user(options.config, options.command_line, options.seed)


def from_options(options: Namespace) -> tuple[ControlConfig, demos.Demonstrations]:
    if options.demos is None:
        raise InvalidInput(
            "no demonstrations: give --demos, a folder that 'ringfence demos make --world "
            f"{options.world}' made"
        )
    if options.constraint_class is None:
        raise InvalidInput('say what is to be learned, such as --class "speed <= ?"')
    refuse(options, ("horizon", "task"), f"has no effect on {options.world}, which has its own")
    game = ControlGame(
        options.constraint_class,
        on=tuple(options.on.split(",")) if options.on else (),
        probe=not options.no_probe,
        **chosen(options, GAME),
    )
    ppo: dict[str, Any] = {"start_share": options.start_share}
    if options.steps is not None:
        ppo["env_steps"] = options.steps
    ppo |= read_entries("--ppo", options.ppo)
    cloning = {"steps": options.clone_steps, "carry": options.carry}
    clone = CloneConfig(**{name: value for name, value in cloning.items() if value is not None})
    world = ControlWorld(options.world, full_state=options.full_state, truth=options.truth or "")
    config = ControlConfig(
        options.command_line,
        options.seed,
        world,
        ControlDemos(),
        game,
        clone,
        build("--ppo", iteration(options.world, ppo), PPOConfig),
    )
    given = demos.load(options.demos)
    warn(demo_checks.check(given))
    return config, given


def warn(findings: Iterable[demo_checks.Finding]) -> None:
    for finding in findings:
        if finding.severity == "warning":
            print(finding)


def resume(run: Path, iterations: int | None) -> None:
    """Go on with a run; with `iterations`, beyond its end."""
    done = (run / "summary.json").is_file()
    if iterations is not None:
        control.extend(run, iterations)
    elif done:
        print(f"{run} is finished already; this is what came of it")
    finish(run)


def finish(run: Path) -> None:
    """Play a run to its end, with progress, and tell what came of it."""
    named.from_working_directory()
    with control_progress() as progress:
        summary = control.drive(run, progress)
    report = page.write(run)
    if summary["outcome"] != "constraint":
        free = summary["unconstrained"]
        print(
            f"no constraint needed: without one, a learner earns {free['learner_reward_mean']:.1f} "
            f"in {free['env_steps']} steps, the demonstrators {free['expert_reward_mean']:.1f}, "
            "and does nothing that they avoid. If it learned too little: more steps, or --no-probe "
            "(in a file: env_steps, or probe = false)"
        )
        print(f"page: {report}")
        return
    best = summary["iterations"][summary["selected"] - 1]
    print(f"constraint (iteration {summary['selected']}): {best['constraint']['description']}")
    tell_interval(summary["constraint"]["interval"])
    rows = ("reward", "cost", "true_raw", "true_cost")
    for name in rows:
        learner, expert = best[f"learner_{name}_mean"], best[f"expert_{name}_mean"]
        if learner is not None:
            print(f"{name.replace('_', ' ')}: {learner:.3f} (experts {expert:.3f})")
    if best["constraint_error"] is not None:
        print(f"error against the truth: {best['constraint_error']:.4f}")
    for doubt in summary.get("doubts", []):  # runs of before have none
        print(f"warning: {doubt}")
    print(f"page: {report}")


def tell_interval(interval: dict[str, Any] | None) -> None:
    if interval is None:
        return
    for name, (low, high) in interval["parameters"].items():
        print(
            f"  {name}: {low:.4g} to {high:.4g} "
            f"({interval['level']:.0%}, by bootstrap over demonstrations; learners as they were)"
        )


def demos_make(options: Namespace) -> None:
    """Train the experts (unless --policy has one), roll them out, store."""
    if options.out.exists():
        raise InvalidInput(f"{options.out}: it exists already; choose another --out")
    world = from_file(options).world if options.config else ControlWorld(options.world)
    if options.truth is not None:
        world = replace(world, truth=options.truth)
    settings = ExpertSettings(
        delta=20.0 if options.expert_delta is None else options.expert_delta,
        noise=options.noise,
        paths=20 if options.paths is None else options.paths,
        heldout=10 if options.heldout is None else options.heldout,
        keep_saturated=options.keep_saturated,
        seed=options.seed,
    )
    ppo = solve_settings(options.config) if options.config else PPOConfig()
    ppo = replace(ppo, env_steps=options.steps or EXPERT_STEPS)
    make(world, settings, ppo, options.out, options.policy)
    print(f"saved to {options.out}")


def make(
    world: ControlWorld, settings: ExpertSettings, ppo: PPOConfig, out: Path, policy: Path | None
) -> demos.Demonstrations:
    """Demonstrations in `out`; the expert's training is beside it, as `out`-expert."""
    if policy is not None:
        saved = load_policy(policy)
        policies, augment = [dict(saved.arrays)], saved.sees
    else:
        with control_progress() as progress:
            folder = out.with_name(f"{out.name}-expert")
            policies = train_experts(world, settings, ppo, folder, progress)
            augment = ppo.augment
    made = roll_out(world, settings, policies, print, augment)
    demos.save(made, out)
    print(demo_checks.describe(made))
    warn(demo_checks.check(made))
    return demos.load(out)


def evaluate(saved: SavedConstraint, options: Namespace) -> dict[str, Any]:
    """`evaluate` of a constraint that is not about cells: what demonstrations cost by it."""
    if options.demos is None:
        raise InvalidInput(
            f"{options.constraint}: not about cells ({saved.describe()}): give --demos to compare "
            "it with demonstrations, or train a policy under it with 'ringfence transfer'"
        )
    given = demos.load(options.demos)
    if given.features != saved.features:
        own, other = (
            ", ".join(f"{f.name} ({f.unit})" for f in x) for x in (saved.features, given.features)
        )
        raise InvalidInput(f"{options.demos}: its features are {other}; the constraint's are {own}")
    print(saved.describe())
    costs = against_demonstrations(saved.constraint, given)
    for name in ("expert_cost_mean", "heldout_expert_cost_mean"):
        if costs[name] is not None:
            print(f"{name}: {costs[name]:.4g}")
    print(f"limit: {saved.delta:.4g}")
    return {"constraint": saved.describe(), "delta": saved.delta, "demonstrations": costs}


def reproduce(options: Namespace, seeds: int) -> None:
    """velocity, position, noisy, ablation or baselines on an Ant."""
    from ringfence.studies import ablation, chou, clearance, icl
    from ringfence.studies.trainings import SIMULATOR

    if options.experiment in ("ablation", "baselines"):
        out = options.out or Path(f"results/{options.experiment}-{SIMULATOR[options.world]}")
        if options.experiment == "ablation":
            usual = icl.Study(options.world, icl.VELOCITY, seeds)
            ablation.reproduce(usual, out, options.command_line, print)
        else:
            chou.reproduce(options.world, seeds, out, options.command_line, print)
        print(f"saved to {out}")
        return
    names = ("noisy-velocity", "noisy-position")
    for name in names if options.experiment == "noisy" else (options.experiment,):
        study = icl.Study(
            options.world,
            changed(icl.EXPERIMENTS[name], options),
            seeds,
            options.player,
            options.keep_saturated,
            options.constraint_class or "",
            tuple(options.on.split(",")) if options.on else (),
            options.full_state,
            options.expert_budget,
            options.carry,
            options.stop_share or 0.0,
            read_entries("--ppo", options.ppo),
            drop_failed=bool(options.drop_failed),
            settled=options.settled,
            buffer=options.buffer,
        )
        out = options.out / name if options.out else Path("results") / study.name
        if options.clearance is not None:
            clearance.check(study, options.clearance)
        icl.reproduce(study, out, options.command_line, print)
        if options.clearance is not None:
            inside = out / f"clearance-{options.clearance:g}"
            clearance.reproduce(study, options.clearance, inside, options.command_line, print)
        print(f"saved to {out}")


def changed(experiment: Any, options: Namespace) -> Any:
    """The experiment with another number of steps or iterations, where they are given."""
    names = [n for n in ("steps", "iterations") if getattr(options, n) is not None]
    given = {name: getattr(options, name) for name in names}
    for name, value in given.items():
        if value < 1:
            raise InvalidInput(f"--{name} must be at least 1, got {value}")
    return replace(experiment, **given)
