"""What determines a run on a continuous world, as frozen dataclasses and as TOML.

A run's config.toml and the file that a user writes for `ringfence learn my.toml` are one format:
the user's leaves out what shall have its default, the run's has everything written out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ringfence.errors import InvalidInput
from ringfence.runs import config as configs
from ringfence.solvers.cloning import CloningConfig
from ringfence.solvers.ppo_config import PPOConfig

Kind = Literal["ant", "ant-bullet", "gym"]
Player = Literal["regression", "weighted", "payoff"]
Carry = Literal["nothing", "critics", "policy"]

#: Where an iteration of the game differs from a single solve: it begins at a cloned policy, so it
#: needs fewer steps; and its limit is what the experts use, so the learner shall use it, too.
ITERATION: dict[str, Any] = {
    "env_steps": 200_000,
    "evaluation_episodes": 16,
    "margin": 0.0,
    "checkpoint_every": 20,
}
#: On one simulator. Bullet's clone (1630 against its experts' 1617) came down to 1425 within 80,000
#: steps at a rate of 3e-4, and up to 1662 within 120,000 at 1e-4. MuJoCo's clone (1489) came to
#: 1578 at 3e-4, to 1503 at 1e-4.
ITERATION_ON: dict[str, dict[str, Any]] = {"ant-bullet": {"learning_rate": 1e-4}}


def iteration(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """PPO's settings in a game on a kind of world; `own` ones go before."""
    return {**ITERATION, **ITERATION_ON.get(kind, {}), **own}


@dataclass(frozen=True)
class FeatureConfig:
    """A constraint's input. Its value is a key of `info`, by default its name, or a column of
    the observation that the step led to."""

    name: str
    unit: str = "1"
    info: str | None = None
    column: int | None = None


@dataclass(frozen=True)
class TaskConfig:
    """A task of the world: its own arguments for the environment's maker, its own reward.

    reward: "module:function" of (observations, actions, next observations) -> [N]; wrapper:
    "module:function" of an environment, around which it puts a gymnasium.Wrapper.
    """

    name: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    reward: str = ""
    wrapper: str = ""


@dataclass(frozen=True)
class ControlWorld:
    """A continuous world: an Ant, or any Gymnasium environment (`env`, with `kwargs`).

    feature_function: "module:function" of the transition, in the place of the features' sources.
    full_state: the observation's numbers are features, too. truth: an inequality, where it is
    known; reports compare with it, nothing learns from it.
    """

    kind: Kind
    env: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    features: tuple[FeatureConfig, ...] = ()
    feature_function: str = ""
    full_state: bool = False
    tasks: tuple[TaskConfig, ...] = ()
    truth: str = ""

    @property
    def name(self) -> str:
        return self.env if self.kind == "gym" else self.kind


@dataclass(frozen=True)
class ControlDemos:
    """Where the demonstrations are; in a run the copy `demos`, with the hash of its content.

    path: a folder that `ringfence demos make` wrote, an .npz file (layout: ringfence.demos.logs), a
    Minari folder or id; paths: the same by task, in the place of `path`. heldout: the share of
    each task's episodes, its last ones, that only selection sees (a folder of `demos make` has
    its own split).
    """

    path: str = "demos"
    paths: dict[str, Any] = field(default_factory=dict)
    heldout: float = 0.3
    content_hash: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.heldout < 1:
            raise InvalidInput(
                f"[demos] heldout must be between 0 and 1, a share of episodes, got {self.heldout}"
            )
        for task, path in self.paths.items():
            if not isinstance(path, str):
                raise InvalidInput(f"[demos] paths: that of task {task!r} must be text")


@dataclass(frozen=True)
class ControlGame:
    """Algorithm 2 (icl) or 3 (mt-icl) on a continuous world.

    constraint: the class: an inequality with ? for what is learned, "linear" or "mlp" on the
    features `on` (empty: all). player: "regression" (the paper's), "weighted" (its data weighted
    by the multipliers) or "payoff", which believes that an expert's episode may cost
    expert_budget. tolerance: what an expert's episode may cost under a network (None: no bound).
    buffer, anneal: of the learners' limit. initial: c_1 is the player's answer to the episodes of
    the cloned policy ("clone") or of an unconstrained learner ("free"). probe: solve the task
    without a constraint first, and stop there if that earns no more than the demonstrators.
    stop_share: of the experts' reward at which a solve within its limit may stop early (0: never).
    drop_failed: leave out demonstrations, and show the constraint player no learners' episodes,
    that failed at the task, told by their returns.
    """

    constraint: str
    on: tuple[str, ...] = ()
    method: Literal["icl", "mt-icl"] = "icl"
    player: Player = "regression"
    expert_budget: float = 0.0
    tolerance: float | None = None
    iterations: int = 10
    epsilon: float = -1.0
    buffer: float = 20.0
    anneal: float = 10.0
    initial: Literal["clone", "free"] = "clone"
    probe: bool = True
    stop_share: float = 0.0
    drop_failed: bool = False
    resamples: int = 200


