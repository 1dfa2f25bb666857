"""What a person sees of a run that writes to a file or a pipe: never silence, always time left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import ringfence
from ringfence.progress import (
    LiveLine,
    Progress,
    iteration_line,
    run_progress,
    shown,
    update_line,
)

START = {"event": "start", "tasks": 1, "iterations": 3, "steps": 60_000, "each": 20_000}


def update_of(
    i: int, update: int, seconds: float, updates: int = 20, reward: float | None = 700.0
) -> dict[str, Any]:
    """An update of 1000 steps."""
    figures = {"reward": reward, "cost": 24.6, "delta": 20.0, "lam": 0.5}
    where = {"event": "update", "i": i, "k": 0, "update": update, "updates": updates}
    return {**where, "env_steps": 1000 * update, **figures, "seconds": seconds}


def solved(i: int, k: int = 0, known: bool = False) -> dict[str, Any]:
    return {"event": "solved", "i": i, "k": k, "known": known}


def test_a_training_speaks_at_once_then_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress("training") as report:
        report({"event": "start", "tasks": 1, "iterations": 0, "steps": 50_000})
        for update in range(1, 51):
            report(update_of(0, update, 6.0 * update, 50, None if update == 1 else 700.0))
    start, first, *others = capsys.readouterr().out.splitlines()
    assert start == "1 task, at most 50000 environment steps"
    assert first == "training  update 1/50  cost 24.6 (limit 20)  lam 0.5"
    assert [line.split("  ")[1] for line in others] == [
        "update 20/50",
        "update 40/50",
        "update 50/50",
    ]
    # 30 updates of 6 seconds each are left after the twentieth
    assert others[0].endswith(
        "reward 700  cost 24.6 (limit 20)  lam 0.5  167 steps/s  3.0 min left"
    )
    assert others[-1].endswith("0.0 min left")


@pytest.mark.parametrize("resumed", [False, True])
def test_a_game_knows_the_time_left_over_all_its_solves(
    capsys: pytest.CaptureFixture[str], resumed: bool
) -> None:
    """Three iterations of 20 updates at 6 s each; old updates of a resumed solve come in a burst
    and don't count as work."""
    clock = 0.0
    with run_progress() as report:
        report({**START, "failed": 2})
        for i in (1, 2):
            for update in range(1, 21):
                clock += 0.001 if resumed and i == 1 else 6.0
                report(update_of(i, update, clock))
            report(solved(i))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "1 task, at most 3 iterations, at most 60000 environment steps",
        "2 failed demonstration(s) left out",
    ]
    assert "left" not in lines[2]  # its seconds are a compiler's, too
    assert lines[-1].startswith("iteration 2/3  update 20/20  reward 700  cost 24.6 (limit 20)")
    assert lines[-1].endswith("167 steps/s  2.0 min left")


def test_solves_of_a_session_before_are_not_left_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress() as report:
        report(START)
        report(solved(1, known=True))
        report(solved(2, known=True))
        for update in range(1, 21):
            report(update_of(3, update, 6.0 * update))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("167 steps/s  0.0 min left")


def test_what_happens_before_the_first_iteration_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run_progress() as report:
        report(START)
        report({"event": "cloning"})
        report(update_of(0, 1, 0.0))
        report({"event": "counting", "episodes": 100})
        report({"event": "of another version"})
    assert capsys.readouterr().out.splitlines()[1:] == [
        "cloning the demonstrators",
        "no constraint  update 1/20  reward 700  cost 24.6 (limit 20)  lam 0.5",
        "counting violations in 100 episodes",
    ]


