"""Progress of a run: a live line on a terminal, with a line more for each solve of several at once;
plain lines otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from textwrap import shorten
from typing import Any

from rich.console import Console
from rich.status import Status

QUIET_EVERY = 20  # updates between lines where there is no terminal
BURST = 0.02  # seconds: no update is that fast


class LiveLine:
    """One line that changes, on a terminal; elsewhere now and then a line more."""

    def __init__(self, console: Console, status: Status) -> None:
        self.console, self.status = console, status

    @property
    def several(self) -> bool:
        """Is there room for several lines that change?"""
        return self.console.is_terminal

    def print(self, text: str) -> None:
        self.console.print(text)

    def show(self, text: str, lasting: bool, below: Sequence[str] = ()) -> None:
        """lasting: it is also a line where there is no terminal; below: lines that only one has."""
        if not self.console.is_terminal:
            if lasting:
                self.console.print(text)
            return
        room = max(1, self.console.height - 3)
        more = [f"and {len(below) - room} more"] if len(below) > room else []
        self.status.update("\n".join([text, *below[:room], *more]))


OnEvent = Callable[[dict[str, Any]], None]


@contextmanager
def shown(progress: bool | None, on_event: OnEvent | None, what: str = "game") -> Iterator[OnEvent]:
    """What a call from Python tells of its events: on stderr, so that a script's output is its own.

    progress: None tells it where somebody looks, on a terminal or in a notebook, and where nobody
    else is told (on_event).
    """
    # In a notebook plain lines: rich's own way writes HTML, a block for each.
    console = Console(highlight=False, soft_wrap=True, stderr=True, force_jupyter=False)
    if progress is None:
        progress = on_event is None and (console.is_terminal or Console().is_jupyter)
    if not progress:
        yield on_event or (lambda event: None)
        return
    with run_progress(what, console) as line:

        def tell(event: dict[str, Any]) -> None:
            if on_event is not None:
                on_event(event)
            line(event)

        yield tell


@contextmanager
def run_progress(what: str = "game", console: Console | None = None) -> Iterator[Progress]:
    """For any run: called with its events. what: of a single solve, what is solved."""
    console = console or Console(highlight=False, soft_wrap=True)
    status = console.status("setting up")
    with status if console.is_terminal else nullcontext():
        yield Progress(LiveLine(console, status), what)


class Progress:
    """Tells of each iteration, each solve, and of the updates inside a training; from the second
    update on also the time left (the first compiles)."""

    def __init__(self, line: LiveLine, what: str = "game") -> None:
        self.line, self.what = line, what
        self.tasks = self.iterations = self.total = self.each = self.finished = 0
        self.solved, self.under_way = 0, dict[tuple[int, int], int]()
        self.last: dict[tuple[int, int], tuple[float, int]] = {}
        self.lines: dict[tuple[int, int], str] = {}  # of solves that run elsewhere
        self.spent, self.done = 0.0, 0

    def __call__(self, event: dict[str, Any]) -> None:
        told = {
            "start": self.start,
            "cloning": lambda e: self.line.print("cloning the demonstrators"),
            "counting": lambda e: self.line.print(
                f"counting violations in {e['episodes']} episodes"
            ),
            "began": self.began,
            "update": self.update,
            "lost": lambda e: self.line.print(
                f"{self._where(e)}  task {e['k']}: {e['why']} ({e['where']}); it goes on elsewhere"
            ),
            "solved": self.on_solved,
            "iteration": self.iteration,
            "damaged": lambda e: self.line.print(f"warning: {e['what']}: {e['so']}"),
            "analysis": self.analysis,
        }.get(event["event"])
        if told is not None:
            told(event)

    def start(self, event: dict[str, Any]) -> None:
        self.tasks, self.iterations = event["tasks"], event["iterations"]
        self.total, self.each = event.get("steps", 0), event.get("each", 0)
        tasks = f"{self.tasks} task{'s' * (self.tasks != 1)}"
        parts = [tasks]
        if self.iterations:
            parts.append(f"at most {self.iterations} iterations")
        if self.total:
            parts.append(f"at most {self.total} environment steps")
        self.line.print(", ".join(parts))
        if event.get("failed"):
            self.line.print(f"{event['failed']} failed demonstration(s) left out")

    def began(self, event: dict[str, Any]) -> None:
        who = (event["i"], event["k"])
        self.lines[who] = f"  {self._where(event)}  task {event['k']}  {event['where']}"
        self.line.show(f"{len(self.lines)} solves under way", False, [*self.lines.values()])

    def update(self, event: dict[str, Any]) -> None:
        """Count work that took time: a resumed solve's old updates come in a burst."""
        who = (event["i"], event["k"])
        now, steps = event["seconds"], event["env_steps"]
        self.under_way[who] = event["updates"] * steps // event["update"]
        before, had = self.last.get(who, (now, steps))
        seconds, more = now - before, steps - had
        if more > 0 and seconds > BURST:
            self.spent, self.done = self.spent + seconds, self.done + more
        self.last[who] = (now, steps)
        text, place = f"{self._where(event)}  {update_line(event)}", event.get("where")
        lasting = event["update"] in (1, event["updates"]) or event["update"] % QUIET_EVERY == 0
        if place is None:
            self.line.show(text + self._left(), lasting)
            return
        text = f"{text}  task {event['k']}  {place}"
        speed = f"  {more / seconds:.0f} steps/s" if more > 0 and seconds > BURST else ""
        self.lines[who] = f"  {text}{speed}"
        if self.line.several:
            text, lasting = f"{len(self.lines)} solves under way", False
        self.line.show(text + self._left(), lasting, [*self.lines.values()])

    def on_solved(self, event: dict[str, Any]) -> None:
        who = (event["i"], event["k"])
        self.lines.pop(who, None)
        planned = self.under_way.pop(who, 0)
        was_known = event.get("known") and not planned  # by a session before
        self.solved += self.each if was_known else planned
        self.finished += 1
        if self.tasks > 1:
            n = (self.finished - 1) % self.tasks + 1
            self.line.show(f"{self._where(event)}  {n} of {self.tasks} tasks", lasting=False)

    def iteration(self, event: dict[str, Any]) -> None:
        self.line.print(iteration_line(event))

    def analysis(self, event: dict[str, Any]) -> None:
        of = event.get("of")
        self.line.show(event["name"].replace("_", " ") + (f": {of}" if of else ""), bool(of))

    def _where(self, event: dict[str, Any]) -> str:
        if not self.iterations:
            return self.what
        return f"iteration {event['i']}/{self.iterations}" if event["i"] else "no constraint"

    def _left(self) -> str:
        """Steps a second over all solves that are under way, and when the last will be done."""
        if not self.done:
            return ""
        rate = self.done / self.spent * max(1, len(self.under_way))
        steps = sum(self.last[who][1] for who in self.under_way)
        left = max(0, self.total - self.solved - steps) / rate
        return f"  {rate:.0f} steps/s  {left / 60:.1f} min left"


