"""Progress of a run: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from ringfence.solvers.ppo import Record

QUIET_EVERY = 20  # updates between lines where there is no terminal


class Progress:
    """Called with a run's events; prints one line per iteration, and a bar in between."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Bar(
            *columns,
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("reading demonstrations", total=None)

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

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


class TrainingProgress:
    """Called with a training's records: a live line on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.live = self.console.is_terminal
        self.status = self.console.status("compiling and first steps")
        self.first: tuple[float, int] | None = None

    def __enter__(self) -> TrainingProgress:
        if self.live:
            self.status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.status.stop()

    def __call__(self, record: Record) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = (now, record.env_steps)
        line = training_line(record, now - self.first[0], record.env_steps - self.first[1])
        if self.live:
            self.status.update(line)
        elif record.update % QUIET_EVERY == 0 or record.update == record.updates:
            self.console.print(line)


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


class ControlProgress:
    """Called with the events of a run on a continuous world; always knows the time left."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.live = self.console.is_terminal
        self.status = self.console.status("reading demonstrations")
        self.iterations = self.total = self.solved = self.under_way = 0
        self.what = "expert"
        self.last: tuple[float, int] = (0.0, 0)
        self.spent, self.done = 0.0, 0

    def __enter__(self) -> ControlProgress:
        if self.live:
            self.status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.status.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "start":
            self.iterations, self.total = event["iterations"], event["steps"]
            self.what = event.get("what", self.what)
            self.console.print(f"{event['tasks']} task(s), at most {self.total} environment steps")
        elif kind == "cloning":
            self.console.print("cloning the demonstrators")
        elif kind == "update":
            self.update(event)
        elif kind == "solved":
            self.solved, self.under_way = self.solved + self.under_way, 0
        elif kind == "iteration":
            self.console.print(control_line(event))

    def update(self, event: dict[str, Any]) -> None:
        """Count work that took time: a resumed solve's old updates come in a burst."""
        now, steps = event["seconds"], event["env_steps"]
        self.under_way = event["updates"] * steps // event["update"]
        seconds, more = now - self.last[0], steps - self.last[1]
        if more > 0 and seconds > BURST:
            self.spent, self.done = self.spent + seconds, self.done + more
        self.last = (now, steps)
        line = f"{self._where(event)}  {update_line(event)}{self._left(steps)}"
        if self.live:
            self.status.update(line)
        elif event["update"] % QUIET_EVERY == 0 or event["update"] == event["updates"]:
            self.console.print(line)

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
        event["constraint"]["description"],
        f"reward {event['learner_reward_mean']:.0f} (experts {event['expert_reward_mean']:.0f})",
        f"cost {event['learner_cost_mean']:.1f} (limit {event['delta_mean']:.1f})",
    ]
    if event["learner_true_cost_mean"] is not None:
        parts.append(f"true cost {event['learner_true_cost_mean']:.1f}")
    if event["constraint_error"] is not None:
        parts.append(f"error {event['constraint_error']:.4f}")
    return "  ".join([*parts, f"{event['seconds']:.0f} s"])
