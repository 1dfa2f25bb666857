"""A check on anyone's Gymnasium environment: what it returns has the shapes that it declared."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ringfence.errors import InvalidInput, SolverFailed


class Shaped(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The environment, with errors that say what was wrong in the place of numpy's."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        seen, info = self.env.reset(**options)
        if np.shape(seen) != self.observation_space.shape:
            raise InvalidInput(f"after a reset, {self._wrong(seen)}")
        return seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        outcome: Any = self.env.step(action)
        seen, reward, terminated, truncated, info = outcome
        if np.shape(seen) != self.observation_space.shape:
            raise SolverFailed(f"after a step, {self._wrong(seen)}")
        if np.ndim(reward) != 0 or np.asarray(reward).dtype.kind not in "fiub":
            raise SolverFailed(
                f"{self._name} returned a reward of shape {np.shape(reward)}, not a number: "
                f"{reward!r:.60}"
            )
        ends = self._flag("terminated", terminated), self._flag("truncated", truncated)
        return seen, reward, *ends, info

    def _flag(self, name: str, value: Any) -> bool:
        """NaN and "False" would count as true."""
        if isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise SolverFailed(f"{self._name} returned {name} = {value!r:.60}, not True or False")

    @property
    def _name(self) -> str:
        return self.spec.id if self.spec is not None else type(self.unwrapped).__name__

    def _wrong(self, seen: Any) -> str:
        return (
            f"{self._name} returned an observation of shape {np.shape(seen)}, but its "
            f"observation_space has {self.observation_space.shape}"
        )
