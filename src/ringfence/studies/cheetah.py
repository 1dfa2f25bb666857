"""`ringfence reproduce cheetah`: a limit found in an environment that nobody here wrote.

HalfCheetah-v5's demonstrators keep a limit on their velocity, with a stated budget. Per seed:
they are trained, their episodes are checked, and one game with the user's file (examples/) learns
the limit; the truth is compared afterwards. Beside them stands a set of demonstrators who each
keep a pace of their own below the limit, about whom the check has to say that they show none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.cli.progress import control_progress
from ringfence.constraints.linear import parse_inequality
from ringfence.demos import dataset as demos
from ringfence.demos.checks import Finding
from ringfence.demos.dataset import Demonstrations, TaskDemos
from ringfence.experts.trained import ExpertSettings, roll_out, train_experts
from ringfence.objects import J, behaviour_of
from ringfence.runs import control
from ringfence.runs.control_config import ControlConfig, read_user, solve_settings
from ringfence.runs.files import write_file, write_json
from ringfence.runs.own_check import Examined, examine
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.studies.icl_tables import TIMES, note_time
from ringfence.studies.tables import markdown

Say = Callable[[str], None]

#: What users write; the same text is in examples/half_cheetah.toml.
FILE = """\
# ringfence demos check half_cheetah.toml
# ringfence learn half_cheetah.toml
[world]
kind = "gym"
env = "HalfCheetah-v5"
features = [{ name = "x_velocity", unit = "m/s" }]

[demos]
path = "demos"

[game]
constraint = "x_velocity <= ?"
player = "payoff"
expert_budget = 20.0
iterations = 2
buffer = 0.0
probe = false

[ppo]
env_steps = 150_000
error_clip = 300.0
"""
LIMIT, BUDGET = 1.37, 20.0
#: m/s, of the demonstrators who keep their own.
PACES = (0.4, 0.6, 0.8, 1.0)
#: Their seeds, beyond those of the experts.
SLOW_SEED = 100


@dataclass(frozen=True)
class Study:
    """How long the demonstrators are trained, and where all of it is kept."""

    seeds: int = 3
    file: str = FILE
    expert_steps: int = 500_000
    slow_steps: int = 150_000
    runs: Path = field(default_factory=lambda: Path("runs/reproduce-cheetah"))

    @property
    def toml(self) -> Path:
        return self.runs / "half_cheetah.toml"


def reproduce(study: Study, out: Path, command: str, say: Say) -> None:
    """Every seed, then the slow ones, as far as that was not done."""
    out.mkdir(parents=True, exist_ok=True)
    study.runs.mkdir(parents=True, exist_ok=True)
    write_file(study.toml, study.file.encode())
    for seed in range(study.seeds):
        say(f"cheetah, seed {seed}")
        found, seconds = one(study, seed)
        write_json(out / f"seed-{seed}.json", found)
        note_time(out, seed, seconds)
        write_table(study, out, command)
    say("cheetah, demonstrators who keep their own pace")
    write_json(out / "slow.json", slow(study))
    write_table(study, out, command)


def one(study: Study, seed: int) -> tuple[dict[str, Any], float]:
    """A seed's demonstrators, their check and the game; and the seconds of the game."""
    place = study.runs / f"demos-seed-{seed}"
    made(study, place, LIMIT, study.expert_steps, 20, 10, seed)
    run = study.runs / f"seed-{seed}"
    config = configuration(study, place, seed)
    examined = examine(config, study.runs)
    assert examined.demos is not None, examined.errors
    if not run.exists():
        control.create(run, config, examined.demos)
    if not (run / "summary.json").is_file():
        with control_progress() as progress:
            control.drive(run, progress)
    summary = json.loads((run / "summary.json").read_text())
    seconds = float(json.loads((run / "timing.json").read_text())["seconds"])
    found = {
        **verdict(examined),
        **truth_of(examined.demos),
        **learned(summary),
        "seed": seed,
        "env_steps": summary["env_steps"],
        "versions": summary["versions"],
    }
    return found, seconds


def configuration(study: Study, demos_folder: Path, seed: int) -> ControlConfig:
    """That of `ringfence learn half_cheetah.toml --demos FOLDER --seed SEED`."""
    command = f"ringfence learn half_cheetah.toml --demos {demos_folder} --seed {seed}"
    config = read_user(study.toml, command, seed)
    return replace(config, demos=replace(config.demos, path=str(demos_folder.absolute())))


def made(
    study: Study, place: Path, limit: float, steps: int, paths: int, heldout: int, seed: int
) -> Demonstrations:
    """Demonstrators with a limit of their own: trained and stored once, then read."""
    if not place.exists():
        world = replace(read_user(study.toml, "", 0).world, truth=f"x_velocity <= {limit}")
        settings = ExpertSettings(BUDGET, paths=paths, heldout=heldout, seed=seed)
        ppo: PPOConfig = replace(solve_settings(study.toml), env_steps=steps)
        with control_progress() as progress:
            folder = place.with_name(f"{place.name}-expert")
            policies = train_experts(world, settings, ppo, folder, progress)
        demos.save(roll_out(world, settings, policies), place)
    return demos.load(place)


