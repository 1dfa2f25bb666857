"""Selection: the rule of the held-out gap, on hand-made records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint
from ringfence.game import Record
from ringfence.objects import Behaviour, Feature, Solution
from ringfence.selection import select


def behaviour(visits: list[float], reward: float, se: float = 0.0) -> Behaviour:
    cells = np.arange(len(visits), dtype=float)[:, None]
    return Behaviour(cells, np.array(visits), reward, se, sum(visits), None)


def record(i: int, values: list[float], learner: Behaviour) -> Record:
    c = TableConstraint((Feature("cell", ""),), np.array(values))
    return Record(i, c, (0.0,), (Solution({}, 0.0, learner, 0),), 0.0, c)


EXPERT = behaviour([2, 0, 0], reward=5.0, se=1.0)


def test_smallest_gap_over_all_the_games_constraints_wins() -> None:
    records = [
        record(1, [0, 0, 0], behaviour([0, 2, 0], 9.0)),  # cheap under c_1, dear under c_2
        record(2, [0, 1, 0], behaviour([1, 0, 1], 6.0)),
        record(3, [0, 1, 1], behaviour([2, 0, 0], 5.0)),
    ]
    chosen = select(records, [EXPERT])
    assert chosen.gap == (2.0, 1.0, 0.0)
    assert chosen.i == 3


def test_of_those_that_nothing_tells_from_experts_the_best_earner_wins() -> None:
    """Experts cost 1 under each constraint; two learners cost less, the third more."""
    expert = behaviour([1, 1, 0], reward=5.0)
    records = [
        record(1, [0, 1, 0], behaviour([2, 0, 0], 6.0)),  # far below the experts' cost
        record(2, [0, 1, 0], behaviour([1.5, 0.5, 0], 7.0)),
        record(3, [0, 1, 0], behaviour([0.5, 1.5, 0], 8.0)),
    ]
    chosen = select(records, [expert])
    assert chosen.gap == (-1.0, -0.5, 0.5)
    assert chosen.i == 2


def test_an_iterate_that_earns_too_little_is_not_taken() -> None:
    records = [
        record(1, [0, 1, 0], behaviour([0, 1, 1], 4.1)),  # within one standard error of 5
        record(2, [0, 1, 1], behaviour([2, 0, 0], 3.9)),  # not within it
    ]
    assert select(records, [EXPERT]).i == 1


def test_where_none_earns_enough_the_highest_reward_is_taken_and_said() -> None:
    records = [
        record(1, [0, 0, 0], behaviour([2, 0, 0], 1.0)),
        record(2, [0, 1, 0], behaviour([0, 2, 0], 2.0)),
    ]
    chosen = select(records, [EXPERT])
    assert chosen.i == 2
    assert not chosen.rewarding


def test_ties_go_to_the_earliest() -> None:
    same = behaviour([2, 0, 0], 5.0)
    records = [record(i, [0, 1, 0], same) for i in (1, 2, 3)]
    assert select(records, [EXPERT]).i == 1


def test_nothing_to_select_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing"):
        select([], [EXPERT])


@pytest.mark.parametrize(("earned", "chosen"), [(2.0, 2), (1.04, 2), (1.0, 1)])
def test_a_sampled_learners_own_error_counts_by_the_wide_margin(earned: float, chosen: int) -> None:
    """5 - 3 * sqrt(1 + 0.75) = 1.03: the safe learner may be the experts' equal from there on."""
    records = [
        record(1, [0, 1, 0], behaviour([0, 2, 0], 4.5)),
        record(2, [0, 1, 0], behaviour([2, 0, 0], earned, se=np.sqrt(0.75))),
    ]
    assert select(records, [EXPERT]).i == 1
    assert select(records, [EXPERT], "wide-margin").i == chosen


def test_every_constraint_judges_by_the_wide_margin() -> None:
    records = [
        record(1, [0, 1, 0], behaviour([2, 0, 0], 5.0)),
        record(2, [0, 0, 1], behaviour([0, 2, 0], 7.0)),
    ]
    assert select(records, [EXPERT], "wide-margin").gap == (0.0, 2.0)


def test_only_the_last_constraint_is_asked_by_the_last_judge() -> None:
    """c_1 finds fault with the second learner, c_2 does not; c_2 alone judges."""
    records = [
        record(1, [0, 1, 0], behaviour([2, 0, 0], 5.0)),
        record(2, [0, 0, 1], behaviour([0, 2, 0], 7.0)),
    ]
    assert select(records, [EXPERT]).i == 1
    chosen = select(records, [EXPERT], "last-judge")
    assert chosen.gap == (0.0, 0.0)
    assert chosen.i == 2


def test_by_the_last_judge_the_reward_to_reach_is_that_of_all_demonstrations() -> None:
    """The held-out were lucky: only the dear learner earns their 5, both earn everyone's 4."""
    lucky, everyone = behaviour([2, 0, 0], 5.0), behaviour([2, 0, 0], 4.0)
    records = [
        record(1, [0, 1, 0], behaviour([0, 2, 0], 6.0)),
        record(2, [0, 1, 0], behaviour([2, 0, 0], 4.5)),
    ]
    assert select(records, [lucky], everyone=[everyone]).i == 1
    assert select(records, [lucky], "last-judge").i == 1
    chosen = select(records, [lucky], "last-judge", [everyone])
    assert (chosen.i, chosen.expert_reward) == (2, 4.0)


def test_what_failed_at_its_task_is_hidden_from_the_player_but_not_from_selection() -> None:
    """A learner is judged by all its episodes, whatever the constraint player saw of it."""
    all_of_it, the_rest = behaviour([1, 1, 0], 5.0), behaviour([2, 0, 0], 9.0)
    shown = record(1, [0, 1, 0], all_of_it)
    solution = replace(shown.solutions[0], succeeded=the_rest)
    chosen = select([replace(shown, solutions=(solution,))], [EXPERT])
    assert (chosen.gap, chosen.reward) == ((1.0,), (5.0,))
