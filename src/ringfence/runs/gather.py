"""Anyone's logs of a configured world, completed into demonstrations.

Features and rewards that the logs lack are computed from the declared functions and columns, or
taken from a replay in the environment. Every doubt is an InvalidInput that names the episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.demos import dataset as demonstrations
from ringfence.demos import logs
from ringfence.demos.dataset import INDEX
from ringfence.demos.logs import Log
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Finding, TaskDemos, Trajectory
from ringfence.runs.config import Demos
from ringfence.worlds.continuous import check_shapes, check_units
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.replay import (
    ROUNDED,
    Replay,
    first_difference,
    replay,
    replay_in_order,
)
from ringfence.worlds.sim.rollouts import ContinuousTask

#: Episodes of a task that are replayed although nothing is missing from them.
REPLAYED = 5


@dataclass(frozen=True, eq=False)
class Logged:
    """A task's episodes, split."""

    task: ContinuousTask
    train: tuple[Log, ...]
    heldout: tuple[Log, ...]

    @property
    def every(self) -> tuple[Log, ...]:
        return (*self.train, *self.heldout)


def gather(d: Demos, base: Path, tasks: Sequence[ContinuousTask]) -> list[Logged]:
    """Every task's logs, from where the configuration says (paths seen from `base`)."""
    if not d.paths and (base / d.path / INDEX).is_file():
        return _of_folder(base / d.path, tasks)
    named = places(d, tasks)
    return [split(task, logs.read(named[task.name], base), d.heldout) for task in tasks]


def places(d: Demos, tasks: Sequence[Any]) -> dict[str, str]:
    """Where each task's logs are."""
    found = d.paths or {tasks[0].name: d.path}
    for task in tasks:
        if task.name not in found:
            raise InvalidInput(
                f"task {task.name!r} has no demonstrations; [demos] names some of "
                f'{", ".join(map(repr, found))}; write paths = {{ {task.name!r} = "..." }}'
            )
    return found


def split(task: ContinuousTask, episodes: Sequence[Log], share: float) -> Logged:
    """The last `share` of the episodes, at least one, is held out."""
    last = max(1, round(share * len(episodes)))
    if len(episodes) - last < 1:
        raise InvalidInput(
            f"task {task.name!r}: {len(episodes)} episodes; at least 2 are needed, one to learn "
            "from and one held out"
        )
    return Logged(task, tuple(episodes[:-last]), tuple(episodes[-last:]))


def _of_folder(folder: Path, tasks: Sequence[ContinuousTask]) -> list[Logged]:
    given = demonstrations.load(folder)
    names = [f.name for f in given.features]
    of_each = demonstrations.of_tasks(given, [task.name for task in tasks])
    found = []
    for task, d in zip(tasks, of_each, strict=True):
        check_units(task, given.features)
        of = [_log(task, label, t, names) for label, t in d.labelled]
        found.append(Logged(task, tuple(of[: len(d.train)]), tuple(of[len(d.train) :])))
    return found


def _log(task: ContinuousTask, label: str, t: Trajectory, names: Sequence[str]) -> Log:
    """A stored trajectory as a log; other features than the task's are looked up by name."""
    if names == [f.name for f in task.features]:
        return Log(label, t.observations, t.actions, t.rewards, t.features, {}, t.terminated,
                   t.seed)  # fmt: skip
    sources = task.sources if isinstance(task, GymTask) else {}
    infos = {str(sources.get(name, name)): t.features[:, k] for k, name in enumerate(names)}
    return Log(label, t.observations, t.actions, t.rewards, None, infos, t.terminated, t.seed)


# What is missing ---------------------------------------------------------------------------------


def complete(logged: Logged, deterministic: bool) -> tuple[TaskDemos, list[Finding]]:
    """The task's demonstrations, and what was found on the way."""
    task = logged.task
    for log in logged.every:
        check_shapes(task, log.label, log)
    if isinstance(task, GymTask):
        replays, why_not, findings = replay_all(task, logged.every, deterministic)
        findings += reward_findings(task, logged.every, replays)
        made = [
            completed(task, log, replays.get(log.label), why_not.get(log.label, ""))
            for log in logged.every
        ]
    else:
        made, findings = [as_trajectory(task, log) for log in logged.every], []
    n = len(logged.train)
    return TaskDemos(task.name, tuple(made[:n]), tuple(made[n:])), findings


