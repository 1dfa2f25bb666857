"""Options of the command line that stand for one entry of the configuration each."""

from __future__ import annotations

from typing import Any

#: By name: the entry, its type ("list": words between commas), help.
OPTIONS: dict[str, tuple[str, Any, str]] = {
    "class": ("game.constraint", str, "'table', 'linear', 'mlp', or an inequality with ? for what "
              "is learned, such as 'speed <= ?'"),
    "over": ("game.on", "list", "linear and mlp: features, such as x,y (default: all)"),
    "method": ("game.method", ("mt-icl", "icl"), "Algorithm 3 (many tasks) or 2 (one)"),
    "player": ("player.kind", str, "the constraint player: regression, ftrl or payoff"),
    "expert-budget": ("player.expert_budget", float, "payoff: what an expert's episode may cost"),
    "iterations": ("game.iterations", int, "at most this many"),
    "solver": ("solver.kind", str, "the policy player: soft, lp, lagrangian, planner or ppo"),
    "steps": ("solver.env_steps", int, "environment steps of a training"),
    "truth": ("world.truth", str, "continuous worlds: an inequality that made experts keep and "
              "reports compare with; nothing learns from it"),
    "horizon": ("world.horizon", int, "maps, gym: steps of an episode"),
    "slip": ("world.slip", float, "maps: the chance of a random move"),
}  # fmt: skip
