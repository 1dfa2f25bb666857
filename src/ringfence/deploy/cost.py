"""A learned constraint at work in anyone's Gymnasium environment.

`ConstraintCost` puts the cost of each step into `info["cost"]`, where safe-RL libraries look for
it; `Monitor` counts and logs violations while a policy runs. Each has a twin for vector
environments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.saved import SavedConstraint
from ringfence.deploy.violations import Violations
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint
from ringfence.worlds.sim.sources import FeatureReader, Sources

Env = gymnasium.Env[Any, Any]
Info = dict[str, Any]

NO_COST = "the environment gives no finite info['cost'] to monitor: wrap it in ConstraintCost first"

# Cost --------------------------------------------------------------------------------------------


def raw_and_cost(c: Constraint) -> Callable[[Array], tuple[Array, Array]]:
    """phi [n, d] -> its raw value and its cost, [n] each, by one evaluation where that is enough:
    of several limits at once the cost is a sum, which the largest raw value doesn't tell."""
    if isinstance(getattr(c, "constraint", c), Conjunction):
        return lambda phi: (c.raw(phi), c.cost(phi))

    def both(phi: Array) -> tuple[Array, Array]:
        raw = c.raw(phi)
        return raw, c.activate(raw)

    return both


def keep_own(info: Info) -> None:
    """An environment's own info["cost"] becomes info["env_cost"], with its mask if it has one."""
    if "cost" not in info:
        return
    if "env_cost" in info:
        raise InvalidInput(
            "info has a 'cost' and an 'env_cost' already: wrap the environment once, in a "
            "constraint that joins all limits with 'and'"
        )
    for mark in ("", "_"):
        if f"{mark}cost" in info:
            info[f"{mark}env_cost"] = info.pop(f"{mark}cost")


class ConstraintCost(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds info["cost"] (activated) and info["cost_raw"] (> 0: violated) to each step.

    A cost that the environment has of its own is kept as info["env_cost"].

    features: where the constraint's features come from. By default each is info[its name];
    a mapping names other keys of `info` (text) or columns of the observation (number);
    a function (observations [1, o], actions [1, a], next observations [1, o]) -> [1, d]
    computes them all. A feature that is missing or not finite is an error.
    """

    def __init__(self, env: Env, constraint: Constraint, features: Sources = None) -> None:
        if isinstance(env, VectorEnv):
            raise InvalidInput("this is a vector environment: use VectorConstraintCost")
        super().__init__(env)
        self.constraint, self._both = constraint, raw_and_cost(constraint)
        self._reader = make_reader(constraint, features, env.observation_space, str(env))
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        seen, info = self.env.reset(seed=seed, options=options)
        return self._keep(seen), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        before = self._seen
        seen, reward, terminated, truncated, info = self.env.step(action)
        phi = self._reader.one(before, action, seen, info)
        raw, cost = self._both(phi)
        keep_own(info)
        info["cost"], info["cost_raw"] = float(cost[0]), float(raw[0])
        return self._keep(seen), reward, terminated, truncated, info

    def _keep(self, seen: Any) -> Any:
        """Remember the observation; an environment may write its next one into the same array."""
        self._seen = np.array(seen) if self._reader.function is not None else None
        return seen


class VectorConstraintCost(VectorWrapper[Any, Any, Any, Any, Any]):
    """ConstraintCost for a vector environment: arrays [N] with the masks "_cost", "_cost_raw".

    The cost of a transition stands beside its reward, also where the same step brings the next
    episode's first observation (AutoresetMode.SAME_STEP; it is in "final_info" too). A step that
    only resets an environment (AutoresetMode.NEXT_STEP) has no cost: 0, masked out.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], constraint: Constraint, features: Sources = None
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InvalidInput("this is not a vector environment: use ConstraintCost")
        super().__init__(env)
        self.constraint, self._both = constraint, raw_and_cost(constraint)
        self._reader = make_reader(constraint, features, env.single_observation_space, str(env))
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._seen: Any = None
        self._resets = np.zeros(self.num_envs, np.bool_)  # at its next step, and does nothing else

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: Info | None = None
    ) -> tuple[Any, Info]:
        self._resets[reset_rows(options, self.num_envs)] = False
        self._seen, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return self._keep(self._seen), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        before = self._seen
        seen, rewards, terminated, truncated, info = self.env.step(actions)
        ended, rows = terminated | truncated, ~self._resets
        phi = self._features(before, actions, seen, info, ended, rows)
        raw, cost = np.zeros(len(rows)), np.zeros(len(rows))
        raw[rows], cost[rows] = self._both(phi[rows])
        keep_own(info)
        info |= {"cost": cost, "_cost": rows, "cost_raw": raw, "_cost_raw": rows.copy()}
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            keep_own(info["final_info"])
            info["final_info"] |= {
                "cost": np.where(ended, cost, 0.0),
                "_cost": ended.copy(),
                "cost_raw": np.where(ended, raw, 0.0),
                "_cost_raw": ended.copy(),
            }
        if self._mode == AutoresetMode.NEXT_STEP:
            self._resets = ended.copy()
        return self._keep(seen), rewards, terminated, truncated, info

    def _keep(self, seen: Any) -> Any:
        """Remember the observations; an environment may write its next ones into the same array."""
        self._seen = np.array(seen) if self._reader.function is not None else None
        return seen

    def _features(
        self,
        before: Any,
        actions: Any,
        seen: Any,
        info: Mapping[str, Any],
        ended: NDArray[np.bool_],
        rows: NDArray[np.bool_],
    ) -> Array:
        """The transition's features [N, d]: an ended one's may be among the final ones."""
        if self._mode != AutoresetMode.SAME_STEP or not ended.any():
            return self._reader.batch(before, actions, seen, info, rows)
        last = np.array(seen)
        for i in np.flatnonzero(ended):
            last[i] = info["final_obs"][i]
        phi = self._reader.batch(before, actions, last, info["final_info"], ended)
        if not ended.all():
            going = self._reader.batch(before, actions, last, info, rows & ~ended)
            phi = np.where(ended[:, None], phi, going)
        return phi


