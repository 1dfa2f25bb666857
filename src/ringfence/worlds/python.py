"""Tasks that Python objects describe and no file can: a game with them stays in its process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.worlds.continuous import ContinuousWorld
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.rollouts import ContinuousTask


@dataclass(frozen=True)
class Config:
    """description: of what can't be made again from a file."""

    description: str
    kind: Literal["python"] = "python"
    truth: str = ""


def make(config: Config) -> NoReturn:
    raise InvalidInput(
        f"this run's tasks were made by Python objects ({config.description}) that have no name to "
        "find them by, so nothing else can make them: a killed run can't be resumed, and workers "
        "can't share it. Put the function that makes the environment into a module"
    )


def environments(
    makers: Mapping[str, Callable[[], Any]],
    features: Sequence[Feature],
    sources: Mapping[str, str | int] | Callable[..., Any] | None,
    steps: int | None,
) -> ContinuousWorld:
    """A world of Gymnasium environments, one task for each function that makes one."""
    function = sources if callable(sources) else None
    named = {} if sources is None or callable(sources) else dict(sources)

    def no_other(spec: Mapping[str, Any]) -> ContinuousTask:
        raise InvalidInput(
            "a new task of environments in Python is another function that makes one: "
            "ringfence.transfer(learned, make_other)"
        )

    tasks = tuple(
        GymTask(name, tuple(features), function, steps, {}, named, None, name, None, maker)
        for name, maker in makers.items()
    )
    packages = ("jax", "jaxlib", "optax", "gymnasium")
    return ContinuousWorld("environments", tasks, packages, no_other)
