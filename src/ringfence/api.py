"""Ringfence from Python, on objects: what the command does is one call here, and files not needed.

    learned = ringfence.learn(world, demonstrations, "speed <= ?")
    learned.constraint, learned.policies, learned.evidence, learned.summary
    learned.save("runs/mine"), learned.report("page.html")

A world is one of ours (`ringfence.maze()`, `ringfence.table_world(..)`), a word of the command line
("maze", "gym:Pendulum-v1", a map's path), a file ("my.toml"), or functions that make Gymnasium
environments, by task name. Demonstrations are a folder, `Demonstrations`, or by task name arrays,
Minari datasets or files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ringfence.analysis import sufficiency
from ringfence.analysis.evidence import Evidence
from ringfence.analysis.evidence import document as evidence_json
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.constraints import saved as saved_constraints
from ringfence.constraints.saved import SavedConstraint
from ringfence.demos import dataset, logs
from ringfence.disk import read_json
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.given import another, as_demonstrations, describe, world_document
from ringfence.objects import Constraint, Demonstrations, Finding, NotHere
from ringfence.progress import shown
from ringfence.runs import backend, driver, folder, problem, solving, training
from ringfence.runs import check as checks
from ringfence.runs import config as configs
from ringfence.runs.config import Config, configure, make_world, merged
from ringfence.runs.engines import engine
from ringfence.worlds.continuous import is_continuous
from ringfence.worlds.world import World

Document = dict[str, Any]
OnEvent = folder.OnEvent
#: A world as a user gives it.
Worldly = Any
#: Demonstrations as a user gives them.
Shown = Any


@dataclass(frozen=True, eq=False)
class Learned:
    """What a game came to. constraint is None where none was needed (see summary["outcome"]).

    policies: of the selected iterate, by task, where solvers learn them; evidence: what the
    demonstrations determine, where that can be said; folder: the run.
    """

    summary: Document
    constraint: SavedConstraint | None
    evidence: Evidence | SampledEvidence | None
    folder: Path
    world: World | None = None
    _temporary: TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        found = "no constraint needed" if self.constraint is None else self.constraint.describe()
        return f"<Learned: {found}; run {self.folder}>"

    @property
    def policies(self) -> dict[str, Any]:
        """By task name: `action = policy.act(observation, info["cost_raw"])`."""
        from ringfence.deploy.policies import load_policy

        if not (self.folder / "policy").is_dir():
            return {}
        tasks = self.summary["tasks"]
        if len(tasks) == 1:
            return {tasks[0]: load_policy(self.folder)}
        return {task: load_policy(self.folder / "policy" / str(k)) for k, task in enumerate(tasks)}

    @property
    def doubts(self) -> list[str]:
        """What speaks against the outcome, in words."""
        return list(self.summary["doubts"])

    def save(self, place: str | Path) -> Path:
        """The whole run as a folder: to keep, to report, to transfer from."""
        folder.refuse_existing(Path(place))
        shutil.copytree(self.folder, place, ignore=shutil.ignore_patterns(".lock"))
        return Path(place)

    def report(self, path: str | Path | None = None) -> Path:
        """One self-contained page."""
        from ringfence.report import page

        return page.write(self.folder, None if path is None else Path(path))


@dataclass(frozen=True, eq=False)
class Solved:
    """What a single problem came to; policy: where one was learned."""

    summary: Document
    folder: Path
    _temporary: TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        under = self.summary["constraint"]["description"]
        return f"<Solved: {self.summary['task']} under {under}; folder {self.folder}>"

    @property
    def policy(self) -> Any:
        from ringfence.deploy.policies import load_policy

        return load_policy(self.folder)

    def save(self, place: str | Path) -> Path:
        shutil.copytree(self.folder, place, ignore=shutil.ignore_patterns(".lock"))
        return Path(place)


# The game ----------------------------------------------------------------------------------------


def learn(
    world: Worldly,
    demonstrations: Shown = None,
    constraint: str | None = None,
    *,
    features: Any = None,
    steps: int | None = None,
    seed: int | None = None,
    workers: int = 1,
    on: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "ringfence.learn",
    progress: bool | None = None,
    on_event: OnEvent | None = None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Learned:
    """The constraint that the demonstrators of several tasks share.

    constraint: the class to learn in: "table", "linear", "mlp" or an inequality with ? for what is
    learned ("speed <= ?"). features: of environments that are given as functions: names with units
    ("speed:m/s", keys of `info`), by column ({"x": 0}), or {"names": [..], "function": f}. steps:
    of an episode, where the environment doesn't say. settings: any entry of the configuration, by
    table: {"game": {"iterations": 5}, "solver": {"env_steps": 50_000}}. workers: processes of this
    machine; on: "ray", "ray://host:port" or a cluster's address. out: the run's folder; without it
    everything stays in a temporary one, and `Learned.save` keeps it. progress: say on stderr how
    far it is; by default on a terminal and in a notebook only. on_event: is told of every event.
    """
    asked = ask(world, demonstrations, constraint, features, steps, seed, settings, command)
    with shown(progress, on_event) as tell:
        return play(asked, workers, out, tell, on_finding, on)


def check(
    world: Worldly,
    demonstrations: Shown = None,
    constraint: str | None = None,
    *,
    features: Any = None,
    steps: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Finding, ...]:
    """All that can be said of a world and demonstrations before anything is trained."""
    asked = ask(
        world, demonstrations, constraint, features, steps, None, settings, "ringfence.check"
    )
    return asked.examine().findings


@dataclass(frozen=True, eq=False)
class Asked:
    """A game that is asked for. world: where no configuration can describe it; given: the
    demonstrations as they were given; base: from where its paths are seen."""

    config: Config
    world: World | None
    given: Shown
    base: Path

    def examine(self) -> checks.Examined:
        world = self.world or make_world(self.config.world)
        try:
            demos = as_demonstrations(self.given, world, self.config.demos.heldout)
        except InvalidInput as problem:
            return checks.Examined(None, (Finding("error", "demonstrations", str(problem)),))
        return checks.examine(self.config, self.base, demos, world)


def ask(
    world: Worldly,
    given: Shown,
    constraint: str | None,
    features: Any,
    steps: int | None,
    seed: int | None,
    settings: Mapping[str, Any] | None,
    command: str,
) -> Asked:
    """What a call or a command line means, as a configuration."""
    base, where = Path(), "configuration"
    made: World | None = None
    if isinstance(world, str | Path) and str(world).endswith(".toml"):
        path = Path(world)
        document, base, where = configs.read_user(path), path.parent, str(path)
    else:
        document, made = describe(world, features, steps)
    document = merged(document, settings or {})
    if constraint is not None:
        document = merged(document, {"game": {"constraint": constraint}})
    if seed is not None:
        document["seed"] = seed
    document["command"] = command
    if isinstance(given, str | Path):
        document = merged(document, {"demos": {"path": str(Path(given).absolute())}})
        given = None
    config = configure(document, where, made)
    if given is None and not mentions_demos(document):
        given = made_by_the_truth(made or make_world(config.world), config.seed)
    return Asked(config, made, given, base)


def mentions_demos(document: Mapping[str, Any]) -> bool:
    return bool({"path", "paths"} & set(document.get("demos", {})))


def made_by_the_truth(world: World, seed: int) -> Shown:
    """Demonstrations of the world's own experts, where making them takes seconds."""
    if world.experts == "trained":
        raise InvalidInput(
            f"no demonstrations: give --demos (from Python: demonstrations), a folder that "
            f"'ringfence demos make' made, or name logs in a TOML file ({world.name})"
        )
    return training.make_demonstrations(None, world, {"seed": seed}, None, Path())


