"""The driver of a run on a continuous world: plays the game with PPO and stores what happens.

As on finite worlds, learning and selection get tasks, demonstrations and players; the truth is
touched by `control_summary`, after the learning step, to add columns to the report.

    run/start/       the cloned policies that every solve begins from
        checkpoints/ of the solve that is under way
        ledger/      finished solves      episodes/  some of their episodes, for pictures
        policy/      of the selected iterate; policy/0, policy/1, .. where there are several tasks
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints import files as constraint_files
from ringfence.constraints.linear import LinearConstraint
from ringfence.demos.dataset import Demonstrations, content_hash
from ringfence.deploy import policies
from ringfence.disk import reading
from ringfence.errors import InvalidInput
from ringfence.game import Record, Rules, play, weigh
from ringfence.objects import (
    Behaviour,
    Constraint,
    J,
    Problem,
    Solution,
    Start,
    behaviour_of,
)
from ringfence.players.convex import Begun, ConstraintPlayer
from ringfence.runs import control_config as configs
from ringfence.runs import folder
from ringfence.runs.backends import constraint_folder
from ringfence.runs.control_config import ControlConfig, ControlGame
from ringfence.runs.control_player import (
    begin,
    make_interval,
    make_player,
    make_template,
    used_features,
)
from ringfence.runs.control_sides import Sides, make_sides, refuse_constant
from ringfence.runs.control_solver import ControlSolver
from ringfence.runs.control_summary import Reader, iteration_row, make_summary, nothing_to_learn
from ringfence.runs.control_world import make_truth, start_states, world_versions
from ringfence.runs.doubts import doubts
from ringfence.runs.files import read_json, remove_partials, write_file, write_folder, write_json
from ringfence.runs.folder import Event, OnEvent, only_driver, read_demos, teller
from ringfence.runs.train import Clock
from ringfence.selection import select
from ringfence.solvers import ppo_state
from ringfence.solvers.cloning import CloningConfig, clone, renormalised

#: The iteration number, in seed paths, of what happens before the game.
BEFORE = 0


def create(run: Path, config: ControlConfig, demos: Demonstrations) -> None:
    """A new run directory with its configuration and demonstrations: whole, or not at all."""
    folder.refuse_existing(run)
    config = replace(config, demos=configs.ControlDemos(content_hash=content_hash(demos)))
    check(config, demos)
    folder.create(run, configs.to_toml(config), demos)


def check(config: ControlConfig, demos: Demonstrations) -> None:
    """Refuse what can't work before anything is written."""
    make_rules(config.game)
    sides = make_sides(config, demos)
    features = sides.tasks[0].features
    make_truth(config.world, features)
    player = make_player(config, features, float(sides.tasks[0].horizon))
    if config.game.player == "payoff":
        player.update(sides.train, [sides.train])  # is there a constraint within the budget?
    if config.game.initial == "clone" and not config.clone.steps:
        raise InvalidInput('[game] initial = "clone" needs [clone] steps > 0; else use "free"')
    refuse_constant(sides, used_features(config.game, features))
    if config.ppo.start_share > 0:
        for task, d in zip(sides.tasks, sides.demos, strict=True):
            start_states(task, d)


def make_rules(game: ControlGame) -> Rules:
    if game.iterations < 1:
        raise InvalidInput(f"a game needs at least 1 iteration, got {game.iterations}")
    for name in ("buffer", "anneal", "stop_share", "resamples"):
        if not getattr(game, name) >= 0:
            raise InvalidInput(f"[game] {name} must be at least 0, got {getattr(game, name)}")
    return Rules(
        game.iterations,
        game.epsilon,
        game.method == "mt-icl",
        game.buffer,
        game.anneal,
        weighted=game.player == "weighted",
    )


