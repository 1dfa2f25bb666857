"""Worlds and demonstrations as people give them in Python: words, files, functions, arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ringfence.demos.logs import Log, read, read_minari
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory, flag
from ringfence.runs import config as configs
from ringfence.runs.config import build
from ringfence.runs.gather import Logged, as_paths, complete, split
from ringfence.worlds.continuous import ContinuousWorld
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.gym import FeatureConfig, GymTask
from ringfence.worlds.named import find
from ringfence.worlds.world import World

Document = dict[str, Any]


def world_document(world: Any, features: Any, steps: int | None) -> tuple[Document, World | None]:
    """A world, and what a file says beside it: a whole document may be given, too."""
    if isinstance(world, str | Path) and str(world).endswith(".toml"):
        return configs.read_user(Path(world)), None
    if isinstance(world, Mapping) and isinstance(world.get("world"), Mapping):
        return dict(world), None
    return describe(world, features, steps)


def describe(world: Any, features: Any, steps: int | None) -> tuple[Document, World | None]:
    """A world as the document of a configuration; and itself, where no document can describe it."""
    if isinstance(world, str | Path):
        table = configs.world_table(str(world))
        if table["kind"] == "gym":
            table |= gym_features(features) | ({} if steps is None else {"steps": steps})
        return {"world": table}, None
    if isinstance(world, gymnasium.Env):
        world, steps = {_task_name(world): maker_of(world)}, steps or time_limit(world)
    if callable(world) and not hasattr(world, "tasks"):
        name = getattr(world, "__name__", "")
        world = {name if name.isidentifier() else "task": world}  # a lambda has none
    if isinstance(world, Mapping) and "kind" in world:
        return {"world": dict(world)}, None
    if isinstance(world, Mapping):
        return describe_makers(world, features, steps)
    if not hasattr(world, "tasks"):
        raise InvalidInput(
            "a world is a word ('maze', 'gym:ID', a map's path), a TOML file, a Gymnasium "
            "environment or a function that makes one, or one of ours; got "
            f"{type(world).__name__}"
        )
    if features is not None or steps is not None:
        raise InvalidInput("features and steps are for environments; this world has its own")
    if (settings := getattr(world, "settings", None)) is not None:
        return {"world": asdict(settings)}, None
    text = f"{type(world).__name__} {world.name!r}"
    return {"world": {"kind": "python", "description": text}}, world


def maker_of(env: gymnasium.Env[Any, Any]) -> Any:
    """What makes an environment like this one: its id, its spec, or a copy of itself."""
    if isinstance(getattr(env.unwrapped, "P", None), Mapping):
        raise InvalidInput(
            f"{_task_name(env)} is finite, so give its tables: P, r = ringfence.from_gymnasium("
            "env.unwrapped.P), then ringfence.table_world(P, {'task': r}, ..) (docs/python.md)"
        )
    spec = env.spec
    if spec is None:
        return lambda: copy.deepcopy(env)
    if not spec.kwargs and not spec.additional_wrappers:
        return spec.id
    return lambda: gymnasium.make(spec, max_episode_steps=-1)


def time_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    return None if env.spec is None else env.spec.max_episode_steps


def _task_name(env: gymnasium.Env[Any, Any]) -> str:
    return type(env.unwrapped).__name__ if env.spec is None else env.spec.id


def describe_makers(
    makers: Mapping[str, Any], features: Any, steps: int | None
) -> tuple[Document, World | None]:
    """Functions that make environments, by task name: by their names where they have one."""
    if features is None:
        raise InvalidInput(
            "say what the constraint may be about: features=['speed:m/s'] (keys of info), "
            "features={'x': 0} (columns of the observation)"
        )
    names = {task: name_of(maker) for task, maker in makers.items()}
    declared = gym_features(features)
    function = features.get("function") if isinstance(features, Mapping) else None
    named = name_of(function) if callable(function) else ""
    if named is not None and all(names.values()):
        first = next(iter(names.values()))
        own = {task: {} if env == first else {"env": env} for task, env in names.items()}
        tasks = [{"name": task, **entries} for task, entries in own.items()]
        table: Document = {"kind": "gym", "env": first, "tasks": tasks, **declared}
        table |= {"feature_function": named} if named else {}
        return {"world": table | ({} if steps is None else {"steps": steps})}, None
    from ringfence.worlds.python import environments

    known = [build("features", f, FeatureConfig) for f in declared["features"]]
    functions = {t: m if callable(m) else _found(str(m)) for t, m in makers.items()}
    sources: Any = {f.name: f.source() for f in known}
    if callable(function):
        sources = function
    made = environments(functions, [Feature(f.name, f.unit) for f in known], sources, steps)
    text = f"functions that make environments: {', '.join(makers)}"
    return {"world": {"kind": "python", "description": text}}, made


def another(world: World, maker: Callable[..., Any]) -> tuple[Any, World]:
    """The settings and the world of a new task: another function that makes an environment."""
    from ringfence.worlds.python import Config as Objects

    first = world.tasks[0]
    if not isinstance(first, GymTask) or not isinstance(world, ContinuousWorld):
        raise InvalidInput(
            f"a function makes a new task of Gymnasium environments; {world.name} has none: "
            "describe the task by its entries"
        )
    name = getattr(maker, "__name__", "")
    name = name if name.isidentifier() else "new task"
    task = replace(first, env=name, label=name, maker=maker, kwargs={}, reward=None, wrapper=None)
    text = f"a function that makes an environment: {name}"
    return Objects(text), replace(world, tasks=(task,))


def _found(name: str) -> Callable[..., Any]:
    if ":" in name:
        return find(name)
    return lambda: gymnasium.make(name, max_episode_steps=-1)


def name_of(maker: Any) -> str | None:
    """ "module:function", if that finds it again in another process."""
    if isinstance(maker, str):
        return maker
    module, name = getattr(maker, "__module__", ""), getattr(maker, "__qualname__", "")
    if module in ("", "__main__", "builtins") or not name.isidentifier():
        return None
    try:
        same = getattr(import_module(module), name) is maker
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if same else None


def gym_features(features: Any) -> Document:
    """Declared features as [world] has them: "name[:unit]" or "name[:unit]=column" or a mapping."""
    if features is None:
        return {}
    if isinstance(features, Mapping) and "names" in features:
        features = features["names"]
    if isinstance(features, Mapping):
        pairs = [(str(name), place) for name, place in features.items()]
    else:
        pairs = [(text.partition("=")[0], text.partition("=")[2] or None) for text in features]
    declared: list[Document] = []
    for text, place in pairs:
        name, _, unit = text.partition(":")
        entry: Document = {"name": name, "unit": unit or "1"}
        if isinstance(place, int) or (isinstance(place, str) and place.isdecimal()):
            entry["column"] = int(place)
        elif place is not None:
            entry["info"] = place
        declared.append(entry)
    return {"features": declared}


def as_demonstrations(given: Any, world: World, share: float) -> Demonstrations | None:
    """What was given, as demonstrations; None: the configuration names where they are.

    share: of a task's episodes that is held out.
    """
    if given is None or isinstance(given, Demonstrations):
        return given
    single = isinstance(given, Sequence) or hasattr(given, "iterate_episodes")
    if single or (isinstance(given, Mapping) and "actions" in given):
        given = {world.tasks[0].name: given}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"demonstrations are a folder, Demonstrations, or by task name episodes, arrays or "
            f"Minari datasets; got {type(given).__name__}"
        )
    tasks, made = {task.name: task for task in world.tasks}, []
    for name, episodes in given.items():
        if name not in tasks:
            raise InvalidInput(f"task {name!r}: this world has {', '.join(tasks)}")
        made.append(task_demos(tasks[name], episodes, share))
    return Demonstrations(tuple(made), world.features, {"from": "Python"})


def task_demos(task: Any, given: Any, share: float) -> TaskDemos:
    """One task's episodes, the last `share` of them held out."""
    if isinstance(given, TaskDemos):
        return given
    if hasattr(given, "iterate_episodes"):  # a Minari dataset
        episodes: list[Any] = read_minari(task.name, lambda minari: given)
    elif isinstance(given, str | Path):
        episodes = list(read(str(given), Path()))
    else:
        episodes = [given] if isinstance(given, Mapping) else list(given)
    logs = [as_log(task, n, episode) for n, episode in enumerate(episodes)]
    if isinstance(task, FiniteTask):
        return as_paths(task, logs, share)
    logged: Logged = split(task, logs, share)
    return complete(logged, deterministic=True)[0]