def as_trajectory(task: Any, log: Log) -> Trajectory:
    """A log of a world that replays none: rewards and features are as they were recorded."""
    if log.rewards is None or log.features is None:
        names = ", ".join(f"{f.name} ({f.unit})" for f in task.features)
        raise InvalidInput(
            f"{log.label}: of {task.name} logs aren't replayed, so record 'rewards' [N] and "
            f"'features' [N, {len(task.features)}]: {names}"
        )
    return Trajectory(
        log.observations, log.actions, log.rewards, log.features, log.terminated, log.seed
    )


# Finite worlds -----------------------------------------------------------------------------------


def as_paths(task: FiniteTask, logs: Sequence[Log], share: float) -> TaskDemos:
    """A finite task's logs, the last `share` of them held out."""
    done = [as_path(task, log) for log in logs]
    held = max(1, round(share * len(done)))
    if len(done) <= held:
        raise InvalidInput(
            f"task {task.name!r}: {len(done)} episodes; at least 2 are needed, one to learn "
            "from and one held out"
        )
    return TaskDemos(task.name, tuple(done[:-held]), tuple(done[-held:]))


def as_path(task: FiniteTask, log: Log) -> Trajectory:
    """Of a finite world states and actions say it all: rewards and features are the task's."""
    states, actions = (np.asarray(x)[:, 0] for x in (log.observations, log.actions))
    S, A = task.mdp.reward.shape
    for name, values, count in (("state", states, S), ("action", actions, A)):
        whole = (values == np.floor(values)) & (values >= 0) & (values < count)
        if not whole.all():
            at = int(np.flatnonzero(~whole)[0])
            raise InvalidInput(f"{log.label}: {name} {values[at]:g} at step {at} is none of 0 to "
                               f"{count - 1}")  # fmt: skip
    if len(states) != len(actions) + 1:
        raise InvalidInput(
            f"{log.label}: {len(states)} states and {len(actions)} actions; an episode has one "
            "state more than actions: the one where it ended"
        )
    rest = steps_at_rest(task, int(states[-1]), len(actions))
    states = np.append(states, np.full(rest, states[-1]))
    actions = np.append(actions, np.zeros(rest))
    s, a = states[:-1].astype(int), actions.astype(int)
    rewards, features = task.mdp.reward[s, a], task.phi[s, a]
    if log.rewards is not None:
        rewards = np.append(log.rewards, rewards[len(log) :])
    if log.features is not None:
        features = np.append(log.features, features[len(log) :], axis=0)
    ended = log.terminated and not rest
    return Trajectory(states[:, None], actions[:, None], rewards, features, ended, log.seed)


def steps_at_rest(task: FiniteTask, last: int, steps: int) -> int:
    """Of an episode that was recorded until a state that is never left: how many of its horizon
    are still to come there. A learner's episodes have them, so the demonstrators' must."""
    mdp = task.mdp
    rows = mdp.transition[last * mdp.num_actions : (last + 1) * mdp.num_actions]
    stays = np.allclose(rows[:, [last]].toarray(), 1.0)
    return max(mdp.horizon - steps, 0) if stays and mdp.horizon is not None else 0


# Replays -----------------------------------------------------------------------------------------