class Terminal(LiveLine):
    """What a live line on a terminal says, one after the other."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bool]] = []

    def print(self, text: str) -> None:
        self.said.append((text, True))

    several = True

    def show(self, text: str, lasting: bool, below: Sequence[str] = ()) -> None:
        self.said.append((text, lasting))
        self.below = list(below)


def test_of_several_tasks_the_solved_ones_are_counted_anew_in_each_iteration() -> None:
    line = Terminal()
    report = Progress(line)
    report({"event": "start", "tasks": 2, "iterations": 2})
    for i in (1, 2):
        report(solved(i, 0))
        report(solved(i, 1))
    assert line.said[0] == ("2 tasks, at most 2 iterations", True)
    assert line.said[1:] == [
        (f"iteration {i}/2  {n} of 2 tasks", False) for i in (1, 2) for n in (1, 2)
    ]


def test_solves_elsewhere_have_a_line_each_with_where_they_run_and_their_speed() -> None:
    line = Terminal()
    report = Progress(line)
    report({**START, "tasks": 2, "steps": 120_000})
    for k, place in enumerate(("vm a", "vm b")):
        report({"event": "began", "i": 1, "k": k, "where": place})
    assert line.below == ["  iteration 1/3  task 0  vm a", "  iteration 1/3  task 1  vm b"]
    for n in (1, 2):
        for k, place in enumerate(("vm a", "vm b")):
            report({**update_of(1, n, 6.0 * n), "k": k, "where": place})
    # two at 1000 steps in 6 s each, and 116,000 steps are left
    assert line.said[-1][0] == "2 solves under way  333 steps/s  5.8 min left"
    assert line.below[1].startswith("  iteration 1/3  update 2/20  reward 700")
    assert line.below[1].endswith("task 1  vm b  167 steps/s")
    report({"event": "lost", "i": 1, "k": 1, "where": "vm b", "why": "its node was lost"})
    said = "iteration 1/3  task 1: its node was lost (vm b); it goes on elsewhere"
    assert line.said[-1] == (said, True)
    report(solved(1, 0))
    report({**update_of(1, 3, 18.0), "k": 1, "where": "vm c"})
    assert len(line.below) == 1


def test_solves_elsewhere_are_plain_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run_progress() as report:
        report(START)
        report({"event": "began", "i": 1, "k": 0, "where": "vm a"})
        report({**update_of(1, 1, 0.0), "where": "vm a"})
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "iteration 1/3  update 1/20  reward 700  cost 24.6 (limit 20)  lam 0.5  task 0  vm a"
    )


ROW: dict[str, Any] = {
    "event": "iteration",
    "i": 2,
    "total": 5,
    "constraint": {"description": "speed <= 0.7", "iou": None},
    "learner_reward_mean": 4.5,
    "expert_reward_mean": 4.0,
    "learner_cost_mean": 0.25,
    "delta_mean": 0.5,
    "learner_true_cost_mean": None,
    "constraint_error": None,
    "seconds": 1.26,
}


def test_an_iteration_is_one_line() -> None:
    assert iteration_line(ROW) == (
        "iteration 2/5  speed <= 0.7  reward 4.5 (experts 4)  cost 0.25 (limit 0.5)  1.3 s"
    )


def test_what_only_the_truth_knows_is_told_where_there_is_one() -> None:
    known = {**ROW, "learner_true_cost_mean": 0.125, "constraint_error": 0.05}
    assert iteration_line(known).endswith("true cost 0.125  error 0.0500  1.3 s")
    cells = {**known, "constraint": {"description": "4 cells", "iou": 0.75}}
    assert iteration_line(cells).endswith("true cost 0.125  IoU 0.750  1.3 s")


def test_a_long_constraint_does_not_fill_the_screen() -> None:
    long = {**ROW, "constraint": {"description": "row 0 x col 1; " * 40}}
    assert len(iteration_line(long).split("  ")[1]) <= 60


def test_an_update_without_a_finished_episode_has_no_reward() -> None:
    assert update_line(update_of(1, 1, 0.0, reward=None)) == (
        "update 1/20  cost 24.6 (limit 20)  lam 0.5"
    )


def test_long_analyses_are_told_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run_progress() as report:
        report({"event": "analysis", "name": "budget_curve"})
        report({"event": "analysis", "name": "evidence", "of": "3600 cells"})
    assert capsys.readouterr().out.splitlines() == ["evidence: 3600 cells"]


# From Python -------------------------------------------------------------------------------------


def test_a_call_from_python_tells_nobody_where_nobody_looks_unless_it_is_asked_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = ringfence.read_map("S#0\n...\n")
    ringfence.learn(world)
    assert capsys.readouterr() == ("", "")
    seen: list[str] = []
    ringfence.learn(world, progress=True, on_event=lambda event: seen.append(event["event"]))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("1 task, at most 5 iterations\niteration 1/5")
    assert seen[0] == "start"


@pytest.mark.parametrize("place", ["Console.is_terminal", "_is_jupyter"])
def test_it_is_told_on_a_terminal_and_in_a_notebook_unless_somebody_else_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.setattr(f"rich.console.{place}", True if "." in place else lambda: True)

    def told(progress: bool | None, on_event: Any = None) -> bool:
        with shown(progress, on_event) as tell:
            tell(START)
        return "at most 3 iterations" in "".join(capsys.readouterr())

    assert told(None)
    assert not told(False)
    assert not told(None, lambda event: None)
    assert told(True, lambda event: None)