@dataclass(frozen=True)
class CloneConfig:
    """The policy that every solve begins from; steps = 0 begins from nothing.

    log_std: of its actions (None: the demonstrator's own noise, within bounds). carry: what a
    solve takes over from the iteration before: nothing, the critics (the paper's), or the policy
    with all that belongs to it (then the clone is for the first iteration only). After 100k steps
    of a second iteration with limit 30, "policy" earned 1635 at a cost of 34, "critics" 1611 at
    52; 200k steps with "nothing" 1564 in a third, at 32 for a limit of 22 (MuJoCo, velocity, one
    seed; the experts earn 1666).
    """

    steps: int = 5_000
    batch: int = 128
    learning_rate: float = 1e-3
    log_std: float | None = None
    carry: Carry = "policy"

    def __post_init__(self) -> None:
        CloningConfig(self.steps, self.batch, self.learning_rate)  # refuses what can't work


@dataclass(frozen=True)
class NetworkConfig:
    """The network of the class "mlp"."""

    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 3e-4
    steps: int = 5_000
    batch: int = 256


@dataclass(frozen=True)
class ControlConfig:
    """All that determines a run on a continuous world."""

    command: str
    seed: int
    world: ControlWorld
    demos: ControlDemos
    game: ControlGame
    clone: CloneConfig = field(default_factory=CloneConfig)
    ppo: PPOConfig = field(default_factory=lambda: PPOConfig(**ITERATION))
    network: NetworkConfig = field(default_factory=NetworkConfig)


SECTIONS = ("world", "demos", "game", "clone", "ppo", "network")


def to_toml(config: ControlConfig) -> str:
    """config.toml with every default written out."""
    lines = [
        f"schema = {configs.SCHEMA}",
        f"command = {configs.toml_value(config.command)}",
        f"seed = {config.seed}",
    ]
    for name in SECTIONS:
        lines += configs.section_lines(name, getattr(config, name))
    return "\n".join(lines) + "\n"


def read(path: Path) -> ControlConfig:
    """A run's configuration."""
    return from_document(path, configs.read_document(path))


def read_user(path: Path, command: str, seed: int | None = None) -> ControlConfig:
    """A user's file: schema, command and seed may be left out, as may all that has a default.

    seed: instead of the file's.
    """
    document = user_document(path)
    chosen = document.get("seed", 0) if seed is None else seed
    return from_document(path, {**document, "seed": chosen, "command": command})


def user_document(path: Path) -> dict[str, Any]:
    """The TOML of a user's file."""
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file; give a TOML file that names an environment")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{path}: not valid TOML: {problem}") from None
    if document.setdefault("schema", configs.SCHEMA) != configs.SCHEMA:
        raise InvalidInput(f"{path}: schema {document['schema']!r}, this version reads 1")
    return document


def solve_settings(path: Path) -> PPOConfig:
    """The [ppo] of a user's file for a solve on its own, outside of a game."""
    return configs.section(path, user_document(path), "ppo", PPOConfig)


def from_document(path: Path, document: Mapping[str, Any]) -> ControlConfig:
    """The configuration in a document; what it leaves out has its default."""
    allowed = {"schema", "command", "seed", *SECTIONS}
    for key in document:
        if key not in allowed:
            raise InvalidInput(f"{path}: no entry {key!r} is known here: {sorted(allowed)}")
    world = configs.section(path, document, "world", ControlWorld)
    own = configs.as_table(f"{path}: [ppo]", document.get("ppo", {}))
    return ControlConfig(
        command=configs.scalar(path, document, "command", str),
        seed=configs.seed_of(path, document),
        world=world,
        demos=configs.section(path, document, "demos", ControlDemos),
        game=configs.section(path, document, "game", ControlGame),
        clone=configs.section(path, document, "clone", CloneConfig),
        ppo=configs.build(f"{path}: [ppo]", iteration(world.kind, own), PPOConfig),
        network=configs.section(path, document, "network", NetworkConfig),
    )
