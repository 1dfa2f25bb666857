"""`ringfence reproduce velocity|position|noisy`: single-task ICL on the Ant, seed by seed.

Each seed has an expert (trained as in `reproduce experts`, and shared with it), demonstrations
and a run, all resumable, under runs/; results/ gets the summaries, a table and figures, written
anew after each seed. What was not run is called so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ringfence.cli.progress import control_progress
from ringfence.demos import dataset as demos
from ringfence.demos.dataset import Demonstrations
from ringfence.errors import InvalidInput
from ringfence.experts.trained import ExpertSettings, read_weights, roll_out
from ringfence.report import page
from ringfence.runs import control, control_config
from ringfence.runs.config import build
from ringfence.runs.control_config import (
    ITERATION,
    ITERATION_ON,
    Carry,
    CloneConfig,
    ControlConfig,
    ControlDemos,
    ControlGame,
    ControlWorld,
)
from ringfence.runs.files import write_json
from ringfence.runs.train import World
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.studies import icl_tables
from ringfence.studies.trainings import (
    POSITION_100,
    POSITION_100_SETTLED,
    SIMULATOR,
    VELOCITY_20,
    VELOCITY_20_SETTLED,
    Expert,
    in_command,
    in_words,
    trained_expert,
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Experiment:
    """One of the paper's: who demonstrates, and how the game is played.

    settled: the demonstrator whose learning rate fell to 0 at last; saturated: how far below the
    limit the published filter lets an episode's mean be; steps: of each iteration, fewer than the
    paper's million; initial_lam: of the first.
    """

    name: str
    expert: Expert
    settled: Expert
    constraint: str
    iterations: int
    buffer: float
    saturated: float
    steps: int
    noise: float = 0.0
    initial_lam: float = 0.0

    @property
    def noisy(self) -> Experiment:
        noise = {"velocity": 0.7, "position": 0.5}[self.name]
        return replace(self, name=f"noisy-{self.name}", noise=noise)


VELOCITY = Experiment(
    "velocity",
    VELOCITY_20,
    VELOCITY_20_SETTLED,
    "speed <= ?",
    iterations=10,
    buffer=20.0,
    saturated=0.05,
    steps=100_000,
)
#: Position's cost comes late in an episode, so it is seen late; under a multiplier that begins at 0
#: the first learner goes far beyond its limit, and the regression remembers every learner.
POSITION_ = Experiment(
    "position",
    POSITION_100,
    POSITION_100_SETTLED,
    "? x - y <= 0",
    iterations=10,
    buffer=100.0,
    saturated=0.1,
    steps=100_000,
    initial_lam=1.5,
)
EXPERIMENTS = {e.name: e for e in (VELOCITY, POSITION_, VELOCITY.noisy, POSITION_.noisy)}


#: Rollouts over which --stop-share looks: 25,000 steps.
STOP_WINDOW = 6
CARRIED = {
    "nothing": "every solve begins at the clone",
    "critics": "every solve begins at the clone, with the critics of the iteration before",
    "policy": "the first solve begins at the clone, each later one at the policy before it",
}


@dataclass(frozen=True)
class Study:
    """An experiment on one simulator, with a player and a class.

    settled: by experts whose learning rate falls to 0 at last; saturated: with the published
    filter of demonstrations; constraint: "" for the experiment's; budget: payoff's belief, by
    default the experts' true limit; carry: what a solve takes over from the iteration before;
    stop_share: of the experts' reward, at which a solve that keeps its limit stops (0: none does);
    drop_failed: failed episodes are no evidence; own: settings of the solver by name, other than
    the experiment's; buffer: of the learners' limit, by default the experiment's; cloned: does the
    first solve begin at a clone of the experts; ppo, expert_ppo: what all settings begin from, for
    tests.
    """

    world: World
    experiment: Experiment
    seeds: int = 3
    player: str = "regression"
    saturated: bool = False
    constraint: str = ""
    on: tuple[str, ...] = ()
    full_state: bool = False
    budget: float | None = None
    carry: Carry = "policy"
    stop_share: float = 0.0
    own: Mapping[str, Any] = field(default_factory=dict)
    drop_failed: bool = False
    settled: bool = False
    buffer: float | None = None
    cloned: bool = True
    ppo: PPOConfig = field(default_factory=lambda: PPOConfig(**ITERATION))
    expert_ppo: PPOConfig = field(default_factory=PPOConfig)

    @property
    def variant(self) -> str:
        """What tells this study from others of the experiment, as a name."""
        parts = ["settled"] * self.settled
        parts += [] if self.player == "regression" else [self.player]
        if self.player == "payoff":
            parts[-1] += f"-{self.expert_budget:g}"
        if self.constraint:
            parts.append(self.constraint if self.constraint.isalnum() else "class")
        parts += ["full-state"] * self.full_state + ["saturated"] * self.saturated
        parts += [] if self.carry == "policy" else [f"carry-{self.carry}"]
        parts += [f"stop-{self.stop_share:g}"] if self.stop_share else []
        parts += ["drop-failed"] * self.drop_failed + ["no-clone"] * (not self.cloned)
        parts += [] if self.buffer is None else [f"buffer-{self.buffer:g}"]
        parts += [f"{name.replace('_', '-')}-{value}" for name, value in self.own.items()]
        return "".join(f"-{part}" for part in parts)

    @property
    def name(self) -> str:
        return f"{self.experiment.name}-{SIMULATOR[self.world]}{self.variant}"

    @property
    def expert(self) -> Expert:
        return self.experiment.settled if self.settled else self.experiment.expert

    @property
    def expert_budget(self) -> float:
        return self.expert.delta if self.budget is None else self.budget

    @property
    def first_buffer(self) -> float:
        return self.experiment.buffer if self.buffer is None else self.buffer

    @property
    def initial(self) -> Literal["clone", "free"]:
        """Whom c_1 answers to: a free learner where a clone does too much like the experts for the
        class (a network), or where there is none."""
        return "free" if self.constraint or not self.cloned else "clone"

    def run(self, seed: int) -> Path:
        return Path("runs") / f"reproduce-{self.name}" / f"seed-{seed}"

    def demos(self, seed: int) -> Path:
        """Shared by all players and classes."""
        kind = "-settled" * self.settled + "-saturated" * self.saturated
        name = f"{self.experiment.name}-{SIMULATOR[self.world]}{kind}"
        return Path("runs") / "reproduce-demos" / f"{name}-seed-{seed}"


def reproduce(study: Study, out: Path, command: str, say: Say) -> None:
    """Play every seed, as far as that was not done."""
    refuse_other_results(study, out)
    out.mkdir(parents=True, exist_ok=True)
    for seed in range(study.seeds):
        say(f"{study.name}, seed {seed}")
        summary, seconds = one(study, seed, say)
        write_json(out / f"seed-{seed}.json", summary)
        icl_tables.note_time(out, seed, seconds)
        icl_tables.write(out, study.seeds, heading(study, command), study.run)
    icl_tables.write(out, study.seeds, heading(study, command), study.run)


def one(study: Study, seed: int, say: Say) -> tuple[dict[str, Any], float]:
    """One seed's summary and the seconds of its game, from where its run is."""
    run, config = study.run(seed), configuration(study, seed)
    if run.exists():
        found = control_config.read(run / "config.toml")
        parts = ("world", "game", "clone", "ppo", "network")
        refuse_other_settings(run, found, config, parts)
    if not (run / "summary.json").is_file():
        if not run.exists():
            control.create(run, config, demonstrations(study, seed, say))
        with control_progress() as progress:
            control.drive(run, progress)
        page.write(run)
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text())
    seconds = float(json.loads((run / "timing.json").read_text())["seconds"])
    return summary, seconds


