"""What a game left unsettled is said, and nothing where it settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from played_games import chosen, drive, played, records, solution
from ringfence.analysis.unsettled import unsettled
from ringfence.objects import behaviour_of

#: The first learner was fast; all constraints but the first forbid that.
LIMITS, LEARNERS = [9.0, 1.3, 1.3], [solution(2.0, 2.2), solution(1.2, 1.2), solution(1.2, 1.3)]


def of(i: int = 3, limits: list[float] | None = None, **changes: Any) -> list[str]:
    choice = replace(chosen(i, 3), unexplained=(1, 0, 0), **changes)
    return list(unsettled(played(records=records(limits or LIMITS, LEARNERS), chosen=choice)))


def test_a_settled_game_leaves_nothing() -> None:
    assert of() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"i": 1}, "1 of the 1 learners that earned more than the demonstrators are allowed"),
        ({"conflicts": 0}, "no learner of any iteration earned more than the demonstrators"),
        ({"done_well": (0, 0, 0)}, "no learner of any iteration earned what the demonstrators do"),
        ({"limits": [9.0, 1.3, 2.1]}, "c_2 explains as much as the constraint that was selected"),
    ],
)
def test_what_is_unsettled_is_said(changes: dict[str, Any], words: str) -> None:
    (only,) = of(**changes)
    assert words in only


def test_constraints_agree_by_the_steps_that_they_forbid() -> None:
    """1.25 forbids one step more than 1.3: of three, two are forbidden by both."""
    (only,) = of(limits=[9.0, 1.25, 1.3])
    assert "both forbid 67%" in only
    assert of(limits=[9.0, 1.31, 1.3]) == []


def test_without_conflicts_who_charges_fewer_learners_is_no_other_answer() -> None:
    """c_1 forbids nothing of what was met, and c_3 what the first learner did."""
    nothing = {"conflicts": 0, "unexplained": (0, 0, 0)}
    choice = replace(chosen(3, 3), **nothing)
    both = [replace(choice, charged=charged) for charged in ((0, 1, 1), (1, 1, 1))]
    found = [list(unsettled(played(records=records(LIMITS, LEARNERS), chosen=c))) for c in both]
    assert [sum("c_1 explains as much" in doubt for doubt in each) for each in found] == [0, 1]


def test_held_out_demonstrators_who_break_the_constraint_are_counted() -> None:
    fast = behaviour_of([drive(1.0, 1.4, 1.5)])
    choice = replace(chosen(3, 3), unexplained=(1, 0, 0))
    game = played(records=records(LIMITS, LEARNERS), chosen=choice, heldout=(fast,))
    (only,) = unsettled(game)
    assert "held-out demonstrations of 1 of 1 tasks break the constraint" in only
