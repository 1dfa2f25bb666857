"""The driver of a run, for every world: plays the game, stores what happens, and adds what only it
may know.

    check -> open -> game.play (solves through the ledger) -> a row per record -> select
          -> summary.json -> analyses -> summary.json with them

Learning and selection get tasks, demonstrations and players. The world's truth is touched in one
way, through `runs/summary.py`, after the learning step, to add columns to the report.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from ringfence import consent
from ringfence.analysis import evidence as evidences
from ringfence.analysis import theory
from ringfence.analysis.budgets import curve
from ringfence.analysis.choices import choices
from ringfence.analysis.doubts import doubts, doubts_of_probe
from ringfence.analysis.evidence import document as evidence_json
from ringfence.analysis.intervals import parameter_interval
from ringfence.analysis.played import Played
from ringfence.constraints import constraint_files
from ringfence.constraints.family import Family, make_family
from ringfence.demos.dataset import content_hash
from ringfence.disk import (
    parse_toml,
    read_json,
    remove_partials,
    sealed_toml,
    write_document,
    write_file,
    write_folder,
)
from ringfence.errors import InvalidInput
from ringfence.game import Record, Rules, play
from ringfence.objects import Constraint, Demonstrations, J, NotHere, Problem, Solution
from ringfence.players.player import ConstraintPlayer, Ground
from ringfence.runs import config as configs
from ringfence.runs import folder
from ringfence.runs.backend import Backend, Role, Solves, make_backend
from ringfence.runs.class_checks import warnings
from ringfence.runs.config import Config, make_player, make_solver, make_world
from ringfence.runs.demonstrated import (
    Demonstrated,
    evidence_groups,
    match,
    refuse_constant,
    usual_moves,
)
from ringfence.runs.folder import (
    Clock,
    Event,
    OnEvent,
    only_driver,
    read_demos,
    tell_damaged,
    teller,
)
from ringfence.runs.opening import (
    Opened,
    check_opening,
    no_constraint,
    open_game,
    shared_policy,
)
from ringfence.runs.settling import settled
from ringfence.runs.summary import (
    NOT_YET,
    Reader,
    heading,
    heldout_columns,
    nothing_to_learn,
    selection_columns,
    truth_of,
    versions,
    with_analyses,
)
from ringfence.runs.together import solve_together
from ringfence.runs.witnessing import met_cells, witnessed
from ringfence.selection import Selection, select
from ringfence.solvers.solver import Solver, require_posed
from ringfence.worlds.continuous import demonstrated_states
from ringfence.worlds.world import World

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pieces:
    """The objects that a configuration and demonstrations amount to."""

    world: World
    shown: Demonstrated
    family: Family
    player: ConstraintPlayer
    solver: Solver
    rules: Rules


def assemble(config: Config, demos: Demonstrations, world: World | None = None) -> Pieces:
    """Refuses, in words, what can't be played."""
    world = world or make_world(config.world)
    shown = match(config, world, demos)
    cells, game = world.cells, config.game
    points = getattr(world.tasks[0], "points", None)
    family = make_family(
        game.constraint,
        game.on,
        world.features,
        None if cells is None or cells.path is not None else cells.shape,
        None if points is None else points[0],
        np.concatenate([pi.features for pi in shown.train]),
        game.raw_in == "range",
    )
    ground = Ground(
        family, episode_length(shown), shown.train, game.method == "mt-icl", game.iterations,
        config.seed, usual_moves(shown.demos),
    )  # fmt: skip
    solver = make_solver(config.solver)
    check_opening(config, solver.learns)
    return Pieces(world, shown, family, make_player(config.player, ground), solver, rules(config))


def episode_length(shown: Demonstrated) -> float:
    """T, in which payoffs are measured; of discounted tasks 1 / (1 - discount)."""
    task = shown.tasks[0]
    if task.horizon is not None:
        return float(task.horizon)
    return 1.0 / (1.0 - float(task.mdp.discount))  # type: ignore[attr-defined]