def extend(run: Path, iterations: int) -> None:
    """Let a game be played on for more iterations; what it solved it need not solve again.

    It ends in the bytes of a game that was to have so many from the beginning.
    """
    config = configs.read(run / "config.toml")
    had = config.game.iterations
    done = run / "summary.json"
    if done.is_file() and read_json(done)["outcome"] != "constraint":
        raise InvalidInput(f"{run}: no constraint was needed, so there is no game to play on")
    if iterations <= had:
        raise InvalidInput(f"{run} has {had} iterations; to play on, --iterations must be more")
    command, count = re.subn(r"(--iterations) \d+", rf"\1 {iterations}", config.command)
    if not count and ".toml" not in command:  # a file has the number itself
        command += f" --iterations {iterations}"
    longer = replace(config, command=command, game=replace(config.game, iterations=iterations))
    with only_driver(run):
        done.unlink(missing_ok=True)
        write_file(run / "config.toml", configs.to_toml(longer).encode())


# Driving ---------------------------------------------------------------------------------------


def drive(run: Path, on_event: OnEvent) -> dict[str, Any]:
    """Play a created run to its end, from wherever it was; returns the summary."""
    config = configs.read(run / "config.toml")
    with only_driver(run):
        remove_partials(run)
        return _Drive(run, config, on_event).play()