def play(
    asked: Asked,
    workers: int = 1,
    out: str | Path | None = None,
    on_event: OnEvent = folder.quiet,
    on_finding: Callable[[Finding], None] = lambda finding: None,
    on: str | None = None,
) -> Learned:
    """Check, then play a game to its end."""
    if out is not None:
        folder.refuse_existing(Path(out))
    backend.require_workers(workers)
    if (workers > 1 or on) and asked.config.world.kind == "python":
        make_world(asked.config.world)  # says why it can't
    examined = asked.examine()
    for finding in examined.findings:
        on_finding(finding)
    if examined.demos is None:
        raise InvalidInput(examined.reason)
    temporary = None if out is not None else TemporaryDirectory(prefix="ringfence-")
    run = Path(temporary.name) / "run" if temporary is not None else Path(out or "")
    with engine(workers, on, asked.config.world, asked.config.solver) as who:
        driver.create(run, asked.config, examined.demos, asked.world)
        summary = driver.drive(run, who, on_event, asked.world)
    return read_learned(run, summary, asked.world, temporary)


def read_learned(
    run: Path,
    summary: Document | None = None,
    world: World | None = None,
    temporary: TemporaryDirectory[str] | None = None,
) -> Learned:
    """A finished run, as `learn` returns it."""
    if not (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: not a finished run; 'ringfence resume {run}'")
    summary = summary or read_json(run / "summary.json")
    found = run / "evidence.json"
    return Learned(
        summary,
        saved_constraints.load(run / "constraint") if summary["outcome"] == "constraint" else None,
        evidence_json.read(found) if found.is_file() else None,
        run,
        world,
        temporary,
    )


def plan(learned: Learned | str | Path, wanted: float = 0.05) -> Document:
    """How many demonstrations are enough for a spread of `wanted`, and of which task more help
    most; beside it how many tasks the paper's lemma asks for."""
    run, world = (
        (learned.folder, learned.world) if isinstance(learned, Learned) else (learned, None)
    )
    found = sufficiency.sufficiency(driver.replay(Path(run), world), wanted)
    if isinstance(found, NotHere):
        raise InvalidInput(f"{run}: {found.reason}")
    return found


def require_episodes(solver: Any, steps: int | None) -> None:
    """Refuse episodes that hardly end in a training: probably its own length was meant."""
    total = getattr(solver, "env_steps", 0)
    if steps and total and steps * solver.copies > total:
        raise InvalidInput(
            f"steps={steps} is an episode's length, and a training has {total} steps of "
            f"{solver.copies} copies; if the training's was meant: "
            f'solver={{"env_steps": {steps}}}'
        )


# Single problems ---------------------------------------------------------------------------------


def solve(
    world: Worldly,
    constraint: str | Path | Constraint | SavedConstraint = "none",
    limit: float | None = None,
    *,
    task: str = "",
    features: Any = None,
    steps: int | None = None,
    solver: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    policy: str | Path | None = None,
    starts: str | Path | None = None,
    command: str = "ringfence.solve",
    progress: bool | None = None,
    on_event: OnEvent | None = None,
    on_record: Callable[[Document], None] = folder.quiet,
) -> Solved:
    """Constrained RL for one task: the best reward whose cost is at most `limit` an episode.

    constraint: an inequality ("speed <= 0.75"), "none", "truth" (where the world knows one), a
    saved constraint or its folder. solver: its settings, with its kind where it isn't the world's.
    steps: of an episode, where the environment has no limit of its own (those of the training are
    solver={"env_steps": 150_000}, else a million). policy: a finished run whose policy is trained
    on; starts: demonstrations at whose states training episodes begin (MuJoCo's Ant). progress: as
    of `learn`.
    """
    document, made = world_document(world, features, steps)
    home = made or make_world(configs.tagged("world", "world", document["world"]))
    truth = document["world"].get("truth", "")
    learned = None
    if isinstance(constraint, str | Path):
        c, delta = problem.read_constraint(str(constraint), home, truth)
        if Path(str(constraint)).is_dir():
            learned = problem.saved_folder(Path(str(constraint)))
    else:
        saved = constraint if isinstance(constraint, SavedConstraint) else None
        c = saved.constraint if saved is not None else constraint
        delta = 0.0 if saved is None else saved.delta
        problem.require_fit(c, home, "constraint")
    if limit is None and learned is None and is_continuous(home.tasks[0]):
        delta = LIMIT
    kinds = home.defaults({}).get("solver", {}).get("kind", "soft")
    table = {"kind": kinds, **(document.get("solver", {})), **(solver or {})}
    asked = problem.Single(
        command,
        seed,
        configs.tagged("solve", "world", document["world"]),
        problem.TaskTable(task),
        problem.ProblemTable(delta if limit is None else limit, episodes=episodes or EPISODES),
        configs.tagged("solve", "solver", table),
    )
    start = None
    if policy is not None:
        from ringfence.deploy.policies import load_policy

        start = load_policy(policy).arrays
    states = None
    if starts is not None:
        from ringfence.worlds.continuous import demonstrated_states

        given = [t for d in dataset.load(Path(starts)).tasks for t in d.train]
        states = demonstrated_states(home.tasks[0], given)  # type: ignore[arg-type]
    require_counted(asked.solver, episodes)
    require_episodes(asked.solver, steps)
    with shown(progress, on_event, "training") as tell:
        return finish_single(
            asked, c, out, tell, on_record, made, start=start, states=states, learned=learned
        )


#: On an episode's cost on continuous worlds, and counted after a training, where nobody says
#: otherwise.
LIMIT, EPISODES = 20.0, 100


def require_counted(solver: Any, episodes: int | None) -> None:
    if episodes is not None and not configs.make_solver(solver).learns:
        own = ": --set solver.episodes" if hasattr(solver, "episodes") else "; leave it out"
        raise InvalidInput(
            f"--episodes are counted after a training; the solver {solver.kind!r} has none{own}"
        )


def finish_single(
    asked: problem.Single,
    c: Constraint,
    out: str | Path | None,
    on_event: OnEvent,
    on_record: Callable[[Document], None],
    world: World | None,
    **more: Any,
) -> Solved:
    temporary = None if out is not None else TemporaryDirectory(prefix="ringfence-")
    place = Path(temporary.name) / "solve" if temporary is not None else Path(out or "")
    solving.create(place, asked, c, world=world, **more)
    try:
        summary = solving.drive(place, on_event, on_record, world)
    except InfeasibleLimit:
        shutil.rmtree(place)  # to resume it would only say the same again
        raise
    return Solved(summary, place, temporary)


def transfer(
    learned: Learned | str | Path,
    task: Any = None,
    *,
    unknown: str | None = None,
    limit: float | None = None,
    clearance: float = 0.0,
    steps: int | None = None,
    solver: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    command: str = "ringfence.transfer",
    say: Callable[[str], None] = lambda text: None,
    progress: bool | None = None,
    on_event: OnEvent | None = None,
) -> Solved:
    """A task under a learned constraint.

    task: a new one: {"goal": (2, 7), "start": (9, 3)} on maps, a world's description of it
    elsewhere; a function that makes a Gymnasium environment, for which the world's features are
    read; "FILE.toml" or "FILE.toml:NAME"; or the name of one of the run's own, whose policy is
    trained on (None: its only one). unknown: "avoid" keeps to cells that demonstrations showed to
    be allowed, "allow" uses any not forbidden (None: avoid, where a world has cells of its own,
    which can be planned over). clearance: to be kept from the constraint. steps: of the training
    (0: the policy is only told of the clearance). progress: as of `learn`.
    """
    run = learned.folder if isinstance(learned, Learned) else Path(learned)
    made = learned.world if isinstance(learned, Learned) else None
    place = problem.saved_folder(run)
    saved = saved_constraints.load(place)
    start = None
    if isinstance(task, str) and ".toml" in task:
        settings, solver_table, table = read_task(task)
    else:
        config = configs.read(run / "config.toml")
        settings, own = config.world, asdict(config.solver)
        own |= {"start_share": 0.0} if "start_share" in own else {}
        if callable(task):
            settings, made = another(made or make_world(settings), task)
            table, solver_table = problem.TaskTable(), own
        elif isinstance(task, Mapping):
            table = problem.TaskTable(spec=_plain(task))
            solver_table = own
        else:
            name, policy = problem.selected_policy(run, task)
            table = problem.TaskTable(name)
            start = policy if configs.make_solver(config.solver).learns else None
            solver_table = own
    if steps:
        solver_table = {**solver_table, "env_steps": steps}
    if solver and solver.get("kind", solver_table["kind"]) != solver_table["kind"]:
        solver_table = {}
    solver_table = merged(solver_table, solver or {})
    home = made or make_world(settings)
    evidence = run / "evidence.json"
    labels = evidence_json.read(evidence) if evidence.is_file() else None
    known = isinstance(labels, Evidence) and home.cells is not None
    covered = None
    if known and isinstance(labels, Evidence):
        covered = problem.is_covered(home, table, labels)
        say(coverage_sentence(problem.find_task(home, table).name, table, covered))
    asked = problem.Single(
        command,
        seed,
        settings,
        table,
        problem.ProblemTable(
            saved.delta if limit is None else limit,
            clearance,
            unknown or ("avoid" if known else "allow"),  # type: ignore[arg-type]
            covered,
            episodes or EPISODES,
            train=steps != 0,
        ),
        configs.tagged("transfer", "solver", solver_table),
    )
    require_counted(asked.solver, episodes)
    with shown(progress, on_event, "transfer") as tell:
        return finish_single(
            asked,
            saved.constraint,
            out,
            tell,
            folder.quiet,
            made,
            start=start,
            evidence=evidence if known or isinstance(labels, SampledEvidence) else None,
            learned=place,
        )


def trust(run: str | Path) -> None:
    """Let the code be called that a run of someone else's names (docs/what-to-trust.md)."""
    configs.agree(Path(run), trust=True)


def _plain(value: Any) -> Any:
    """Numbers and lists that a file can hold, of arrays, tuples and numpy's numbers."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def coverage_sentence(name: str, table: problem.TaskTable, covered: bool | None) -> str:
    """What is known before the task is run."""
    start = table.spec.get("start")
    cell = tuple(start) if isinstance(start, list | tuple) and len(start) == 2 else start
    head = f"{name} from {cell}: " if isinstance(cell, int | tuple) else f"{name}: "
    if covered:
        return head + "covered, it can be done within cells that demonstrators walked"
    return head + "UNCOVERED, the way leads through cells about which nothing is known"


def read_task(text: str) -> tuple[Any, Document, problem.TaskTable]:
    """FILE.toml or FILE.toml:TASK: a world with one task, and the settings of its training."""
    name, colon, task = text.partition(".toml:")
    path = Path(name + ".toml" if colon else text)
    document = configs.read_user(path)
    settings = configs.tagged(str(path), "world", document.get("world", {}))
    tasks = getattr(settings, "tasks", ())
    if colon:
        chosen = tuple(t for t in tasks if t.name == task)
        if not chosen:
            there = ", ".join(t.name for t in tasks) or "none"
            raise InvalidInput(f"{path}: there is no task {task!r}; it has {there}")
        settings = replace(settings, tasks=chosen)
    elif len(tasks) > 1:
        names = ", ".join(t.name for t in tasks)
        raise InvalidInput(f"{path}: several tasks ({names}); choose one with --task {path}:NAME")
    kind = make_world(settings).defaults({}).get("solver", {}).get("kind", "soft")
    return settings, {"kind": kind, **document.get("solver", {})}, problem.TaskTable()


def make_demonstrations(
    world: Worldly,
    experts: Any = None,
    *,
    truth: str | None = None,
    solver: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    policy: str | Path | None = None,
    features: Any = None,
    steps: int | None = None,
    workers: int = 1,
    on: str | None = None,
    say: Callable[[str], None] = lambda text: None,
    progress: bool | None = None,
    on_event: OnEvent | None = None,
) -> Demonstrations:
    """Demonstrations by experts that keep the truth, which must be known.

    experts: settings of the world's kind of experts (paths, heldout, noise, seed, ..). On
    continuous worlds they are trained, in the folder "OUT-expert"; truth: the inequality that they
    keep. progress: as of `learn`.
    """
    document, made = world_document(world, features, steps)
    if truth is not None:
        document = merged(document, {"world": {"truth": truth}})
    settings = configs.tagged("world", "world", document["world"])
    home = made or make_world(settings)
    table = dict(experts or {}) if isinstance(experts, Mapping | None) else asdict(experts)
    if home.experts != "trained" and (solver or policy is not None or workers != 1 or on):
        raise InvalidInput(
            f"--steps, --policy, --workers, --on and [solver] are of experts that are trained; "
            f"those of {home.name} are not: leave them out"
        )
    if policy is not None and solver:
        raise InvalidInput("--policy has been trained already: leave --steps and [solver] out")
    trained = {"kind": "ppo", **document.get("solver", {}), **(solver or {})}
    asked = configs.tagged("experts", "solver", trained) if home.experts == "trained" else None
    if home.experts == "trained" and out is None:
        raise InvalidInput("experts are trained in a folder: give out")
    place = Path(out or "demos")
    with (
        engine(workers, on, settings, *([] if asked is None else [asked])) as who,
        shown(progress, on_event, "training") as tell,
    ):
        return training.make_demonstrations(
            settings,
            home,
            table,
            asked,
            place.with_name(f"{place.name}-expert"),
            policy=None if policy is None else Path(policy),
            workers=who,
            on_event=tell,
            say=say,
        )


def evaluate(
    constraint: str | Path | Learned | SavedConstraint,
    world: Worldly = None,
    demonstrations: Shown = None,
    *,
    features: Any = None,
    solver: Mapping[str, Any] | None = None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Document:
    """A constraint (a run, a saved one or its folder, an inequality) against the world's truth,
    where it is known, and against demonstrations, which are given as to `learn`: {"constraint",
    "delta", "truth", "demonstrations", "not_here"}."""
    from ringfence.runs import evaluate as evaluation

    settings = home = None
    if world is not None:
        document, made = world_document(world, features, None)
        settings = configs.tagged("world", "world", document["world"])
        home = made or make_world(settings)
    constraint = constraint.folder if isinstance(constraint, Learned) else constraint
    if isinstance(constraint, SavedConstraint):
        c, delta = constraint.constraint, constraint.delta
        if home is not None:
            problem.require_fit(c, home, "constraint")
    elif home is not None:
        c, delta = problem.read_constraint(str(constraint), home, getattr(settings, "truth", ""))
    elif Path(constraint).is_dir():
        saved = saved_constraints.load(problem.saved_folder(Path(constraint)))
        c, delta = saved.constraint, saved.delta
    else:
        raise InvalidInput(f"{constraint}: an inequality needs a world whose features it is about")
    if home is None and demonstrations is None:
        raise InvalidInput("nothing to compare it with: give a world, or demonstrations")
    if solver and (home is None or is_continuous(home.tasks[0])):
        raise InvalidInput("[solver] is for planning on a finite world: leave it out")
    result: Document = {"constraint": c.describe(), "delta": delta, "not_here": {}}
    truth: Any = NotHere("no world is given")
    if home is not None:
        table = {"kind": "soft", **(solver or {})}
        player = configs.make_solver(configs.tagged("evaluate", "solver", table))
        truth = evaluation.against_truth(settings, home, c, delta, player)
    if isinstance(truth, NotHere):
        result["not_here"]["truth"] = truth.reason
    result["truth"] = None if isinstance(truth, NotHere) else truth
    result["demonstrations"] = None
    if demonstrations is not None:
        given = read_shown(demonstrations, home, on_finding)
        result["demonstrations"] = evaluation.against_demonstrations(settings, home, c, given)
    return result


def read_shown(
    given: Shown, home: World | None, on_finding: Callable[[Finding], None]
) -> Demonstrations:
    """Demonstrations to look at: a folder of ours, or logs as they come, which need their world."""
    if isinstance(given, Demonstrations):
        return given
    path = str(given) if isinstance(given, str | Path) else None
    if path is not None and not logs.is_log(path, Path()):
        return dataset.load(Path(path))
    if home is None:
        raise InvalidInput(
            "logs need the world that they were recorded in, which says what their features are: "
            "give --world (from Python: world), or a folder that 'ringfence demos make' made"
        )
    if path is None:
        found = as_demonstrations(given, home, configs.Demos().heldout)
        assert found is not None
        return found
    demos, findings = checks.given(configs.Demos(path), home)
    for finding in findings:
        on_finding(finding)
    if wrong := [f for f in findings if f.severity == "error"]:
        raise InvalidInput(f"{wrong[0].where}: {wrong[0].message}")
    return demos
