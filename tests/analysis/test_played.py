"""What analyses see of a game: the selected constraint and the learners that it answers to."""

from __future__ import annotations

import numpy as np
import pytest

from played_games import played, records, solution


def test_the_selected_constraint_is_the_records() -> None:
    game = played(2)
    assert game.c is game.records[1].c


@pytest.mark.parametrize("i", [1, 2, 3])
def test_a_constraint_answers_to_the_learners_before_it(i: int) -> None:
    game = played(i)
    assert len(game.before) == i - 1
    for seen, record in zip(game.before, game.records, strict=False):
        assert seen == record.shown


def test_the_learners_are_those_that_the_player_saw() -> None:
    """Without the episodes that failed at the task, and weighted by multipliers if it was so."""
    rest = solution(1.0).behaviour
    rounds = records([9.0, 1.6], [solution(2.0, lam=3.0, succeeded=rest), solution(1.5)])
    ((shown,),) = played(2, records=rounds).before
    assert shown is rest
    ((heavy,),) = played(2, records=rounds, weighted=True).before
    np.testing.assert_array_equal(heavy.visits, 3 * rest.visits)
    assert heavy.length == 3 * rest.length