def rules(config: Config) -> Rules:
    game = config.game
    return Rules(
        game.iterations,
        game.epsilon,
        game.method == "mt-icl",
        game.buffer,
        game.anneal,
        weighted=getattr(config.player, "weighted", False),
        budget=getattr(config.player, "expert_budget", 0.0),
    )


def create(run: Path, config: Config, demos: Demonstrations, world: World | None = None) -> None:
    """A new run directory with its configuration and demonstrations: whole, or not at all.

    world: where it is an object that the configuration can't describe.
    """
    folder.refuse_existing(run)
    where = configs.Demos(
        content_hash=content_hash(demos),
        experts=config.demos.experts,
        drop_failed=config.demos.drop_failed,
    )
    config = replace(config, demos=where)
    check(config, demos, world)
    text = configs.to_toml(config)
    consent.grant(parse_toml(text))
    folder.create(run, sealed_toml(text), demos)


def check(config: Config, demos: Demonstrations, world: World | None = None) -> Pieces:
    """Refuse what can't work before anything is written."""
    pieces = assemble(config, demos, world)
    truth_of(config.world, pieces.world)
    if pieces.family.convex is None:
        refuse_constant(pieces.shown, pieces.family.used)
    if config.player.kind == "payoff":  # is there a constraint within the budget?
        pieces.player.update(pieces.shown.train, [pieces.shown.train])
    states, none = start_states(config, pieces.shown), no_constraint(pieces.shown)
    for task in pieces.shown.tasks:
        posed = Problem(task, none, 0.0, None, (config.seed,), states=states.get(task.name))
        require_posed(pieces.solver, posed)
    return pieces


def start_states(config: Config, shown: Demonstrated) -> dict[str, Any]:
    """Demonstrated states where training episodes may begin, by task, if any shall."""
    if not getattr(config.solver, "start_share", 0.0):
        return {}
    pairs = zip(shown.tasks, shown.demos, strict=True)
    return {t.name: demonstrated_states(t, d.train) for t, d in pairs}  # type: ignore[arg-type]


def stop_rewards(config: Config, shown: Demonstrated) -> dict[str, float]:
    """What a training within its limit may stop at, by task, if it may."""
    share = config.game.stop_share
    if not share:
        return {}
    pairs = zip(shown.tasks, shown.train, strict=True)
    # A share of a negative reward would ask for more than the experts earn.
    return {t.name: pi.reward - (1 - share) * abs(pi.reward) for t, pi in pairs}


def extend(run: Path, iterations: int) -> None:
    """Let a game be played on for more iterations; what it solved it need not solve again.

    It ends in the bytes of a game that was to have so many from the beginning.
    """
    config, done = configs.read(run / "config.toml"), run / "summary.json"
    had = config.game.iterations
    make_world(config.world)  # refuses one that nothing can make again
    if done.is_file() and read_json(done)["outcome"] != "constraint":
        raise InvalidInput(f"{run}: no constraint was needed, so there is no game to play on")
    if iterations <= had:
        raise InvalidInput(f"{run} has {had} iterations; to play on, --iterations must be more")
    if config.player.kind == "ftrl":
        raise InvalidInput(
            f"{run}: the step size of ftrl is that of {had} iterations, so a longer game is "
            f"another one; learn again with --iterations {iterations}"
        )
    command, count = re.subn(r"(--iterations) \d+", rf"\1 {iterations}", config.command)
    if not count:
        command += f" --iterations {iterations}"
    longer = replace(config, command=command, game=replace(config.game, iterations=iterations))
    with only_driver(run):
        done.unlink(missing_ok=True)
        write_file(run / "config.toml", sealed_toml(configs.to_toml(longer)))


def drive(
    run: Path,
    workers: int | Backend = 1,
    on_event: OnEvent = folder.quiet,
    world: World | None = None,
) -> dict[str, Any]:
    """Play a created run to its end, from wherever it was; returns the summary.

    workers: how many processes of this machine, or an open engine (`runs/engines.py`).
    """
    config = configs.read(run / "config.toml")
    with only_driver(run):
        remove_partials(run)
        return _Drive(run, config, workers, on_event, world).play()


