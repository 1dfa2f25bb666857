"""A trained policy as other software meets it: loaded, and asked for actions.

`ringfence.load_policy` is this module's. It needs numpy and safetensors only: no JAX, no simulator.

policy/policy.json          what the policy was trained for, in words, the box of its actions, and
                            the SHA-256 of the weights and of what it says itself
policy/policy.safetensors   its weights; nothing in them can run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import ArrayLike, NDArray

from ringfence.disk import document_bytes, read_file, read_json, reading, sha256
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Start
from ringfence.worlds.sim.rollouts import Actor, ContinuousTask, applied

SCHEMA = 3
ABOUT, WEIGHTS = "policy.json", "policy.safetensors"
MOST_BYTES = 1 << 28  # of the weights: a policy is small
FIX = "restore both files of the policy from one source, or make it again"


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    """A Gaussian around a network of the observation and of the constraint's value, or choices.

    low, high [a]: the box of its actions; sees: does it look at the constraint's value; about: what
    it was trained for (task, constraint, delta, ..), as in policy.json.
    """

    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    low: Array
    high: Array
    sees: bool
    about: Mapping[str, Any]

    def act(
        self,
        observation: ArrayLike,
        cost_raw: ArrayLike = 0.0,
        rng: np.random.Generator | None = None,
    ) -> Array:
        """The action [a] at an observation [o], or actions [n, a] at [n, o], inside the box (of a
        Discrete space: [1], its number).

        cost_raw: the raw value of the transition that led here, info["cost_raw"] of ConstraintCost;
        0 at a start. Of a constraint that lies further in (`tightened`), it makes the policy keep
        that clearance. rng: draw from the policy, as training did; without it, its mean,
        or its likeliest choice.
        """
        rows, one = np.asarray(observation, np.float64), np.ndim(observation) == 1
        rows = rows[None] if one else rows
        inputs = len(self.arrays["norm/mean"])
        if rows.ndim != 2 or rows.shape[1] != inputs - 1:
            raise InvalidInput(
                f"the observation has shape {np.shape(observation)}; this policy of "
                f"{self.about['task']!r} takes [{inputs - 1}] or [n, {inputs - 1}]"
            )
        raw = np.asarray(cost_raw if self.sees else 0.0, np.float64)
        if raw.shape not in ((), (len(rows),)):
            raise InvalidInput(f"cost_raw has shape {raw.shape}; one number per observation")
        seen = np.empty((len(rows), inputs))
        seen[:, :-1], seen[:, -1] = rows, raw
        if not np.isfinite(seen).all():
            raise InvalidInput("the observation or cost_raw is not finite")
        actor = Actor(self.arrays)
        noise = None if rng is None else actor.noise(rng, (len(seen),))
        actions, _ = actor.act(seen, noise)
        taken = applied(actor, actions, self.low, self.high)
        return taken[0] if one else taken


def load_policy(folder: str | Path, task: str | None = None) -> SavedPolicy:
    """The policy of a finished `learn` (the selected iterate's), `solve` or `transfer`.

    task: which one, where a game had several.
    """
    place = _choose(Path(folder), task)
    about = _read_about(place / ABOUT)
    with reading(place / WEIGHTS, FIX):
        weights = read_file(place / WEIGHTS, MOST_BYTES)
        if sha256(weights) != about["weights_sha256"]:
            raise ValueError(f"it is not the file that {ABOUT} was written with: SHA-256 differs")
        arrays = safetensors.numpy.load(weights)
    with reading(place, FIX):
        low, high = (np.array(about[name], np.float64) for name in ("action_low", "action_high"))
        sees = about["solver"]["augment"]
        if not isinstance(sees, bool):
            raise ValueError(f"augment is {sees!r:.60}")
        check_arrays(arrays, low, high)
    return SavedPolicy(arrays, low, high, sees, about)


def check_arrays(arrays: Mapping[str, NDArray[Any]], low: Array, high: Array) -> None:
    """An actor's layers follow one another and end in the box's actions, all numbers are finite.

    arrays: as `Actor` has them; a ValueError says what is wrong.
    """
    for name, array in (*arrays.items(), ("action_low", low), ("action_high", high)):
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise ValueError(f"the numbers of {name} are not all finite")
    layers = sum(name.startswith("actor/w") for name in arrays)
    width = len(arrays["norm/mean"])
    wanted = {"norm/mean": (width,), "norm/std": (width,)}
    for n in range(layers):
        wanted[f"actor/w{n}"] = (width, *arrays[f"actor/w{n}"].shape[1:2])
        width = arrays[f"actor/w{n}"].shape[-1]
        wanted[f"actor/b{n}"] = (width,)
    actions = width
    if "actor/sizes" in arrays:  # of choices: the network ends in a logit for each of their values
        sizes, actions = arrays["actor/sizes"], len(arrays["actor/sizes"])
        if (sizes < 1).any() or sizes.sum() != width or (high - low != sizes - 1).any():
            raise ValueError(f"choices of {sizes.tolist()} values don't fit {width} outputs")
    else:
        wanted["actor/log_std"] = (width,)
    found = {name: arrays[name].shape for name in wanted}
    if not layers or found != wanted or low.shape != (actions,) or high.shape != (actions,):
        raise ValueError(f"the shapes don't fit together: {found}, {low.shape}, {high.shape}")
    if not (low <= high).all() or not (arrays["norm/std"] > 0).all():
        raise ValueError("action_low is above action_high, or a spread of inputs is not above 0")


def _choose(folder: Path, task: str | None) -> Path:
    """The folder of one policy: the only one, or that of the task."""
    base = folder if (folder / ABOUT).is_file() else folder / "policy"
    if (base / ABOUT).is_file():
        places = [base]
    else:
        places = [p.parent for p in sorted(base.glob(f"*/{ABOUT}"))]
    if not places:
        raise InvalidInput(
            f"{folder}: no policy in it; give the folder of a finished learn, solve or transfer "
            "on a continuous world ('ringfence resume' finishes one)"
        )
    named = {_read_about(p / ABOUT)["task"]: p for p in places}
    if task is None and len(named) == 1:
        return places[0]
    if task not in named:
        wrong = "several policies" if task is None else f"no policy for task {task!r}"
        raise InvalidInput(f"{folder}: {wrong}; there is one for {', '.join(named)}")
    return named[task]


def _read_about(path: Path) -> dict[str, Any]:
    about = read_json(path, FIX)
    if about.get("schema") != SCHEMA or not isinstance(about.get("task"), str):
        raise InvalidInput(f"{path}: not of schema {SCHEMA}; make it again with this version")
    return about


def policy_bytes(policy: Start) -> bytes:
    """Weights as safetensors, in the order of their names."""
    return safetensors.numpy.save(_plain(policy))


def to_bytes(policy: Start, task: ContinuousTask, about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a policy; `about`: what it was trained for, with its `solver` settings."""
    weights = policy_bytes(policy)
    document = {
        "schema": SCHEMA,
        "task": task.name,
        **about,
        "action_low": [float(v) for v in task.action_low],
        "action_high": [float(v) for v in task.action_high],
        "arrays": {name: list(array.shape) for name, array in _plain(policy).items()},
        "weights_sha256": sha256(weights),
    }
    return {WEIGHTS: weights, ABOUT: document_bytes(document)}


def _plain(policy: Start) -> dict[str, NDArray[Any]]:
    # not ascontiguousarray, which turns a number into an array of one
    return {name: np.asarray(a, order="C") for name, a in sorted(policy.items())}
