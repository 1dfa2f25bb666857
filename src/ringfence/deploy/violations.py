"""Counting violations while episodes run, and what the counts say."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ringfence.binomial import binomial_interval
from ringfence.errors import InvalidInput

#: A cost is over the limit beyond rounding: sums of a thousand small numbers.
ROUNDING = 1e-9

COLUMNS = ("episode", "environment", "steps", "violating_steps", "cost", "limit", "over")


@dataclass
class Episode:
    """An episode so far."""

    steps: int = 0
    violating: int = 0
    cost: float = 0.0


class Violations:
    """Counts over the episodes of several environments that run side by side.

    A step violates where raw > 0; an episode where its summed cost is over the limit. Only
    finished episodes count as episodes; `left` is how many were reset before their end.
    """

    def __init__(self, environments: int, limit: float, log: str | Path | None = None) -> None:
        if not math.isfinite(limit):
            raise InvalidInput(f"the limit on an episode's cost must be a number, got {limit}")
        self.limit = limit
        self.steps = self.violating_steps = self.episodes = self.episodes_over = self.left = 0
        self.total_cost = self.worst_cost = 0.0  # of finished episodes
        self._running = [Episode() for _ in range(environments)]
        self._file = _open(log) if log is not None else None
        if self._file is not None:
            csv.writer(self._file).writerow(COLUMNS)

    def step(self, environment: int, cost: float, raw: float, ended: bool) -> None:
        if not (math.isfinite(cost) and math.isfinite(raw)):
            raise InvalidInput(
                f"the cost of a step is {cost}, its raw value {raw}; look at the environment's info"
            )
        episode = self._running[environment]
        episode.steps += 1
        episode.cost += cost
        self.steps += 1
        if raw > 0:
            episode.violating += 1
            self.violating_steps += 1
        if ended:
            self._finish(environment, episode)

    def leave(self, environment: int) -> None:
        """The environment is reset; an episode in its midst is given up."""
        if self._running[environment].steps:
            self.left += 1
            self._running[environment] = Episode()

    def _finish(self, environment: int, episode: Episode) -> None:
        over = episode.cost > self.limit + ROUNDING
        self.worst_cost = max(self.worst_cost, episode.cost) if self.episodes else episode.cost
        self.episodes += 1
        self.episodes_over += over
        self.total_cost += episode.cost
        self._running[environment] = Episode()
        if self._file is not None:
            line = (episode.steps, episode.violating, episode.cost, self.limit, int(over))
            csv.writer(self._file).writerow((self.episodes, environment, *line))
            self._file.flush()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Exact binomial interval of the chance that an episode is over the limit."""
        return binomial_interval(self.episodes_over, self.episodes, level)

    def summary(self) -> str:
        share = self.violating_steps / self.steps if self.steps else 0.0
        steps = f"{self.violating_steps} of {self.steps} steps violate ({share:.1%})"
        left = f"; {self.left} episodes were left before their end" if self.left else ""
        if not self.episodes:
            return f"{steps}; no episode has finished yet{left}"
        low, high = self.interval()
        return (
            f"{steps}; an episode costs {self.total_cost / self.episodes:.4g} on average and "
            f"{self.worst_cost:.4g} at most, the limit is {self.limit:.4g}; "
            f"{self.episodes_over} of {self.episodes} episodes are over it, so the chance of one "
            f"is {low:.1%} to {high:.1%} (95%){left}"
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _open(log: str | Path) -> TextIO:
    try:
        return open(log, "x", newline="", encoding="utf-8")
    except FileExistsError:
        raise InvalidInput(f"{log}: it exists already; choose another file") from None
    except OSError as problem:
        raise InvalidInput(f"{log}: can't be written ({problem.strerror})") from None
