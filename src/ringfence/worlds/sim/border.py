"""Every value is checked when it crosses between a policy and an environment.

A number that isn't finite would reach the policy, the next action, and everything learned after it;
the first one is named with its quantity, copy and step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SolverFailed
from ringfence.objects import Array


class Border:
    """A simulator (`rollouts.Simulator`) whose values are checked. first: the number of its first
    copy among all."""

    def __init__(self, simulator: Any, name: str, first: int) -> None:
        self._sim, self._name, self._first = simulator, name, first
        self.copies: int = simulator.copies
        self._steps = np.zeros(self.copies, np.int64)

    @property
    def seeds(self) -> Any:
        """Of each copy's reset, where a seed is all that an episode begins from; else None."""
        return getattr(self._sim, "seeds", None)

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        self._steps[which] = 0
        return self._seen(self._sim.reset(which, rngs))

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        self._steps[which] = 0
        return self._seen(self._sim.place(which, states))

    def step(self, actions: Array) -> Any:
        self._require("action", actions, "the training has diverged: a lower learning rate helps")
        step = self._sim.step(actions)
        self._steps += 1
        self._seen(step.observations)
        self._require("reward", step.rewards)
        self._require("feature", step.features)
        for flags in (step.terminated, step.truncated):
            if flags is not None and flags.dtype != np.bool_:
                raise SolverFailed(
                    f"{self._name}: the ends of episodes are {flags.dtype}, not bool"
                )
        return step

    def save(self) -> dict[str, Array]:
        saved: dict[str, Array] = self._sim.save()
        return saved

    def restore(self, saved: Mapping[str, Array]) -> Array:
        return self._seen(self._sim.restore(saved))

    def close(self) -> None:
        self._sim.close()

    def _seen(self, observations: Array) -> Array:
        self._require("observation", observations)
        return observations

    def _require(self, quantity: str, values: Array, fix: str = "mend the environment") -> None:
        finite = np.isfinite(values)
        if finite.all():
            return
        n = int(np.argwhere(~finite)[0][0])
        value = float(values[~finite][0])
        raise SolverFailed(
            f"{self._name}: {quantity} is {value} at step {self._steps[n]} of an episode in copy "
            f"{self._first + n}; {fix}"
        )
