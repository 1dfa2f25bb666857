"""A trained policy as other software meets it: loaded, and asked for actions.

`ringfence.load_policy` is this module's. It needs numpy and safetensors only: no JAX, no simulator.

policy/policy.json          what the policy was trained for, in words, and the box of its actions
policy/policy.safetensors   its weights; nothing in them can run
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import ArrayLike, NDArray

from ringfence.disk import reading
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Start
from ringfence.worlds.sim.rollouts import Actor, ContinuousTask, applied

SCHEMA = 2
ABOUT, WEIGHTS = "policy.json", "policy.safetensors"


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
    with reading(place / WEIGHTS):
        arrays = safetensors.numpy.load_file(place / WEIGHTS)
    found = {name: list(array.shape) for name, array in sorted(arrays.items())}
    if found != about["arrays"]:
        raise InvalidInput(f"{place / WEIGHTS}: not the arrays that {ABOUT} names; make it again")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InvalidInput(f"{place / WEIGHTS}: its numbers are not all finite; make it again")
    low, high = (np.array(about[name], np.float64) for name in ("action_low", "action_high"))
    return SavedPolicy(
        arrays, low, high, bool((about.get("solver") or about["ppo"])["augment"]), about
    )


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
    with reading(path):
        about = json.loads(path.read_text())
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise InvalidInput(f"{path}: not of schema {SCHEMA}; make it again with this version")
    return dict(about)


def policy_bytes(policy: Start) -> bytes:
    """Weights as safetensors, in the order of their names."""
    return safetensors.numpy.save(_plain(policy))


def to_bytes(policy: Start, task: ContinuousTask, about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a policy; `about`: what it was trained for, with its `ppo` settings."""
    document = {
        "schema": SCHEMA,
        "task": task.name,
        **about,
        "action_low": [float(v) for v in task.action_low],
        "action_high": [float(v) for v in task.action_high],
        "arrays": {name: list(array.shape) for name, array in _plain(policy).items()},
    }
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    return {WEIGHTS: policy_bytes(policy), ABOUT: text.encode()}


def _plain(policy: Start) -> dict[str, NDArray[Any]]:
    # not ascontiguousarray, which turns a number into an array of one
    return {name: np.asarray(a, order="C") for name, a in sorted(policy.items())}
