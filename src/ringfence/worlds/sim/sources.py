"""Where a feature's value comes from in a Gymnasium environment: `info`, a column, a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array, Feature

#: (observations [N, o], actions [N, a], next observations [N, o]) -> features [N, d]
TransitionFeatures = Callable[[Array, Array, Array], Array]

#: A function of the transition, or by feature: a key of `info` (text) or a column of the
#: observation after the step (number). A feature that isn't named is info[its name].
Sources = Mapping[str, str | int] | TransitionFeatures | None


@dataclass(frozen=True)
class FeatureReader:
    """Reads features off a step. `where` is the environment's name, for messages."""

    features: tuple[Feature, ...]
    sources: Sources
    where: str

    def __post_init__(self) -> None:
        names = [f.name for f in self.features]
        unknown = [] if callable(self.sources) else sorted(set(self.sources or {}) - set(names))
        if unknown:
            raise InvalidInput(
                f"{self.where}: there is no feature {unknown[0]!r}; features are {', '.join(names)}"
            )
        for name, place in self.places:
            if isinstance(place, bool) or not isinstance(place, str | int):
                raise InvalidInput(
                    f"{self.where}: feature {name!r} comes from a key of info (text) or a column "
                    f"of the observation (number), not from {place!r:.60}; one function (before, "
                    "actions, after) of all features may stand in the mapping's place"
                )

    @cached_property
    def function(self) -> TransitionFeatures | None:
        return self.sources if callable(self.sources) else None

    @cached_property
    def places(self) -> tuple[tuple[str, str | int], ...]:
        """Each feature's name with its key or column, where no function computes all."""
        named = {} if self.sources is None or callable(self.sources) else self.sources
        return tuple((f.name, named.get(f.name, f.name)) for f in self.features)

    def batch(
        self,
        before: ArrayLike,
        actions: ArrayLike,
        after: ArrayLike,
        info: Mapping[str, Any],
        rows: NDArray[np.bool_],
    ) -> Array:
        """Features [N, d] of a vector environment's step; only those of `rows` [N] mean anything.

        info: arrays [N], each with a mask under "_key", as vector environments give them.
        """
        shape = (len(rows), len(self.features))
        if not rows.any():  # all copies only reset: their info says nothing of a step
            return np.zeros(shape)
        if self.function is not None:
            phi = self._computed(before, actions, after, shape)
        else:
            phi = np.zeros(shape)
            for i, (name, place) in enumerate(self.places):
                try:
                    phi[:, i] = self._value(name, place, after, info, rows)
                except (TypeError, ValueError):
                    raise self._no_number(name, info.get(str(place), after)) from None
        finite = np.isfinite(phi[rows]).all(axis=0)
        if not finite.all():
            i = int(np.argmin(finite))
            n = int(np.argmax(rows & ~np.isfinite(phi[:, i])))
            raise InvalidInput(
                f"{self.where}: feature {self.features[i].name!r} is not finite after a step "
                f"({phi[n, i]}, copy {n})"
            )
        return phi

    def one(self, before: Any, action: Any, after: Any, info: Mapping[str, Any]) -> Array:
        """Features [1, d] of a single environment's step. Plain floats: it must be fast."""
        if self.function is not None:
            rows = np.ones(1, np.bool_)
            return self.batch(before[None], np.atleast_1d(action)[None], after[None], info, rows)
        values = []
        for name, place in self.places:
            if isinstance(place, str):
                if place not in info:
                    raise self._missing(name, place, info)
                given = info[place]
            else:
                given = after[place]
            try:
                value = float(given)
            except (TypeError, ValueError):
                raise self._no_number(name, given) from None
            if not math.isfinite(value):
                raise InvalidInput(
                    f"{self.where}: feature {name!r} is not finite after a step ({value})"
                )
            values.append(value)
        return np.array([values])

    def _computed(
        self, before: ArrayLike, actions: ArrayLike, after: ArrayLike, shape: tuple[int, int]
    ) -> Array:
        assert self.function is not None
        given = (np.asarray(x, np.float64) for x in (before, actions, after))
        phi = np.asarray(self.function(*given), np.float64)
        if phi.shape != shape:
            raise SolverFailed(
                f"the feature function of {self.where} returned shape {phi.shape}, not {shape}"
            )
        return phi

    def _value(
        self,
        name: str,
        place: str | int,
        after: ArrayLike,
        info: Mapping[str, Any],
        rows: NDArray[np.bool_],
    ) -> Any:
        """The column of a feature, [N]."""
        if isinstance(place, int):
            return np.asarray(after)[:, place]
        there = info.get(f"_{place}", np.ones(len(rows), np.bool_))
        if place not in info or (rows & ~np.asarray(there, np.bool_)).any():
            raise self._missing(name, place, info)
        if np.shape(info[place]) != rows.shape:
            raise self._no_number(name, info[place])
        return np.where(rows, info[place], 0.0)

    def _missing(self, name: str, place: str, info: Mapping[str, Any]) -> InvalidInput:
        there = ", ".join(k for k in info if not k.startswith("_")) or "none"
        return InvalidInput(
            f"{self.where} has no info key {place!r} for the feature {name!r}; after a step it has "
            f"{there}"
        )

    def _no_number(self, name: str, value: Any) -> InvalidInput:
        return InvalidInput(
            f"{self.where}: feature {name!r} must be one number per step, got {value!r:.60}"
        )