def make_reader(
    constraint: Constraint, features: Sources, space: gymnasium.Space[Any], where: str
) -> FeatureReader:
    """Refuses, before the first step, columns that the observations don't have."""
    if isinstance(constraint, str | Path):
        raise InvalidInput(f"{constraint}: a path is not a constraint yet: ringfence.load(it)")
    reader = FeatureReader(constraint.features, features, where)
    columns = [place for _, place in reader.places if isinstance(place, int)]
    flat = isinstance(space, Box) and len(space.shape) == 1
    if (columns or reader.function is not None) and not flat:
        raise InvalidInput(
            f"{where}: features of the observation need a flat Box, it has {space}; "
            "put them into `info` instead"
        )
    if flat and not all(0 <= c < space.shape[0] for c in columns):  # type: ignore[index]
        raise InvalidInput(
            f"{where}: observations have columns 0 to {space.shape[0] - 1}, "  # type: ignore[index]
            f"a feature asks for {max(columns, key=abs)}"
        )
    return reader


def reset_rows(options: Info | None, count: int) -> NDArray[np.bool_]:
    """Which of a vector environment's copies a reset is for (read before the reset takes it)."""
    mask = (options or {}).get("reset_mask")
    return np.ones(count, np.bool_) if mask is None else np.array(mask, np.bool_)


# Monitor -----------------------------------------------------------------------------------------


class Monitor(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts violations of an environment that gives info["cost"], e.g. through ConstraintCost.

    limit: the most that an episode's cost may sum to; by default the delta that the constraint
    was saved with. log: a CSV file with a line per finished episode. `violations` has the
    counts, `summary()` says them.
    """

    def __init__(self, env: Env, limit: float | None = None, log: str | Path | None = None) -> None:
        if isinstance(env, VectorEnv):
            raise InvalidInput("this is a vector environment: use VectorMonitor")
        super().__init__(env)
        self.violations = Violations(1, limit_of(env, limit), log)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        self.violations.leave(0)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        seen, reward, terminated, truncated, info = self.env.step(action)
        if "cost" not in info:
            raise InvalidInput(NO_COST)
        cost = info["cost"]
        self.violations.step(0, cost, info.get("cost_raw", cost), terminated or truncated)
        return seen, reward, terminated, truncated, info

    def summary(self) -> str:
        return self.violations.summary()

    def close(self) -> None:
        self.violations.close()
        self.env.close()


class VectorMonitor(VectorWrapper[Any, Any, Any, Any, Any]):
    """Monitor for a vector environment; each copy's episodes are counted apart."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        limit: float | None = None,
        log: str | Path | None = None,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InvalidInput("this is not a vector environment: use Monitor")
        super().__init__(env)
        self.violations = Violations(self.num_envs, limit_of(env, limit), log)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._resets = np.zeros(self.num_envs, np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: Info | None = None
    ) -> tuple[Any, Info]:
        rows = reset_rows(options, self.num_envs)
        self._resets[rows] = False
        for i in np.flatnonzero(rows):
            self.violations.leave(int(i))
        return self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        seen, rewards, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        rows = np.flatnonzero(~self._resets)
        cost = self._given(info, "cost")
        if not np.isfinite(cost[rows]).all():
            raise InvalidInput(NO_COST)
        raw = self._given(info, "cost_raw") if "cost_raw" in info else cost
        for i in rows:
            self.violations.step(int(i), float(cost[i]), float(raw[i]), bool(ended[i]))
        if self._mode == AutoresetMode.NEXT_STEP:
            self._resets = ended.copy()
        return seen, rewards, terminated, truncated, info

    def _given(self, info: Mapping[str, Any], key: str) -> Array:
        """info[key] [N], also out of the final infos; NaN where an environment gave none."""
        value = np.full(self.num_envs, np.nan)
        for given in (info, info.get("final_info", {})):
            if key in given:
                there = given.get(f"_{key}", np.ones(self.num_envs, np.bool_))
                value[there] = np.asarray(given[key], np.float64)[there]
        return value

    def summary(self) -> str:
        return self.violations.summary()

    def close(self, **kwargs: Any) -> None:
        self.violations.close()
        self.env.close(**kwargs)


def limit_of(env: Any, limit: float | None) -> float:
    """The limit as given, or the delta of the saved constraint that the environment is under."""
    while limit is None and isinstance(env, gymnasium.Wrapper | VectorWrapper):
        constraint = getattr(env, "constraint", None)
        limit = constraint.delta if isinstance(constraint, SavedConstraint) else None
        env = env.env
    if limit is None:
        raise InvalidInput(
            "the monitor needs a limit on an episode's cost: give `limit`, or wrap the environment "
            "in ConstraintCost with a constraint from ringfence.load"
        )
    return float(limit)
