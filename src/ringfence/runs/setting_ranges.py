"""The ranges of settings: one table, for files, --set and Python alike, before anything is done.

What a setting means says its dataclass; what it may be together with others, too. A count's upper
end is where memory or time would be used up without a result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from ringfence.errors import InvalidInput

#: By table, and kind where it has kinds: intervals as mathematics writes them, of a number or of
#: each number in a list.
RANGES: dict[str, dict[str, str]] = {
    "game": {
        "iterations": "[1, 10000]",
        "extra": "[0, 10000]",
        "buffer": "[0, inf)",
        "anneal": "[0, inf)",
        "stop_share": "[0, inf)",
    },
    "opening": {
        "steps": "[1, 10000000]",
        "batch": "[1, 1000000]",
        "learning_rate": "(0, 10]",
        "log_std": "[-20, 5]",
    },
    "analysis": {"resamples": "[0, 100000]"},
    "problem": {"episodes": "[2, 100000]", "delta": "[0, inf)", "true_limit": "[0, inf)"},
    "experts": {
        "paths": "[1, 10000]",
        "heldout": "[0, 10000]",
        "delta": "[0, inf)",
        "noise": "[0, inf)",
        "seed": "[0, inf)",
    },
    "player.regression": {
        "tolerance": "[0, inf)",
        "network.hidden": "[1, 8192]",
        "network.learning_rate": "(0, 10]",
        "network.final_rate": "[0, 10]",
        "network.steps": "[1, 10000000]",
        "network.batch": "[2, 1000000]",
        "network.spread": "[0, inf)",
    },
    "player.payoff": {"expert_budget": "[0, inf)"},
    "solver.soft": {"temperature": "[0, inf)"},
    "solver.lagrangian": {"steps": "[1, 10000000]"},
    "solver.planner": {"episodes": "[1, 10000]"},
    "solver.ppo": {
        "env_steps": "[1, 1000000000000]",
        "copies": "[1, 16384]",
        "steps": "[1, 1000000]",
        "batch": "[1, 4194304]",
        "passes": "[1, 1000]",
        "hidden": "[1, 8192]",
        "learning_rate": "[0, 10]",
        "cool_down": "[0, 1]",
        "value_weight": "[0, inf)",
        "clip": "(0, inf)",
        "gae": "[0, 1]",
        "discount": "(0, 1]",
        "gradient_clip": "(0, inf)",
        "initial_log_std": "[-20, 5]",
        "last_layer_scale": "[0, inf)",
        "entropy_weight": "[0, inf)",
        "gain_p": "[0, inf)",
        "gain_i": "[0, inf)",
        "gain_d": "[0, inf)",
        "gradient_rate": "[0, inf)",
        "error_clip": "(0, inf)",
        "cost_share": "(0, 1]",
        "initial_lam": "[0, inf)",
        "critic_first": "[0, 1000000]",
        "start_share": "[0, 1]",
        "evaluation_episodes": "[2, 10000]",
        "stop_window": "[1, 1000000]",
        "keep_lag": "[0, 1000000]",
        "checkpoint_every": "[1, 1000000000]",
        "kl": "[0, inf)",
        "minibatches": "[1, 1000000]",
        "fixed_lam": "[0, inf)",
        "window": "[1, 1000000]",
        "test_episodes": "[0, 10000]",
    },
    "world.grid": {"horizon": "[1, 1000000]", "slip": "[0, 1]"},
    "world.tables": {"horizon": "[1, 1000000]", "discount": "(0, 1]"},
    "world.gym": {"steps": "[1, 10000000]"},
    "world.ant": {"steps": "[1, 1000000]"},
    "world.ant-maze": {"horizon": "[1, 1000000]"},
}


def check_ranges(where: str, table: str, settings: Any) -> None:
    """where: begins the message. Settings that are None, or of another kind, have no range."""
    kind = getattr(settings, "kind", None)
    ranges: Mapping[str, str] = RANGES.get(f"{table}.{kind}", RANGES.get(table, {}))
    for name, interval in ranges.items():
        try:
            value = attrgetter(name)(settings)
        except AttributeError:  # experts of another kind have other settings
            continue
        for number in value if isinstance(value, tuple | list) else (value,):
            if number is not None and not within(number, interval):
                raise InvalidInput(f"{where} {name}: {value!r:.80} is not in {interval}")


def within(number: float, interval: str) -> bool:
    """Is the number in an interval such as "(0, 1]"?"""
    low, high = (float(end) for end in interval[1:-1].split(","))
    above = number > low or (interval[0] == "[" and number == low)
    below = number < high or (interval[-1] == "]" and number == high)
    return above and below and not math.isnan(number)