def replay_all(
    task: GymTask, every: Sequence[Log], deterministic: bool
) -> tuple[dict[str, Replay], dict[str, str], list[Finding]]:
    """Replays by label of the episodes that need one, and of a few others.

    Where there is none that could be used, why not, by label.
    """
    where = f"replay of {task.name!r}"
    if not deterministic:
        word = "the environment is not deterministic"
        why_not = {log.label: word for log in every}
        return {}, why_not, [Finding("note", where, f"{word}, so nothing can be replayed")]
    seeded = [log for log in every if log.seed is not None]
    why_not = {log.label: "no seed was recorded" for log in every if log.seed is None}
    if not seeded:
        word = "not replayable: no seed of a reset was recorded"
        return {}, why_not, [Finding("note", where, word)]
    needed = [log for log in seeded if _needs_replay(task, log)]
    chosen = needed or seeded[:REPLAYED]
    replays = {log.label: replay(task, *_begun(log)) for log in chosen}
    wrong = {log.label: disagreement(log, replays[log.label]) for log in chosen}
    word = f"{len(chosen)} of {len(every)} episodes, all the same"
    if any(wrong.values()):
        last = max(n for n, log in enumerate(seeded) if wrong.get(log.label))
        before = seeded[: last + 1]
        for log, done in zip(before, replay_in_order(task, list(map(_begun, before))), strict=True):
            if wrong.get(log.label) and disagreement(log, done) is None:
                replays[log.label], wrong[log.label] = done, None
                word = f"{len(chosen)} of {len(every)} episodes, the same in their order only: "
                word += "the environment keeps something over its resets"
    findings = [Finding("ok", where, word), *rounded(where, chosen, replays)]
    bad = {label: problem for label, problem in wrong.items() if problem}
    if bad:
        label, problem = next(iter(bad.items()))
        why_not |= {n: f"its replay goes another way: {p}" for n, p in bad.items()}
        word = (
            f"{len(bad)} of {len(chosen)} episodes go another way than they were recorded "
            f"({label}: {problem}): other arguments, another version of the simulator, or other "
            "actions"
        )
        findings = [Finding("warning", where, word)]
    return {n: done for n, done in replays.items() if n not in bad}, why_not, findings


def _begun(log: Log) -> tuple[int, Array]:
    assert log.seed is not None
    return log.seed, np.asarray(log.actions, np.float64)


def rounded(where: str, every: Sequence[Log], replays: dict[str, Replay]) -> list[Finding]:
    """A remark where what was recorded differs from a replay by no more than rounding."""
    for log in every:
        done = replays[log.label]
        if (
            disagreement(log, done) is None
            and (at := first_difference(done.observations, log.observations)) is not None
        ):
            word = (
                f"{log.label}: observation {at} differs from a replay by less than {ROUNDED:g} of "
                "its size: rounded when it was recorded? It is taken as it is"
            )
            return [Finding("note", where, word)]
    return []


def disagreement(log: Log, done: Replay) -> str | None:
    """How a replay differs from the log, or None."""
    at = first_difference(done.observations, log.observations, ROUNDED)
    if at is not None:
        return f"observation {at} differs"
    if len(done) != len(log):
        return f"it ends after {len(done)} steps, the log has {len(log)}"
    if done.terminated != log.terminated:
        ends = "ends by itself" if done.terminated else "does not end by itself"
        return f"the environment's episode {ends}, the log says the opposite"
    return None


def _needs_replay(task: GymTask, log: Log) -> bool:
    """Does the log lack what only the environment can tell?"""
    if log.rewards is None and task.reward is None:
        return True
    if log.features is not None or task.transition is not None:
        return False
    return any(_column(task, f.name, log) is None for f in task.features)


def completed(task: GymTask, log: Log, done: Replay | None, why_not: str) -> Trajectory:
    """why_not: there is no replay, where there is none."""
    features = features_of(task, log, done, why_not)
    if done is not None:
        require_same_features(task, log, features, done)
    rewards = log.rewards if log.rewards is not None else rewards_of(task, log, done, why_not)
    return Trajectory(log.observations, log.actions, rewards, features, log.terminated, log.seed)


def require_same_features(task: GymTask, log: Log, features: Array, done: Replay) -> None:
    """What was logged is what the environment says: the same unit, the same key."""
    for k, feature in enumerate(task.features):
        at = first_difference(features[:, k], done.features[:, k], ROUNDED)
        if at is not None:
            raise InvalidInput(
                f"{log.label}: feature {feature.name!r} is {features[at, k]:g} at step {at}, in a "
                f"replay it is {done.features[at, k]:g} {feature.unit}; convert the log, or leave "
                "the feature out to have it computed"
            )