def replay(run: Path, world: World | None = None) -> Played:
    """A finished run's game once more, out of its ledger: what analyses look at.

    It is played in a copy, so that nothing of the run changes.
    """
    if not (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: not a finished run; 'ringfence resume {run}'")
    with TemporaryDirectory(prefix="ringfence-") as place:
        copy = Path(place) / "run"
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns(".lock"))
        drive = _Drive(copy, configs.read(copy / "config.toml"), 1, folder.quiet, world)
        found = drive.played_to(drive.played)
    if not isinstance(found, Played):
        raise InvalidInput(f"{run}: no constraint was needed, so there is nothing to analyse")
    return found


class _Drive:
    """One session of a run."""

    def __init__(
        self,
        run: Path,
        config: Config,
        workers: int | Backend,
        on_event: OnEvent,
        world: World | None,
    ) -> None:
        self.run, self.config = run, config
        self.tell = teller(run, on_event)
        self.clock = Clock(run / "timing.json", self.tell)
        demos = read_demos(run, config.demos.content_hash)
        self.pieces = pieces = assemble(config, demos, world)
        self.warnings = partial(warnings, config, pieces.family, pieces.shown, demos)
        self.shown, self.world = pieces.shown, pieces.world
        self.reader = Reader(
            self.world, pieces.family, self.shown.train, truth_of(config.world, self.world)
        )
        self.stop, self.states = stop_rewards(config, self.shown), start_states(config, self.shown)
        self.names: dict[tuple[int, ...], str] = {}
        self.first_seen: dict[str, int] = {}
        self.doubts: list[str] = []  # that analyses have
        self.settled_from: int | None = None
        backend = make_backend(workers, pieces.solver)
        self.solves = Solves(
            run, config.world, config.solver, pieces.solver, backend, self.on_record,
            self.on_solved, partial(tell_damaged, self.tell), config.engine.cores,
        )  # fmt: skip

    def play(self) -> dict[str, Any]:
        return self.played_to(self.conclude)

    def played_to(self, end: Callable[..., T]) -> dict[str, Any] | T:
        """The game, and what `end` makes of it; where none is needed, the summary that says so."""
        try:
            return self._play(end)
        finally:
            self.solves.backend.close()

    def _play(self, end: Callable[..., T]) -> dict[str, Any] | T:
        config, shown, pieces = self.config, self.shown, self.pieces
        self.tell(self.start_event())
        opened = open_game(
            self.run, config, shown, pieces.player, self.solves, self.states, self.tell
        )
        head = heading(config, self.world, self.reader, shown.names)
        if not opened.needed:
            assert opened.free is not None
            found = [*self.warnings(), *doubts_of_probe(opened.free, shown.train)]
            return self.finish(nothing_to_learn(head, self.probe(opened.free), found))
        records: list[Record] = []
        rows: list[dict[str, Any]] = []
        for record in play(
            shown.tasks,
            shown.train,
            self.solve_all,
            opened.player,
            replace(pieces.rules, iterations=pieces.rules.iterations + config.game.extra),
            config.seed,
            opened.begin,
        ):
            records.append(record)
            rows.append(self.row(records))
            self.clock.end_iteration()
            total = max(pieces.rules.iterations, record.i)
            self.tell({"event": "iteration", "total": total, **progress(rows[-1])})
            if record.i >= pieces.rules.iterations:
                if self.explained(opened, records):
                    break
                if record.i > pieces.rules.iterations and repeats(*records[-2:]):
                    self.doubts.append(REPEATS.format(i=record.i))
                    break
        if last := self.settle(opened, records):
            records.append(last)
            rows.append(self.row(records))
            self.clock.end_iteration()
            told = {"event": "iteration", "total": last.i, "under": self.settled_from}
            self.tell({**told, **progress(rows[-1])})
        self.clock.write()
        return end(head, opened, records, rows)

    def settle(self, opened: Opened, records: Sequence[Record]) -> Record | None:
        """One more iteration, where learners break the limit of the constraint that is handed
        back (runs/settling.py)."""
        if not (hasattr(self.pieces.solver, "settle") and self.pieces.rules.multi_task):
            return None
        chosen = records[self.select(opened, records).i - 1]
        i, seed, shown = len(records) + 1, self.config.seed, self.shown
        for k in range(len(shown.tasks)):  # of who keeps its limit nothing changes
            self.names[(seed, i, k)] = self.names[(seed, chosen.i, k)]
        solve = partial(self.solve_all, role="settle")
        found = settled(
            chosen, i, shown.tasks, shown.train, self.pieces.rules, seed, solve, self.shares
        )
        self.settled_from = chosen.i if found else None
        return found

    def start_event(self) -> Event:
        steps, opening = getattr(self.config.solver, "env_steps", 0), self.config.opening
        solves = self.pieces.rules.iterations + (opening.probes or opening.first == "free")
        return {
            "event": "start",
            "tasks": len(self.shown.tasks),
            "iterations": self.pieces.rules.iterations,
            "steps": steps * (1 if self.shares else len(self.shown.tasks)) * solves,
            "each": steps,
            "failed": sum(self.shown.failed),
        }

    def on_record(self, problem: Problem, record: dict[str, Any]) -> None:
        i, k, *beyond = problem.seed[1:]
        if beyond:  # no learner of the game
            return
        self.tell({"event": "update", "i": i, "k": k, **record})

    def on_solved(self, problem: Problem, name: str, known: bool) -> None:
        self.names[problem.seed] = name
        i, k, *beyond = problem.seed[1:]
        if beyond:
            return
        first = self.first_seen.setdefault(name, i)
        self.clock.write()
        event = {"event": "solved", "i": i, "k": k, "task": problem.task.name, "known": known}
        self.tell({**event, "solved_in": first})

    def solve_all(self, problems: Sequence[Problem], role: Role = "solve") -> list[Solution]:
        i, c = problems[0].seed[1], problems[0].constraint
        self.save(self.run / constraint_folder(i), c, i, None)
        whole = [
            replace(
                p,
                stop_reward=self.stop.get(p.task.name) if role == "solve" else None,
                states=self.states.get(p.task.name),
                drop_failed=self.config.demos.drop_failed,
            )
            for p in problems
        ]
        together = partial(solve_together, self.solves)
        return together(whole, role) if self.shares else self.solves(whole, role)

    @property
    def shares(self) -> bool:
        """Is there one policy for several tasks?"""
        return shared_policy(self.config, self.shown)

    def row(self, records: Sequence[Record]) -> dict[str, Any]:
        record, K = records[-1], len(self.shown.tasks)
        ledger = [self.names[(self.config.seed, record.i, k)] for k in range(K)]
        first = [self.first_seen[name] for name in ledger]
        reused = [i if i < record.i else None for i in first]
        F_c, bound = getattr(self.pieces.player, "F_c", None), None
        if F_c is not None:
            T = episode_length(self.shown)
            bound = float(theory.regret(F_c, T, self.shown.train, records).bound[-1])
        return self.reader.row(record, self.shown.names, bound, ledger, reused)

    def select(self, opened: Opened, records: Sequence[Record]) -> Selection:
        free = [s.behaviour for s in opened.free or ()]
        found = select(records, self.shown.train, self.shown.heldout, free)
        # The same constraint, with the learners that were trained for longest under it.
        return replace(found, i=records[-1].i) if found.i == self.settled_from else found

    def explained(self, opened: Opened, records: Sequence[Record]) -> bool:
        """Is no known conflict left, so that more iterations have nothing to explain?"""
        return min(self.select(opened, records).unexplained) == 0

    def played(
        self,
        head: dict[str, Any],
        opened: Opened,
        records: list[Record],
        rows: list[dict[str, Any]],
    ) -> Played:
        """What analyses look at."""
        shown = self.shown
        return Played(
            self.pieces.family, opened.player, self.pieces.rules.weighted, shown.demos, shown.train,
            shown.heldout, records, rows, self.select(opened, records),
            evidence_groups(shown, self.world), self.world.cells, self.config.analysis.resamples,
            self.config.seed,
        )  # fmt: skip

    def conclude(
        self,
        head: dict[str, Any],
        opened: Opened,
        records: list[Record],
        rows: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """Select, store what is handed back, analyse."""
        played = self.played(head, opened, records, rows)
        shown, chosen = self.shown, played.chosen
        self.save(self.run / "constraint", played.c, chosen.i, None)
        self.save_policies(records[chosen.i - 1])
        self.tell({"event": "selected", "i": chosen.i, "description": played.c.describe()})
        probe = None if opened.free is None else self.probe(opened.free)
        summary = {
            **head,
            "unconstrained": probe,
            "iterations": rows,
            "selected": chosen.i,
            "constraint": rows[chosen.i - 1]["constraint"],
            "selection": selection_columns(chosen),
            "heldout": heldout_columns(self.reader, shown.heldout),
            "choices": choices(rows, chosen),
            "doubts": [*doubts(played), *self.warnings()],
            "env_steps": sum(row["env_steps"] for row in rows) + (probe or {}).get("env_steps", 0),
        }
        analyses: dict[str, Callable[[Played], Any]] = {
            "interval": parameter_interval,
            "budget_curve": curve,
            "evidence": lambda played: self.evidence(played, opened),
        }
        if not (self.run / "summary.json").is_file():
            # The answer is on disk before anything that may take long.
            self.finish(with_analyses(summary, dict.fromkeys(analyses, NOT_YET)))
        found: dict[str, Any] = {}
        for name, analysis in analyses.items():
            self.tell({"event": "analysis", "name": name})
            found[name] = analysis(played)
        summary = with_analyses(summary, found)
        more = off_the_curve(rows[chosen.i - 1], summary)
        summary["doubts"] = [*summary["doubts"], *self.doubts, *more]
        self.save(self.run / "constraint", played.c, chosen.i, summary["constraint"]["interval"])
        return self.finish(summary)

    def evidence(self, played: Played, opened: Opened) -> dict[str, int] | NotHere:
        """Labels with their reasons into evidence.json; their counts."""
        if played.cells is None:
            return self.sampled_evidence(played, opened)
        if isinstance(played.groups, NotHere):
            return played.groups
        size = f"{prod(played.cells.shape)} cells, {len(played.groups)} groups of demonstrations"
        self.tell({"event": "analysis", "name": "evidence", "of": size})
        found = evidences.label(played.groups)
        self.tell({"event": "analysis", "name": "evidence", "of": "what to demonstrate next"})
        document = evidence_json.document(found, played.groups, played.c, played.cells)
        write_document(self.run / "evidence.json", document)
        return found.counts()

    def sampled_evidence(self, played: Played, opened: Opened) -> dict[str, int] | NotHere:
        """The same where cells are of continuous features."""
        shown, records = self.shown, played.records
        found = witnessed(
            self.config, self.pieces.family, shown, records, opened.free or (), self.solves,
            self.tell,
        )  # fmt: skip
        if isinstance(found, NotHere):
            return found
        self.doubts += found.doubts
        starts = np.array([t.features[0] for d in shown.demos for _, t in d.labelled])
        met = met_cells(found.grid, shown, records)
        told = set(self.pieces.family.used) <= {f.name for f in found.over}
        document = evidence_json.sampled_document(
            found, played.c if told else None, found.index(starts), met
        )
        write_document(self.run / "evidence.json", document)
        return found.counts()

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        dropped = list(self.shown.failed) if self.config.demos.drop_failed else None
        summary = {**summary, "failed_demonstrations": dropped}
        write_document(self.run / "summary.json", summary)
        return summary

    def probe(self, free: Sequence[Solution]) -> dict[str, Any]:
        """What learners without a constraint do, beside the experts."""
        none = no_constraint(self.shown)
        return {
            **self.reader.figures("learner", none, [s.behaviour for s in free]),
            **self.reader.figures("expert", none, self.shown.train),
            "env_steps": sum(s.env_steps for s in free),
            "ledger": [self.names[(self.config.seed, 0, k)] for k in range(len(free))],
        }

    def save(self, place: Path, c: Constraint, i: int, interval: dict[str, Any] | None) -> None:
        """Store c_i with the limit that the training demonstrations have under it."""
        config = self.config
        provenance = {
            "iteration": i,
            "method": config.game.method,
            "player": config.player.kind,
            "class": config.game.constraint,
            "seed": config.seed,
            "demonstrations_sha256": config.demos.content_hash,
            "experts": config.demos.experts,
            "versions": versions(self.world),
        }
        delta = max(J(pi_E, c) for pi_E in self.shown.train)
        pairs = None if interval is None else interval["parameters"]
        write_folder(place, constraint_files.to_bytes(c, delta, provenance, pairs))

    def save_policies(self, record: Record) -> None:
        """The selected iterate's policies: in policy/, where there are several in policy/0, .."""
        if not self.pieces.solver.learns:
            return
        from ringfence.deploy import policies

        tasks, place = self.shown.tasks, self.run / "policy"
        about = {
            "world": self.world.name,
            "constraint": record.c.describe(),
            "iteration": record.i,
            "seed": self.config.seed,
            "solver": asdict(self.config.solver),
        }
        for k, (task, pi, delta) in enumerate(
            zip(tasks, record.solutions, record.deltas, strict=True)
        ):
            acting: Any = task
            files = policies.to_bytes(pi.policy, acting, {**about, "delta": delta})
            write_folder(place / str(k) if len(tasks) > 1 else place, files)


#: A doubt: no extra iterations after one that changed nothing.
REPEATS = (
    "iteration {i} was the one before once more, with the same learners under the same constraint, "
    "so the game ended there, with learners that stay unexplained: more iterations are no remedy. "
    "What helps: more demonstrations, or another class of constraints (--class)"
)


def repeats(before: Record, last: Record) -> bool:
    """Was an iteration the one before once more, and does it lead to itself again?"""
    constraints = {constraint_bytes(c) for c in (before.c, last.c, last.c_next)}
    learners = zip(before.learners, last.learners, strict=True)
    return len(constraints) == 1 and all(
        np.array_equal(a.features, b.features) and np.array_equal(a.visits, b.visits)
        for a, b in learners
    )


def constraint_bytes(c: Constraint) -> bytes:
    return b"".join(constraint_files.to_bytes(c, 0.0, {}).values())


def off_the_curve(row: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    """A doubt, where a learned limit lies outside its intervals for every budget."""
    curve = (summary["constraint"]["interval"] or {}).get("curve")
    values = list((row["constraint"]["parameters"] or {}).values())
    if not curve or len(values) != 1 or any(at["low"] <= values[0] <= at["high"] for at in curve):
        return []
    low, high = min(at["low"] for at in curve), max(at["high"] for at in curve)
    if low <= values[0] <= high:
        return []
    return [
        f"the limit that was learned, {values[0]:.4g}, lies outside what the demonstrations alone "
        f"say for any of some budgets ({low:.4g} to {high:.4g}): it lies between learners and "
        "demonstrators. If you know the demonstrators' budget, state it: --player payoff "
        "--expert-budget"
    ]


def constraint_folder(i: int) -> str:
    """Where c_i of the run lies; c_1 is constraints/c_000."""
    return f"constraints/c_{i - 1:03d}"


def progress(row: dict[str, Any]) -> Event:
    """What a person wants to see of an iteration while it runs."""
    columns = (
        *("i", "delta_mean", "constraint_error", "expert_reward_mean"),
        *(f"learner_{name}_mean" for name in ("reward", "cost", "true_raw", "true_cost")),
    )
    return {**{name: row[name] for name in columns}, "constraint": row["constraint"]}