def refuse_other_settings(run: Path, found: Any, wanted: Any, parts: Sequence[str]) -> None:
    """A run that was begun with other settings, in these parts of them, must not count as one of
    these."""
    for part in parts:
        different = in_words(asdict(getattr(found, part)), asdict(getattr(wanted, part)))
        if different:
            raise InvalidInput(
                f"{run} was begun with other settings ({different}); move it away to play again"
            )


def refuse_other_results(study: Study, out: Path) -> None:
    """A table must not mix seeds of different games."""
    for seed in range(study.seeds):
        path = out / f"seed-{seed}.json"
        if path.is_file():
            found = json.loads(path.read_text())["command"]
            if found != learn_command(study, seed):
                raise InvalidInput(
                    f"{path} is of another game ({found}); move {out} away or give another --out"
                )


def demonstrations(study: Study, seed: int, say: Say) -> Demonstrations:
    """The seed's demonstrations: made once, then read."""
    folder, experiment = study.demos(seed), study.experiment
    if not folder.exists():
        expert = study.expert
        policy = trained_expert(study.world, expert, seed, study.expert_ppo, say).run
        made = ExpertSettings(
            expert.delta,
            experiment.noise,
            keep_saturated=experiment.saturated if study.saturated else None,
            seed=seed,
        )
        rolled = roll_out(world_of(study), made, [read_weights(policy)], say)
        if not folder.exists():  # another study may have made the same ones meanwhile
            demos.save(rolled, folder)
    return demos.load(folder)