class _Drive:
    """One session of a run."""

    def __init__(self, run: Path, config: ControlConfig, on_event: OnEvent) -> None:
        self.run, self.config, self.game = run, config, config.game
        self.tell, self.clock = teller(run, on_event), Clock(run / "timing.json")
        self.sides = make_sides(config, read_demos(run, config.demos.content_hash))
        self.features = self.sides.tasks[0].features
        self.template = make_template(config.game, self.features)
        self.reader = Reader(
            self.template, self.sides.train, make_truth(config.world, self.features)
        )
        self.names: dict[tuple[int, ...], str] = {}
        self.solver = make_control_solver(run, config, self.sides, self.on_record, self.on_solved)

    def on_record(self, problem: Problem, record: ppo_state.Record) -> None:
        i, k = problem.seed[1:3]
        self.tell({"event": "update", "i": i, "k": k, **asdict(record)})
        if record.update % self.config.ppo.checkpoint_every == 0:
            self.clock.write()

    def on_solved(self, problem: Problem, name: str, known: bool) -> None:
        self.names[problem.seed] = name
        self.clock.write()
        i, k = problem.seed[1:3]
        self.tell({"event": "solved", "i": i, "k": k, "task": problem.task.name, "known": known})

    def play(self) -> dict[str, Any]:
        sides, game, rules = self.sides, self.game, make_rules(self.game)
        steps = self.config.ppo.env_steps * len(sides.tasks)
        probing = game.probe or game.initial == "free"
        self.tell(
            {
                "event": "start",
                "tasks": len(sides.tasks),
                "iterations": rules.iterations,
                "steps": steps * (rules.iterations + probing),
                "each": self.config.ppo.env_steps,
                "failed": sum(sides.failed),
            }
        )
        starts = self.starts()
        free = self.free(starts) if probing else None
        player = make_player(self.config, self.features, float(sides.tasks[0].horizon))
        if free is not None and game.probe and self.shows_nothing(player, free):
            probe = self.probe(free)
            return self.finish(nothing_to_learn(self.config, self.task_names, self.used, probe))
        begun = begin(player, game, sides.train, self.first(starts, free))
        records, rows = [], []
        for record in play(
            sides.tasks,
            sides.train,
            self.solve_all,
            begun,
            rules,
            self.config.seed,
            lambda k, last: follow(self.config.clone.carry, starts[k], last),
        ):
            records.append(record)
            ledger = [self.names[(self.config.seed, record.i, k)] for k in range(len(starts))]
            rows.append(iteration_row(record, self.reader, ledger))
            self.tell({"event": "iteration", "total": rules.iterations, **_progress(rows[-1])})
        self.clock.write()
        return self.conclude(begun, records, rows, free)

    def conclude(
        self,
        player: Begun,
        records: list[Record],
        rows: list[dict[str, Any]],
        free: list[Solution] | None,
    ) -> dict[str, Any]:
        """Select, put an interval around it, and write the results."""
        # c_N alone judges, as the answer to the most learners: an early c_i, fitted to a clone's
        # walk, finds fault with learners that keep the truth as the experts do. Nothing was fitted
        # to the experts' rewards, so those of all demonstrations count.
        everyone = [behaviour_of([*d.train, *d.heldout]) for d in self.sides.demos]
        chosen = select(records, self.sides.heldout, judges=[records[-1].c], experts=everyone)
        weighted = make_rules(self.game).weighted
        before = records[: chosen.i - 1]
        history = [weigh(r.solutions) if weighted else r.shown for r in before]
        interval = make_interval(
            player,
            self.template,
            [d.train for d in self.sides.demos],
            history,
            self.game.resamples,
            self.config.seed,
        )
        c = records[chosen.i - 1].c
        self.save(self.run / "constraint", c, chosen.i, interval)
        self.save_policies(records[chosen.i - 1])
        self.tell({"event": "selected", "i": chosen.i, "description": c.describe()})
        probe = None if free is None else self.probe(free)
        summary = make_summary(
            self.config,
            self.task_names,
            self.used,
            self.reader,
            self.sides.heldout,
            rows,
            chosen,
            interval,
            probe,
        )
        shown = [t for d in self.sides.demos for t in d.train]
        summary["doubts"] = doubts(rows[chosen.i - 1], chosen.rewarding, c, shown)
        return self.finish(summary)

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        summary["failed_demonstrations"] = (
            list(self.sides.failed) if self.game.drop_failed else None
        )
        write_json(self.run / "summary.json", summary)
        return summary

    @property
    def used(self) -> list[str]:
        return used_features(self.game, self.features)

    @property
    def task_names(self) -> list[str]:
        return [task.name for task in self.sides.tasks]

    def starts(self) -> list[Start | None]:
        """The cloned policies, one per task: made once, then read."""
        if not self.config.clone.steps:
            return [None] * len(self.sides.tasks)
        place = self.run / "start"
        if not place.is_dir():
            self.tell({"event": "cloning"})
            made = {
                f"{k}.safetensors": safetensors.numpy.save(
                    {n: np.asarray(a, order="C") for n, a in sorted(self.clone(k).items())}
                )
                for k in range(len(self.sides.tasks))
            }
            write_folder(place, made)
        tasks = range(len(self.sides.tasks))
        with reading(place):
            return [safetensors.numpy.load_file(place / f"{k}.safetensors") for k in tasks]

    def clone(self, k: int) -> Start:
        c, hidden = self.config.clone, self.config.ppo.hidden
        settings = CloningConfig(c.steps, c.batch, c.learning_rate, hidden, c.log_std)
        demos, task = self.sides.demos[k].train, self.sides.tasks[k]
        return clone(demos, task, (self.config.seed, BEFORE, k), settings)

    def free(self, starts: list[Start | None]) -> list[Solution]:
        """Learners without a constraint, and so without a multiplier; they show how much can be
        earned, so none stops at what is enough in the game."""
        none = LinearConstraint(self.features, np.zeros(len(self.features)), 0.0)
        alone = replace(self.config.ppo, initial_lam=0.0, stop_reward=None)
        solver = replace(self.solver, ppo=alone, stop_reward={})
        return solver(
            [
                Problem(task, none, 0.0, start, (self.config.seed, BEFORE, k))
                for k, (task, start) in enumerate(zip(self.sides.tasks, starts, strict=True))
            ]
        )

    def shows_nothing(self, player: ConstraintPlayer, free: list[Solution]) -> bool:
        """Do the unconstrained learners neither earn more than the demonstrators nor do otherwise?

        One that earns less may only have learned too little. So the class answers to them, too:
        by its answer none may cost more than the costliest demonstration of its task.
        """
        learners = [s.shown for s in free]
        c = player.update(self.sides.train, [learners])
        for pi, pi_E, demos in zip(learners, self.sides.train, self.sides.demos, strict=True):
            costliest = max(float(c.cost(t.features).sum()) for t in demos.train)
            if pi.reward > pi_E.reward or J(pi, c) > costliest:
                return False
        return True

    def probe(self, free: list[Solution]) -> dict[str, Any]:
        none = LinearConstraint(self.features, np.zeros(len(self.features)), 0.0)
        return {
            **self.reader.figures("learner", none, [s.behaviour for s in free]),
            **self.reader.figures("expert", none, self.sides.train),
            "env_steps": sum(s.env_steps for s in free),
            "ledger": [self.names[(self.config.seed, BEFORE, k)] for k in range(len(free))],
        }

    def first(self, starts: list[Start | None], free: list[Solution] | None) -> list[Behaviour]:
        """The learners that c_1 answers to."""
        if self.game.initial == "free":
            assert free is not None
            return [s.shown for s in free]
        found = []
        for k, (task, start) in enumerate(zip(self.sides.tasks, starts, strict=True)):
            assert start is not None
            found.append(self.solver.rollout(task, start, (self.config.seed, BEFORE, k)).shown)
        return found

    def solve_all(self, problems: Sequence[Problem]) -> list[Solution]:
        i, c = problems[0].seed[1], problems[0].constraint
        self.save(self.run / constraint_folder(i), c, i, None)
        return self.solver(problems)

    def save(self, place: Path, c: Constraint, i: int, interval: dict[str, Any] | None) -> None:
        """Store c_i with the limit that the training demonstrations have under it."""
        provenance = {
            "iteration": i,
            "method": self.game.method,
            "player": self.game.player,
            "class": self.game.constraint,
            "seed": self.config.seed,
            "demonstrations_sha256": self.config.demos.content_hash,
            "versions": world_versions(self.config.world),
        }
        delta = max(J(pi_E, c) for pi_E in self.sides.train)
        pairs = None if interval is None else interval["parameters"]
        write_folder(place, constraint_files.to_bytes(c, delta, provenance, pairs))

    def save_policies(self, record: Record) -> None:
        """The selected iterate's policies: in policy/, where there are several in policy/0, .."""
        tasks, place = self.sides.tasks, self.run / "policy"
        about = {
            "world": self.config.world.name,
            "constraint": record.c.describe(),
            "iteration": record.i,
            "seed": self.config.seed,
            "ppo": asdict(self.config.ppo),
        }
        for k, (task, pi, delta) in enumerate(
            zip(tasks, record.solutions, record.deltas, strict=True)
        ):
            files = policies.to_bytes(pi.policy, task, {**about, "delta": delta})
            write_folder(place / str(k) if len(tasks) > 1 else place, files)


