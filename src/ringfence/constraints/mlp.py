"""A constraint that is a small network of the features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

Float32 = NDArray[np.float32]

#: Numbers of one layer held at once (4096 rows of 128 units): a batch stays in the cache, and
#: a wide network can't take more memory than a narrow one.
NUMBERS_AT_ONCE = 1 << 19
ZERO = np.float32(0)


@dataclass(frozen=True, eq=False)
class MLPConstraint:
    """raw(phi) = network((phi - mean) / scale) - offset, cost = log(1 + relu(raw)).

    mean, scale [d]; weights[l] [inputs, outputs] and biases[l] [outputs] in float32, the last of
    one output, with ReLU between them. A feature whose row of weights[0] is zero is not used.
    `offset` is how far the output was lowered to keep the experts within a tolerance. `forbids`
    says what it forbids of all that its fit saw; nothing is computed from it.
    """

    features: tuple[Feature, ...]
    mean: Array
    scale: Array
    weights: tuple[Float32, ...]
    biases: tuple[Float32, ...]
    offset: float = 0.0
    forbids: str = ""

    def __post_init__(self) -> None:
        inputs = len(self.features)
        if self.mean.shape != (inputs,) or self.scale.shape != (inputs,):
            raise InvalidInput(
                f"{inputs} features need as many means and scales, got {self.mean.shape} "
                f"and {self.scale.shape}"
            )
        if not self.weights or len(self.weights) != len(self.biases):
            raise InvalidInput(f"{len(self.weights)} weights and {len(self.biases)} biases")
        for layer, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if w.ndim != 2 or w.shape[0] != inputs or b.shape != w.shape[1:]:
                raise InvalidInput(
                    f"layer {layer} of the network has weights {w.shape} and biases {b.shape}; "
                    f"its input has {inputs} numbers"
                )
            inputs = w.shape[1]
        if inputs != 1:
            raise InvalidInput(f"the network must end in one output, it has {inputs}")
        numbers = (self.mean, self.scale, np.array(self.offset), *self.weights, *self.biases)
        if not all(np.isfinite(n).all() for n in numbers) or not (self.scale > 0).all():
            raise InvalidInput("a network's numbers must be finite and its scales positive")

    def raw(self, phi: ArrayLike) -> Array:
        phi = np.asarray(phi)
        if phi.ndim != 2 or phi.shape[1] != len(self.features):
            raise InvalidInput(
                f"features of shape {phi.shape} don't fit a network of {len(self.features)}"
            )
        rows = self._rows_at_once
        if len(phi) <= rows:
            raw = self._output(phi)
        else:
            parts = [self._output(phi[at : at + rows]) for at in range(0, len(phi), rows)]
            raw = np.concatenate(parts)
        return raw - self.offset if self.offset else raw

    def activate(self, raw: Array) -> Array:
        return np.log1p(np.maximum(raw, 0))

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    @cached_property
    def _rows_at_once(self) -> int:
        widest = max(int(max(w.shape)) for w in self.weights)
        return max(1, NUMBERS_AT_ONCE // widest)

    def _output(self, phi: Array) -> Array:
        # In a control loop phi is one row, and each numpy call costs a microsecond or two: casts
        # are made by the calls that they belong to, and a vector takes less than a matrix.
        x: Float32 = np.empty(phi.shape, np.float32)
        np.divide(phi - self.mean, self.scale, out=x, casting="same_kind")
        if len(phi) == 1:
            x = x[0]
        for w, b in self._hidden:
            x = x.dot(w)
            x += b
            np.maximum(x, ZERO, out=x)
        output: Array = np.empty(len(phi))
        np.add(x.dot(self.weights[-1])[..., 0], self.biases[-1], out=output)
        return output

    @cached_property
    def _hidden(self) -> list[tuple[Float32, Float32]]:
        return list(zip(self.weights[:-1], self.biases[:-1], strict=True))

    @property
    def used(self) -> tuple[Feature, ...]:
        """The features that the output depends on."""
        rows = np.any(self.weights[0] != 0, axis=1)
        return tuple(f for f, row in zip(self.features, rows, strict=True) if row)

    def describe(self) -> str:
        if not self.used:
            return "no constraint (zero everywhere)" if self._is_zero else "a constant"
        sizes = [len(self.used), *(w.shape[1] for w in self.weights)]
        names = ", ".join(f.name for f in self.used)
        lowered = f", lowered by {self.offset:.4g}" if self.offset else ""
        network = f"network {'-'.join(map(str, sizes))} of {names}{lowered}"
        return f"{self.forbids} ({network})" if self.forbids else network

    @property
    def _is_zero(self) -> bool:
        return not self.cost(self.mean[None]).any()


def zero_network(features: tuple[Feature, ...]) -> MLPConstraint:
    """c = 0 everywhere."""
    d = len(features)
    weights, bias = np.zeros((d, 1), np.float32), np.zeros(1, np.float32)
    return MLPConstraint(features, np.zeros(d), np.ones(d), (weights,), (bias,))
