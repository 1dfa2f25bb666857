"""What happens before the game: cloning the demonstrators, probing whether a constraint is needed.

Its result is the constraint player as the game gets it, and where each solve begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.numpy

from ringfence.constraints.written import nothing_forbidden
from ringfence.disk import read_sealed, reading, write_sealed
from ringfence.errors import InvalidInput
from ringfence.game import Begin
from ringfence.objects import Array, Behaviour, Constraint, J, Problem, Solution, Start
from ringfence.players.player import Begun, ConstraintPlayer
from ringfence.runs.backend import Solves
from ringfence.runs.config import Config
from ringfence.runs.demonstrated import Demonstrated
from ringfence.runs.folder import OnEvent, tell_damaged
from ringfence.runs.ledger import arrays_bytes
from ringfence.runs.together import solve_together

#: The iteration number, in seed paths, of what happens before the game.
BEFORE = 0


@dataclass(frozen=True, eq=False)
class Opened:
    """player: with the learners that it knows before the game; begin: where a solve begins; free:
    unconstrained learners [K], where they were tried; needed: is there anything to learn?"""

    player: ConstraintPlayer
    begin: Begin
    free: list[Solution] | None
    needed: bool = True


def check_opening(config: Config, learns: bool) -> None:
    """Refuse an opening that this solver has no use for."""
    if config.opening.kind == "clone" and not learns:
        raise InvalidInput(
            f"[opening] kind: 'clone' is for solvers that learn, such as ppo; the solver "
            f"{config.solver.kind!r} begins from nothing: use 'none'"
        )


def open_game(
    run: Path,
    config: Config,
    shown: Demonstrated,
    player: ConstraintPlayer,
    solves: Solves,
    states: Mapping[str, Array],
    tell: OnEvent,
) -> Opened:
    """Clone, probe, and let the player answer to what came of it, as the configuration says.

    states: where some training episodes begin, by task.
    """
    opening, K = config.opening, len(shown.tasks)
    clones = read_clones(run, config, shown, tell) if opening.kind == "clone" else [None] * K
    free = None
    if opening.probes or opening.first == "free":
        none = no_constraint(shown)
        together = partial(solve_together, solves)
        solved = together if shared_policy(config, shown) else solves
        paths = [(config.seed, BEFORE, k) for k in range(K)]
        free = solved(
            [
                Problem(
                    task,
                    none,
                    0.0,
                    clone,
                    path,
                    states=states.get(task.name),
                    drop_failed=config.demos.drop_failed,
                )
                for task, clone, path in zip(shown.tasks, clones, paths, strict=True)
            ],
            "free",
        )

    def begin(k: int, last: Solution | None) -> Start | None:
        return follow(opening.carry, clones[k], last) if solves.solver.learns else None

    if free is not None and opening.probes and shows_nothing(shown, player, free):
        return Opened(player, begin, free, needed=False)
    if opening.first == "none":
        return Opened(player, begin, free)
    first = [s.shown for s in free or []] if opening.first == "free" else None
    if first is None:
        first = watch_clones(config, shown, clones, solves)
    keep = not getattr(player, "forgets_first", False)
    return Opened(Begun(player, shown.train, first, keep), begin, free)


def shared_policy(config: Config, shown: Demonstrated) -> bool:
    """Is there one policy for several tasks?"""
    return config.game.policies == "one" and len(shown.tasks) > 1


def no_constraint(shown: Demonstrated) -> Constraint:
    return nothing_forbidden(shown.tasks[0].features)


def read_clones(
    run: Path, config: Config, shown: Demonstrated, tell: OnEvent
) -> list[Start | None]:
    """The cloned policies, one per task: made once, then read."""
    place = run / "start"
    if place.is_dir():
        try:
            return _stored(place, shown)
        except InvalidInput as problem:
            tell_damaged(tell, str(problem))
    tell({"event": "cloning"})
    write_sealed(place, make_clones(config, shown))
    return _stored(place, shown)


def _stored(place: Path, shown: Demonstrated) -> list[Start | None]:
    files = read_sealed(place)
    with reading(place):
        names = [f"{k}.safetensors" for k in range(len(shown.tasks))]
        return [safetensors.numpy.load(files[name]) for name in names]


def make_clones(config: Config, shown: Demonstrated) -> dict[str, bytes]:
    """The files of the cloned policies."""
    from ringfence.solvers.cloning import CloningConfig, clone  # needs JAX

    o = config.opening
    settings = CloningConfig(o.steps, o.batch, o.learning_rate, config.solver.hidden, o.log_std)
    demos = [d.train for d in shown.demos]
    if shared_policy(config, shown):
        demos = [tuple(t for train in demos for t in train)]  # everybody's
    made = [
        arrays_bytes(clone(train, task, (config.seed, BEFORE, k), settings))  # type: ignore[arg-type]
        for k, (train, task) in enumerate(zip(demos, shown.tasks, strict=False))
    ]
    return {f"{k}.safetensors": made[k % len(made)] for k in range(len(shown.tasks))}


def watch_clones(
    config: Config, shown: Demonstrated, clones: Sequence[Start | None], solves: Solves
) -> list[Behaviour]:
    """What the cloned policies do before any training."""
    none, drop = no_constraint(shown), config.demos.drop_failed
    watched = solves(
        [
            Problem(task, none, 0.0, start, (config.seed, BEFORE, k), drop_failed=drop)
            for k, (task, start) in enumerate(zip(shown.tasks, clones, strict=True))
        ],
        "watch",
    )
    return [solution.shown for solution in watched]


def shows_nothing(shown: Demonstrated, player: ConstraintPlayer, free: Sequence[Solution]) -> bool:
    """Do the unconstrained learners neither earn more than the demonstrators nor do otherwise?

    One that earns less may only have learned too little. So the class answers to them, too:
    by its answer none may cost more than the costliest demonstration of its task.
    """
    learners = [s.shown for s in free]
    c = player.update(shown.train, [learners])
    for pi, pi_E, d in zip(learners, shown.train, shown.demos, strict=True):
        costliest = max(float(c.cost(t.features).sum()) for t in d.train)
        if pi.reward > pi_E.reward or J(pi, c) > costliest:
            return False
    return True


def follow(carry: str, cloned: Start | None, last: Solution | None) -> Start | None:
    """Where a solve begins: at the clone, and with what it takes over from the last solve."""
    if last is None or carry == "nothing":
        return cloned
    if carry == "policy":
        return last.policy
    critics: dict[str, Any] = {
        n: a for n, a in last.policy.items() if n.startswith(("critic/", "norm/"))
    }
    if cloned is None:
        return critics
    from ringfence.solvers.cloning import renormalised

    return {**renormalised(cloned, critics["norm/mean"], critics["norm/std"]), **critics}
