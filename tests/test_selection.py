"""Selection: constraints are judged by all demonstrators and learners, on hand-made records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint
from ringfence.game import Record
from ringfence.objects import Behaviour, Feature, Solution, Trajectory, behaviour_of, earns, telling
from ringfence.selection import pooled, select


def behaviour(visits: list[float], reward: float, se: float = 0.0) -> Behaviour:
    cells = np.arange(len(visits), dtype=float)[:, None]
    return Behaviour(cells, np.array(visits), reward, se, sum(visits), None)


def record(i: int, values: list[float], learner: Behaviour, delta: float = 0.0) -> Record:
    c = TableConstraint((Feature("cell", ""),), np.array(values))
    return Record(i, c, (delta,), (Solution({}, 0.0, learner, 0),), 0.0, c)


EXPERT = [behaviour([2, 0, 0], reward=5.0)]
#: Cell 1 is a short cut: whoever crosses it earns more. Cell 2 is as good as cell 0.
CROSSING, DETOUR, AS_SHOWN = (
    behaviour([1, 1, 0], 9.0), behaviour([1, 0, 1], 5.0), behaviour([2, 0, 0], 5.0)
)  # fmt: skip


def test_a_constraint_answers_to_the_learners_of_every_iteration() -> None:
    """c_1's own learner is beyond reproach, but what it allows others is more than experts earn."""
    records = [
        record(1, [0, 0, 1], AS_SHOWN),
        record(2, [0, 1, 0], DETOUR),
        record(3, [0, 0, 1], CROSSING),
    ]
    chosen = select(records, EXPERT, EXPERT)
    assert (chosen.conflicts, chosen.learners) == (1, 3)
    assert chosen.unexplained == (1, 0, 1)
    assert chosen.i == 2


def test_a_learner_without_a_constraint_is_known_too() -> None:
    records = [record(1, [0, 1, 0], AS_SHOWN), record(2, [0, 0, 1], AS_SHOWN)]
    assert select(records, EXPERT, EXPERT).i == 2
    chosen = select(records, EXPERT, EXPERT, [CROSSING])
    assert (chosen.i, chosen.unexplained, chosen.learners) == (1, (0, 1), 3)


def test_what_is_forbidden_to_demonstrators_as_well_explains_nothing() -> None:
    """Held-out ones crossed cell 1 themselves, as often as the learner."""
    heldout = [behaviour([1, 1, 0], 5.0)]
    records = [record(1, [0, 1, 0], CROSSING), record(2, [0, 1, 0], CROSSING)]
    assert select(records, EXPERT, EXPERT).unexplained == (0, 0)
    assert select(records, EXPERT, heldout).unexplained == (2, 2)


def test_among_equals_the_one_that_charges_most_learners_wins() -> None:
    records = [record(1, [0, 1, 1], DETOUR), record(2, [0, 1, 0], CROSSING)]
    chosen = select(records, EXPERT, EXPERT)
    assert (chosen.unexplained, chosen.charged, chosen.i) == ((0, 0), (2, 1), 1)


def test_a_learner_who_surely_earns_less_need_not_be_charged() -> None:
    """Where it strays shows nothing."""
    astray = behaviour([1, 0, 1], 4.0)
    records = [record(1, [0, 1, 0], AS_SHOWN), record(2, [0, 1, 1], astray)]
    assert select(records, EXPERT, EXPERT).charged == (0, 0)


def test_the_first_show_something_and_then_who_earns_enough_and_no_less_than_others() -> None:
    groups = [[behaviour([2], reward)] for reward in (3.0, 4.0, 6.0, 5.5, 6.0, 9.0)]
    assert telling(groups, [5.0]).ravel().tolist() == [True, False, True, False, True, True]


