"""What rollouts and their tasks must be: finite, and over the constraint's features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array, Feature
from ringfence.worlds.sim.rollouts import Chunk, ContinuousTask


def check_finite(chunk: Chunk, cost: Array, first_step: int) -> None:
    """Raise SolverFailed that names the first quantity that is not finite, and its step."""
    copies = chunk.rewards.shape[1]
    found = []
    for name, values in (
        ("observation", chunk.inputs[..., :-1]),  # the last input is a feature's raw value
        ("reward", chunk.rewards),
        ("feature", chunk.features),
        ("cost", cost),
    ):
        bad = ~np.isfinite(values)
        if bad.any():
            t, n = (int(i) for i in np.argwhere(bad)[0][:2])
            found.append((t * copies + n, name, float(values[bad][0])))
    if found:
        step, name, value = min(found, key=lambda entry: entry[0])
        raise SolverFailed(
            f"{name} is {value} at environment step {first_step + step} (copy {step % copies}): "
            "training stopped"
        )


def check_task(task: ContinuousTask, features: Sequence[Feature]) -> None:
    """The constraint's features must be the task's, in its units, before the first step."""
    have, want = [f.name for f in task.features], [f.name for f in features]
    if have != want:
        raise InvalidInput(
            f"the constraint is over {', '.join(want)}, but task {task.name!r} has the features "
            f"{', '.join(have)}"
        )
    for own, given in zip(task.features, features, strict=True):
        if own.unit != given.unit:
            raise InvalidInput(
                f"the constraint has {own.name!r} in {given.unit}, task {task.name!r} in "
                f"{own.unit}; bring both to one unit"
            )