def slow(study: Study) -> dict[str, Any]:
    """Demonstrators below the limit, each at a pace of their own, and what the check says."""
    place = study.runs / "demos-slow"
    if not place.exists():
        each = [
            made(study, study.runs / f"demos-pace-{pace:g}", pace, study.slow_steps, 5, 2, seed)
            for seed, pace in enumerate(PACES, SLOW_SEED)
        ]
        train = tuple(t for d in each for t in d.tasks[0].train)
        heldout = tuple(t for d in each for t in d.tasks[0].heldout)
        task = TaskDemos(each[0].tasks[0].task, train, heldout)
        provenance: dict[str, Any] = {"paces": list(PACES), "budget": BUDGET}
        demos.save(Demonstrations((task,), each[0].features, provenance), place)
    examined = examine(configuration(study, place, 0), study.runs)
    assert examined.demos is not None, examined.errors
    return {**verdict(examined), **truth_of(examined.demos), "paces": list(PACES)}


def verdict(examined: Examined) -> dict[str, Any]:
    """What `demos check` says about saturation, and all that it says."""
    (found,) = [f for f in examined.findings if f.where.startswith("saturation")]
    findings: list[Finding] = list(examined.findings)
    return {
        "saturated": found.severity == "ok",
        "verdict": found.message,
        "findings": [asdict(f) for f in findings],
    }


def truth_of(given: Demonstrations) -> dict[str, Any]:
    """How the demonstrators stand to the true limit: for the table only."""
    pi = behaviour_of(given.tasks[0].train)
    c = parse_inequality(f"x_velocity <= {LIMIT}", given.features)
    mean = float(pi.visits @ pi.features[:, 0] / pi.visits.sum())
    return {"expert_true_cost": J(pi, c), "expert_velocity": mean, "expert_reward": pi.reward}


def learned(summary: dict[str, Any]) -> dict[str, Any]:
    """The selected constraint against the true limit."""
    if summary["selected"] is None:
        return {"limit": None, "error": None, "outcome": summary["outcome"]}
    row = summary["iterations"][summary["selected"] - 1]
    limit = row["constraint"]["parameters"]["limit"]
    return {
        "outcome": summary["outcome"],
        "limit": limit,
        "error": abs(limit - LIMIT) / LIMIT,
        "interval": summary["constraint"]["interval"]["parameters"]["limit"],
        "learner_reward": row["learner_reward_mean"],
        "learner_cost": row["learner_cost_mean"],
        "expert_cost": row["expert_cost_mean"],
    }


# The table ---------------------------------------------------------------------------------------

COLUMNS = (
    *("demonstrators", "mean velocity", "true cost", "check", "learned limit", "95% interval"),
    *("error", "learner's reward (experts')", "its cost (experts')", "minutes"),
)


def write_table(study: Study, out: Path, command: str) -> None:
    """table.md, from what is there; what was not run is called so."""
    times = json.loads((out / TIMES).read_text()) if (out / TIMES).is_file() else {}
    rows = [
        _row(f"seed {n}", out / f"seed-{n}.json", times.get(f"seed-{n}", 0.0))
        for n in range(study.seeds)
    ]
    rows.append(_row("own paces", out / "slow.json", 0.0))
    lines = [
        "# HalfCheetah-v5: from demonstrations to a limit",
        "",
        f"`{command}`",
        "",
        f"True limit: x_velocity <= {LIMIT} m/s, {BUDGET:g} activated cost per episode allowed to "
        f"the demonstrators, who were trained for {study.expert_steps} steps. The game did not "
        "know the limit; it was told the budget. One call per seed, with examples/"
        "half_cheetah.toml: `ringfence learn half_cheetah.toml --demos DEMOS --seed SEED`. The "
        f"demonstrators of the last row keep paces of {', '.join(f'{p:g}' for p in PACES)} m/s.",
        "",
        markdown(COLUMNS, rows),
    ]
    write_file(out / "table.md", ("\n".join(lines) + "\n").encode())


def _row(name: str, path: Path, seconds: float) -> list[str]:
    if not path.is_file():
        return [name, "not run", *[""] * (len(COLUMNS) - 2)]
    d = json.loads(path.read_text())
    said = "saturated" if d["saturated"] else "not saturated"
    row = [name, f"{d['expert_velocity']:.3f}", f"{d['expert_true_cost']:.1f}", said]
    if d.get("limit") is None:
        return [*row, *["-"] * (len(COLUMNS) - len(row))]
    low, high = np.array(d["interval"])
    rewards = f"{d['learner_reward']:.0f} ({d['expert_reward']:.0f})"
    return [
        *row,
        f"{d['limit']:.4f}",
        f"{low:.4f} to {high:.4f}",
        f"{d['error']:.2%}",
        rewards,
        f"{d['learner_cost']:.1f} ({d['expert_cost']:.1f})",
        f"{seconds / 60:.1f}",
    ]