def test_then_the_one_whose_own_learner_earns_enough_within_its_limit() -> None:
    poor, over = behaviour([2, 0, 0], 4.0), behaviour([1, 1, 0], 5.0)
    for other in (record(2, [0, 1, 0], poor), record(2, [0, 1, 0], over)):
        chosen = select([record(1, [0, 1, 0], AS_SHOWN), other], EXPERT, EXPERT)
        assert (chosen.done_well, chosen.i) == ((1, 0), 1)
    within = record(2, [0, 1, 0], over, delta=1.0)
    assert select([record(1, [0, 1, 0], AS_SHOWN), within], EXPERT, EXPERT).done_well == (1, 1)


def test_then_the_last() -> None:
    records = [record(i, [0, 1, 0], AS_SHOWN) for i in (1, 2, 3)]
    assert select(records, EXPERT, EXPERT).i == 3


def test_earning_more_or_less_takes_two_standard_errors() -> None:
    pi = behaviour([2, 0, 0], 5.0, se=0.3)
    assert [earns(pi, mean, 0.4) for mean in (3.9, 4.1, 5.9, 6.1)] == [1, 0, 0, -1]


def test_few_demonstrations_and_many_comparisons_take_more() -> None:
    """Student's quantile for 5 demonstrations is 2.78 errors, for one of 8 learners 5.26."""
    pi = behaviour([2, 0, 0], 5.0)
    assert [earns(pi, mean, 1.0, 5) for mean in (2.2, 2.3)] == [1, 0]
    assert [earns(pi, mean, 1.0, 5, of=8) for mean in (-0.3, -0.2)] == [1, 0]


def test_exact_learners_may_lose_a_step_in_many_million_episodes() -> None:
    assert earns(behaviour([2, 0, 0], 5.0 - 1e-7), 5.0, 0.0) == 0


def test_a_charge_is_more_than_a_hundredth_a_step() -> None:
    """A learner approaches a limit of 0 and never reaches it."""
    learner = behaviour([1.99, 0.01, 0], 9.0)
    assert select([record(1, [0, 1, 0], learner)], EXPERT, EXPERT).unexplained == (1,)
    learner = behaviour([1.97, 0.03, 0], 9.0)
    assert select([record(1, [0, 1, 0], learner)], EXPERT, EXPERT).unexplained == (0,)


def test_two_samples_of_demonstrations_are_one() -> None:
    def episode(reward: float) -> Trajectory:
        return Trajectory(np.zeros((2, 1)), np.zeros((1, 1)), np.array([reward]), np.zeros((1, 1)),
                          terminated=False)  # fmt: skip

    runs = [episode(r) for r in (1.0, 2.0, 4.0, 9.0)]
    whole = behaviour_of(runs)
    for at in (1, 2, 3):
        mean, se, n = pooled(behaviour_of(runs[:at]), behaviour_of(runs[at:]))
        assert (mean, se) == pytest.approx((whole.reward, whole.reward_se))
        assert n == len(runs)


def test_whether_the_chosen_learners_earn_enough_is_said() -> None:
    assert select([record(1, [0, 1, 0], AS_SHOWN)], EXPERT, EXPERT).rewarding
    poor = select([record(1, [0, 1, 0], behaviour([2, 0, 0], 4.0))], EXPERT, EXPERT)
    assert not poor.rewarding
    unsure = [behaviour([2, 0, 0], 5.0, se=1.0)]
    assert select([record(1, [0, 1, 0], behaviour([2, 0, 0], 4.0))], unsure, unsure).rewarding


def test_what_failed_at_its_task_is_hidden_from_the_player_but_not_from_selection() -> None:
    """A learner is judged by all its episodes, whatever the constraint player saw of it."""
    shown = record(1, [0, 1, 0], AS_SHOWN)
    solution = replace(shown.solutions[0], succeeded=CROSSING)
    chosen = select([replace(shown, solutions=(solution,))], EXPERT, EXPERT)
    assert (chosen.conflicts, chosen.reward) == (0, (5.0,))


def test_nothing_to_select_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing"):
        select([], EXPERT, EXPERT)