def as_log(task: Any, n: int, episode: Any) -> Log:
    """An episode as somebody recorded it: a Log, a Trajectory, or a mapping of arrays."""
    label = f"task {task.name!r}, episode {n}"
    if isinstance(episode, Log):
        return episode
    if isinstance(episode, Trajectory):
        t = episode
        return Log(
            label, t.observations, t.actions, t.rewards, t.features, {}, t.terminated, t.seed
        )
    if not isinstance(episode, Mapping):
        raise InvalidInput(f"{label}: a {type(episode).__name__}; give a mapping of arrays")
    for name in ("observations", "actions"):
        if name not in episode:
            there = ", ".join(map(str, episode)) or "nothing"
            raise InvalidInput(f"{label}: no {name!r}; it has {there}")
    observations, actions = (_columns(episode[name]) for name in ("observations", "actions"))
    given = {name: episode.get(name) for name in ("rewards", "features")}
    arrays = {k: None if v is None else np.asarray(v, np.float64) for k, v in given.items()}
    infos = {str(k): np.asarray(v) for k, v in dict(episode.get("infos", {})).items()}
    ended = flag(episode.get("terminated", False), label)
    features = arrays["features"]
    features = features[:, None] if features is not None and features.ndim == 1 else features
    return Log(label, observations, actions, arrays["rewards"], features, infos, ended,
               episode.get("seed"))  # fmt: skip


def _columns(values: Any) -> Any:
    array = np.asarray(values, np.float64)
    return array[:, None] if array.ndim == 1 else array
