"""Progress of a run: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.status import Status

if TYPE_CHECKING:
    from ringfence.solvers.ppo_state import Record

QUIET_EVERY = 20  # updates between lines where there is no terminal


@contextmanager
def run_progress() -> Iterator[RunProgress]:
    """For a run on a finite world or a maze: called with its events."""
    console = Console(highlight=False, soft_wrap=True)
    bar = Bar(
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        yield RunProgress(console, bar)


class RunProgress:
    """Prints one line per iteration, and moves a bar in between."""

    def __init__(self, console: Console, bar: Bar) -> None:
        self.console, self.bar = console, bar
        self.task = bar.add_task("reading demonstrations", total=None)

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "start":
            self.tasks = event["tasks"]
            self.console.print(f"{event['tasks']} tasks, at most {event['iterations']} iterations")
            self.bar.update(self.task, description="iteration 1", total=event["tasks"])
        elif event["event"] == "solved":
            self.bar.advance(self.task)
        elif event["event"] == "iteration":
            self.console.print(iteration_line(event))
            self.bar.reset(self.task, description=f"iteration {event['i'] + 1}", total=self.tasks)


def iteration_line(event: dict[str, Any]) -> str:
    """One iteration in words: learners against experts, and the constraint they were under."""
    parts = [
        f"iteration {event['i']}/{event['total']}",
        f"reward {event['learner_reward_mean']:.2f} (experts {event['expert_reward_mean']:.2f})",
    ]
    if event["learner_true_cost_mean"] is not None:
        parts.append(f"true violation {event['learner_true_cost_mean']:.2f}")
    if event["constraint"].get("iou") is not None:
        parts.append(f"IoU {event['constraint']['iou']:.3f}")
    if "split" in event:
        parts.append(" + ".join(f"{name} {s:.1f}" for name, s in event["split"].items()) + " s")
    parts.append(f"{event['seconds']:.1f} s")
    return "  ".join(parts)


class LiveLine:
    """One line that changes, on a terminal; elsewhere now and then a line more."""

    def __init__(self, console: Console, status: Status) -> None:
        self.console, self.status = console, status

    def print(self, text: str) -> None:
        self.console.print(text)

    def show(self, text: str, update: int, updates: int) -> None:
        if self.console.is_terminal:
            self.status.update(text)
        elif update % QUIET_EVERY == 0 or update in (1, updates):
            self.console.print(text)


@contextmanager
def live_line(first: str) -> Iterator[LiveLine]:
    """A line that says `first` until there is more to say."""
    console = Console(highlight=False, soft_wrap=True)
    status = console.status(first)
    if not console.is_terminal:
        console.print(first)
    with status if console.is_terminal else nullcontext():
        yield LiveLine(console, status)


@contextmanager
def training_progress() -> Iterator[Callable[[Record], None]]:
    """For one training: called with its records."""
    first: list[tuple[float, int]] = []  # when this process had its first record, after which step

    def report(record: Record) -> None:
        now = time.monotonic()
        if not first:
            first.append((now, record.env_steps))
        began, steps = first[0]
        text = training_line(record, now - began, record.env_steps - steps)
        line.show(text, record.update, record.updates)

    with live_line("compiling and first steps") as line:
        yield report


def training_line(record: Record, seconds: float, steps: int) -> str:
    """Reward, cost against the limit, multiplier, speed and time left."""
    parts = [f"update {record.update}/{record.updates}", f"{record.env_steps} steps"]
    if record.reward is not None:
        parts.append(f"reward {record.reward:.0f}")
    parts.append(f"cost {record.cost:.1f} (limit {record.delta:g})")
    parts.append(f"lam {record.lam:.3f}")
    if steps > 0 and seconds > 0:
        left = (record.updates - record.update) * record.env_steps / record.update * seconds / steps
        parts.append(f"{steps / seconds:.0f} steps/s")
        parts.append(f"{left / 60:.1f} min left")
    return "  ".join(parts)


@contextmanager
def control_progress() -> Iterator[ControlProgress]:
    """For a run on a continuous world: called with its events."""
    with live_line("setting up") as line:
        yield ControlProgress(line)


class ControlProgress:
    """Shows every update, and from the second one on the time left (the first also compiles)."""

    def __init__(self, line: LiveLine) -> None:
        self.line = line
        self.iterations = self.total = self.each = self.solved = self.under_way = 0
        self.what = "expert"
        self.last: tuple[float, int] | None = None
        self.spent, self.done = 0.0, 0

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "start":
            self.iterations, self.total = event["iterations"], event["steps"]
            self.each = event.get("each", 0)  # steps of a solve, where there are several
            self.what = event.get("what", self.what)
            self.line.print(f"{event['tasks']} task(s), at most {self.total} environment steps")
            if event.get("failed"):
                self.line.print(f"{event['failed']} failed demonstration(s) left out")
        elif kind == "cloning":
            self.line.print("cloning the demonstrators")
        elif kind == "counting":
            self.line.print(f"counting violations in {event['episodes']} episodes")
        elif kind == "update":
            self.update(event)
        elif kind == "solved":
            was_known = event.get("known") and not self.under_way  # by a session before
            self.solved += self.each if was_known else self.under_way
            self.under_way = 0
        elif kind == "iteration":
            self.line.print(control_line(event))

    def update(self, event: dict[str, Any]) -> None:
        """Count work that took time: a resumed solve's old updates come in a burst."""
        now, steps = event["seconds"], event["env_steps"]
        self.under_way = event["updates"] * steps // event["update"]
        before, had = self.last or (now, steps)
        seconds, more = now - before, steps - had
        if more > 0 and seconds > BURST:
            self.spent, self.done = self.spent + seconds, self.done + more
        self.last = (now, steps)
        text = f"{self._where(event)}  {update_line(event)}{self._left(steps)}"
        self.line.show(text, event["update"], event["updates"])

    def _where(self, event: dict[str, Any]) -> str:
        if not self.iterations:
            return self.what
        return f"iteration {event['i']}/{self.iterations}" if event["i"] else "no constraint"

    def _left(self, steps: int) -> str:
        if not self.done:
            return ""
        left = max(0, self.total - self.solved - steps) * self.spent / self.done
        return f"  {self.done / self.spent:.0f} steps/s  {left / 60:.1f} min left"


BURST = 0.02  # seconds: no update is that fast


def update_line(event: dict[str, Any]) -> str:
    """One update: reward, cost against the limit, multiplier."""
    parts = [f"update {event['update']}/{event['updates']}"]
    if event["reward"] is not None:
        parts.append(f"reward {event['reward']:.0f}")
    parts.append(f"cost {event['cost']:.1f} (limit {event['delta']:.4g})")
    parts.append(f"lam {event['lam']:.3f}")
    return "  ".join(parts)


def control_line(event: dict[str, Any]) -> str:
    """One iteration on a continuous world in words."""
    parts = [
        f"iteration {event['i']}/{event['total']}",
        shorten(event["constraint"]["description"], 60, placeholder=" .."),
        f"reward {event['learner_reward_mean']:.0f} (experts {event['expert_reward_mean']:.0f})",
        f"cost {event['learner_cost_mean']:.1f} (limit {event['delta_mean']:.1f})",
    ]
    if event["learner_true_cost_mean"] is not None:
        parts.append(f"true cost {event['learner_true_cost_mean']:.1f}")
    if event["constraint_error"] is not None:
        parts.append(f"error {event['constraint_error']:.4f}")
    return "  ".join([*parts, f"{event['seconds']:.0f} s"])