def features_of(task: GymTask, log: Log, done: Replay | None, why_not: str) -> Array:
    """phi [T, d]: as logged, computed from the transition, or from the replay."""
    computed = _by_function(task.transition, log)
    columns = [] if computed is not None else [_column(task, f.name, log) for f in task.features]
    if log.features is not None:
        given = np.asarray(log.features, np.float64)
        for k, feature in enumerate(task.features):
            own = computed[:, k] if computed is not None else columns[k]
            if own is not None and (at := first_difference(given[:, k], own, ROUNDED)) is not None:
                raise InvalidInput(
                    f"{log.label}: feature {feature.name!r} is {given[at, k]:g} at step {at}, "
                    f"computed it is {own[at]:g}; leave the logged features out, or declare the "
                    "feature as it was recorded"
                )
        return given
    if computed is not None:
        return computed
    found = []
    for k, column in enumerate(columns):
        if column is not None:
            found.append(column)
        elif done is not None:
            found.append(done.features[:, k])
        else:
            name = task.features[k].name
            key = task.sources.get(name, name)
            raise InvalidInput(
                f"{log.label}: no values for the feature {name!r}: the log has no info {key!r} "
                f"(it has {', '.join(log.infos) or 'none'}) and can't be replayed ({why_not}); "
                "record it, or the seeds of the resets, or declare it by column or function"
            )
    phi = np.column_stack(found)
    if not np.isfinite(phi).all():
        raise InvalidInput(f"{log.label}: a feature is not finite; repair or drop the episode")
    return phi


def _by_function(function: Callable[..., Array] | None, log: Log) -> Array | None:
    """A function of the transition, over the whole episode."""
    if function is None:
        return None
    given = (log.observations[:-1], log.actions, log.observations[1:])
    return np.asarray(function(*(np.asarray(x, np.float64) for x in given)), np.float64)


def _column(task: GymTask, name: str, log: Log) -> Array | None:
    """One feature's values [T] from the observations or the logged infos."""
    place = task.sources.get(name, name)
    if isinstance(place, int):
        return np.asarray(log.observations[1:, place], np.float64)
    return np.asarray(log.infos[place], np.float64) if place in log.infos else None


def rewards_of(task: GymTask, log: Log, done: Replay | None, why_not: str) -> Array:
    """The task's rewards [T] of a log that has none."""
    computed = _by_function(task.reward, log)
    if computed is not None:
        return computed
    if done is None:
        raise InvalidInput(
            f"{log.label}: no rewards, and it can't be replayed ({why_not}); record rewards or the "
            "seeds of the resets, or give the task a reward function"
        )
    return done.rewards


def reward_findings(
    task: GymTask, every: Sequence[Log], replays: dict[str, Replay]
) -> list[Finding]:
    """Are the logged rewards the task's?"""
    where, compared = f"rewards of {task.name!r}", 0
    missing = sum(log.rewards is None for log in every)
    for log in every:
        own = _by_function(task.reward, log)
        if own is None and log.label in replays:
            own = replays[log.label].rewards
        if own is None or log.rewards is None:
            continue
        compared += 1
        at = first_difference(np.asarray(log.rewards, np.float64), own, ROUNDED)
        if at is not None:
            raise InvalidInput(
                f"{log.label}: the reward is {log.rewards[at]:g} at step {at}, that of task "
                f"{task.name!r} is {own[at]:g}; give the task the demonstrators' reward, or leave "
                "rewards out to have them computed"
            )
    if missing:
        return [Finding("note", where, f"{missing} of {len(every)} episodes had none: recomputed")]
    if not compared:
        word = "taken as logged; nothing to compare them with (no replay, no reward function)"
        return [Finding("note", where, word)]
    return [Finding("ok", where, f"recomputed in {compared} of {len(every)} episodes, the same")]