def update_line(event: dict[str, Any]) -> str:
    """One update: reward, cost against the limit, multiplier."""
    parts = [f"update {event['update']}/{event['updates']}"]
    if event["reward"] is not None:
        parts.append(f"reward {event['reward']:.4g}")
    parts.append(f"cost {event['cost']:.3g} (limit {event['delta']:.4g})")
    parts.append(f"lam {event['lam']:.3g}")
    return "  ".join(parts)


def iteration_line(event: dict[str, Any]) -> str:
    """One iteration in words: learners against experts, and the constraint they were under."""
    constraint = event["constraint"]
    parts = [
        f"iteration {event['i']}/{event['total']}"
        + (f", trained on under c_{event['under']}" if event.get("under") else ""),
        shorten(constraint["description"], 60, placeholder=" .."),
        f"reward {event['learner_reward_mean']:.4g} (experts {event['expert_reward_mean']:.4g})",
        f"cost {event['learner_cost_mean']:.3g} (limit {event['delta_mean']:.3g})",
    ]
    if event["learner_true_cost_mean"] is not None:
        parts.append(f"true cost {event['learner_true_cost_mean']:.3g}")
    if constraint.get("iou") is not None:
        parts.append(f"IoU {constraint['iou']:.3f}")
    elif event["constraint_error"] is not None:
        parts.append(f"error {event['constraint_error']:.4f}")
    return "  ".join([*parts, f"{event['seconds']:.1f} s"])