def world_of(study: Study) -> ControlWorld:
    """The world of the demonstrations; the truth is known here."""
    return ControlWorld(study.world, truth=study.expert.constraint)


def configuration(study: Study, seed: int) -> ControlConfig:
    e = study.experiment
    player: dict[str, Any] = {"player": study.player}
    if study.player == "payoff":
        player["expert_budget"] = study.expert_budget
    game = ControlGame(
        study.constraint or e.constraint,
        on=study.on,
        iterations=e.iterations,
        buffer=study.first_buffer,
        probe=False,
        initial=study.initial,
        stop_share=study.stop_share,
        drop_failed=study.drop_failed,
        **player,
    )
    world = replace(world_of(study), full_state=study.full_state)
    usual = ITERATION_ON.get(study.world, {})
    ppo = replace(study.ppo, env_steps=e.steps, initial_lam=e.initial_lam, **usual)
    if study.stop_share:
        ppo = replace(ppo, stop_window=STOP_WINDOW)
    checked = build("--ppo", dict(study.own), PPOConfig)
    ppo = replace(ppo, **{name: getattr(checked, name) for name in study.own})
    return ControlConfig(
        learn_command(study, seed),
        seed,
        world,
        ControlDemos(),
        game,
        CloneConfig(carry=study.carry) if study.cloned else CloneConfig(0, carry=study.carry),
        ppo,
    )


def learn_command(study: Study, seed: int) -> str:
    """The command that plays the same game."""
    e = study.experiment
    words = [
        f"ringfence learn --world {study.world} --demos {study.demos(seed)}",
        f'--class "{study.constraint or e.constraint}" --player {study.player}',
        f"--iterations {e.iterations} --buffer {study.first_buffer:g} --steps {e.steps} --no-probe",
        f'--truth "{study.expert.constraint}" --seed {seed}',
    ]
    if study.player == "payoff":
        words.append(f"--expert-budget {study.expert_budget:g}")
    if study.initial == "free":
        words.append("--initial free")
    if not study.cloned:
        words.append("--clone-steps 0")
    if study.on:
        words.append(f"--on {','.join(study.on)}")
    if study.carry != CloneConfig().carry:
        words.append(f"--carry {study.carry}")
    if e.initial_lam and "initial_lam" not in study.own:
        words.append(f"--ppo initial_lam={e.initial_lam}")
    if study.stop_share:
        words.append(f"--stop-share {study.stop_share:g}")
        words += [] if "stop_window" in study.own else [f"--ppo stop_window={STOP_WINDOW}"]
    words += ["--drop-failed"] * study.drop_failed
    words += [f"--ppo {setting}" for setting in in_command(study.own)]
    return " ".join(words + ["--full-state"] * study.full_state)


def heading(study: Study, command: str) -> icl_tables.Heading:
    e = study.experiment
    used = f"keep-saturated {e.saturated:g}" if study.saturated else "none"
    stops = (
        f"; it ends when it earns {study.stop_share:g} of the experts' reward within its limit, "
        f"or after {e.steps:,} steps"
        if study.stop_share
        else ""
    )
    dropped = "; failed episodes are no evidence" if study.drop_failed else ""
    rate = ", experts whose learning rate fell to 0 at last" if study.settled else ""
    own = f"; the solver's {', '.join(in_command(study.own))}" if study.own else ""
    buffer = "" if study.buffer is None else f"; a first buffer of {study.buffer:g} on the limit"
    budget = f" with a budget of {study.expert_budget:g}" if study.player == "payoff" else ""
    return icl_tables.Heading(
        title=f"{e.name.capitalize()} on the Ant ({SIMULATOR[study.world]})",
        command=command,
        truth=study.expert.constraint,
        constraint=study.constraint or e.constraint,
        player=f"{study.player}{budget}; {CARRIED[study.carry]}{stops}{dropped}{buffer}{own}",
        demonstrations=f"limit {study.expert.delta:g} per episode, action noise {e.noise:g}, "
        f"filter: {used}{rate}",
    )