def follow(carry: str, cloned: Start | None, last: Solution | None) -> Start | None:
    """Where a solve begins: at the clone, and with what it takes over from the last solve."""
    if last is None or carry == "nothing":
        return cloned
    if carry == "policy":
        return last.policy
    critics = {n: a for n, a in last.policy.items() if n.startswith(("critic/", "norm/"))}
    if cloned is None:
        return critics
    return {**renormalised(cloned, critics["norm/mean"], critics["norm/std"]), **critics}


def make_control_solver(
    run: Path, config: ControlConfig, sides: Sides, on_record: Any, on_solved: Any
) -> ControlSolver:
    share, pairs = config.game.stop_share, list(zip(sides.tasks, sides.demos, strict=True))
    experts = zip(sides.tasks, sides.train, strict=True)
    # A share of a negative reward would ask for more than the experts earn.
    rewards = {t.name: pi.reward - (1 - share) * abs(pi.reward) for t, pi in experts}
    return ControlSolver(
        run,
        config.world,
        config.ppo,
        rewards if share else {},
        {t.name: start_states(t, d) for t, d in pairs} if config.ppo.start_share else {},
        on_record,
        on_solved,
        config.game.drop_failed,
    )


def _progress(row: dict[str, Any]) -> Event:
    """What a person wants to see of an iteration while it runs."""
    columns = (
        *("i", "delta_mean", "constraint_error", "expert_reward_mean"),
        *(f"learner_{name}_mean" for name in ("reward", "cost", "true_raw", "true_cost")),
    )
    return {**{name: row[name] for name in columns}, "constraint": row["constraint"]}
