"""What every policy player is: a pure function from a problem to its solution.

A kind of solver is a module of this package (kind "soft" is solvers/soft.py) or anyone's
"module:function": `make(config) -> Solver`, with its settings' frozen dataclass as the annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem, Solution, Trajectory
from ringfence.worlds.finite import FiniteTask

#: Told of progress inside a solve: a record, as a plain dictionary.
Report = Callable[[dict[str, Any]], None]


def quiet(record: dict[str, Any]) -> None:
    """Nobody is told."""


class Solver(Protocol):
    """at_once: how many of its solves may run at the same time in one process; learns: does it
    begin at `problem.start`, and so can go on from a clone or from an earlier policy?

    It may have a `settle() -> Solver`: the same for longer, for policies that broke their limit.
    """

    @property
    def at_once(self) -> int: ...

    @property
    def learns(self) -> bool: ...

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        """All that determines the solution. usual: world, settings, task, constraint, limit, seed
        and start; a solver adds to it, or leaves out what makes no difference."""
        ...

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        """checkpoint: a folder of its own, from which a killed solve goes on to the same bytes."""
        ...

    def free(self) -> Solver:
        """The same for a problem without a constraint."""
        ...

    def watch(self) -> Solver:
        """The same without any training: it tells what the policy `problem.start` does."""
        ...

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory] | None:
        """Fresh episodes of a solution's policy; None where its behaviour is exact or has them."""
        ...


def require_posed(solver: Solver, problem: Problem) -> None:
    """A solver may have a `check` that refuses, before anything is written, what it can't solve."""
    check = getattr(solver, "check", None)
    if check is not None:
        check(problem)


@dataclass(frozen=True)
class Exact:
    """A solver of finite worlds: a function whose answer is exact and needs no training."""

    solve: Callable[[Problem], Solution]
    at_once: ClassVar[int] = 1
    learns: ClassVar[bool] = False

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        return usual

    def check(self, problem: Problem) -> None:
        if not isinstance(problem.task, FiniteTask):
            raise InvalidInput(
                f"task {problem.task.name!r} is not finite: soft, lp and lagrangian can't solve it"
            )

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        return self.solve(problem)

    def free(self) -> Exact:
        return self

    def watch(self) -> Exact:
        raise ValueError("an exact solver has no policy before it solves")

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> None:
        return None


#: Of a solve's episodes, kept for pictures: how many, and every how many steps.
PICTURED, THINNED = 8, 5


def pictured(trajectories: Sequence[Trajectory]) -> tuple[Array, ...]:
    """Some episodes' features [t, d], thinned, for pictures."""
    return tuple(t.features[::THINNED] for t in trajectories[:PICTURED])
