"""What a person sees of a run that writes to a file or a pipe: never silence, always time left."""

from __future__ import annotations

from typing import Any

import pytest

from records import record
from ringfence.cli import progress


def test_a_training_speaks_at_once_then_now_and_then(monkeypatch, capsys) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.training_progress() as report:
        assert capsys.readouterr().out == "compiling and first steps\n"
        for update in range(1, 51):
            now[0] += 6.0  # seconds, for 1000 steps
            report(record(update, None if update == 1 else 700.0, 50, 1000))
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "update 1/50  1000 steps  cost 24.6 (limit 20)  lam 0.500"
    assert [line.split("  ")[0] for line in others] == [
        "update 20/50",
        "update 40/50",
        "update 50/50",
    ]
    # 30 updates of 6 seconds each are left after the twentieth
    assert others[0].endswith(
        "reward 700  cost 24.6 (limit 20)  lam 0.500  167 steps/s  3.0 min left"
    )
    assert others[-1].endswith("0.0 min left")


def game_update(i: int, update: int, seconds: float) -> dict[str, Any]:
    figures = {"reward": 700.0, "cost": 24.6, "delta": 20.0, "lam": 0.5}
    where = {"event": "update", "i": i, "update": update, "updates": 20, "env_steps": 1000 * update}
    return {**where, **figures, "seconds": seconds}


@pytest.mark.parametrize("resumed", [False, True])
def test_a_game_knows_the_time_left_over_all_its_solves(capsys, resumed: bool) -> None:
    """Three iterations of 20 updates at 6 s each; old updates of a resumed solve come in a burst
    and don't count as work."""
    start = {"event": "start", "tasks": 1, "iterations": 3, "steps": 60_000, "failed": 2}
    start["each"] = 20_000
    clock = 0.0
    with progress.control_progress() as report:
        report(start)
        for i in (1, 2):
            for update in range(1, 21):
                clock += 0.001 if resumed and i == 1 else 6.0
                report(game_update(i, update, clock))
            report({"event": "solved"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "setting up",
        "1 task(s), at most 60000 environment steps",
        "2 failed demonstration(s) left out",
    ]
    assert "left" not in lines[3]  # its seconds are a compiler's, too
    assert lines[-1].startswith("iteration 2/3  update 20/20  reward 700  cost 24.6 (limit 20)")
    assert lines[-1].endswith("167 steps/s  2.0 min left")


def test_solves_of_a_session_before_are_not_left_to_do(capsys) -> None:
    start = {"event": "start", "tasks": 1, "iterations": 3, "steps": 60_000, "each": 20_000}
    with progress.control_progress() as report:
        report(start)
        for _ in range(2):
            report({"event": "solved", "known": True})
        for update in range(1, 21):
            report(game_update(3, update, 6.0 * update))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("167 steps/s  0.0 min left")
