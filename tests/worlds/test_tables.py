"""Any finite MDP as a world; Gymnasium's own tables against what its dictionaries say."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.experts.optimal import make_demonstrations
from ringfence.objects import Array, Behaviour, Feature
from ringfence.runs.config import tagged, to_toml
from ringfence.worlds import tables
from ringfence.worlds.tables import Config, TableTask, TableWorld, from_gymnasium, table_world
from ringfence.worlds.world import Unknown

#: Stay or go right on a line of three states; the last is never left.
LINE = np.zeros((3, 2, 3))
LINE[:, 0] = np.eye(3)
LINE[:, 1] = np.eye(3)[[1, 2, 2]]
REWARD = {"last": np.array([0.0, 0.0, 1.0])}


def line(**changes: Any) -> TableWorld:
    return table_world(**{"P": LINE, "rewards": REWARD, "horizon": 4, **changes})


def made_by_name() -> TableWorld:
    return line(name="by name")


def made_wrongly() -> str:
    return "no world"


# Gymnasium's tables ------------------------------------------------------------------------------

TOYS = ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4")
HORIZON = 40


def toy(name: str) -> Any:
    return gymnasium.make(name).unwrapped


def values_of_dictionary(P: Any) -> Array:
    """max E[sum of rewards] over HORIZON steps [S], read off the dictionary: what ends pays no
    more."""
    V = np.zeros(len(P))
    for _ in range(HORIZON):
        Q = [
            [sum(p * (r + (0.0 if over else V[s])) for p, s, r, over in P[at][a]) for a in P[at]]
            for at in sorted(P)
        ]
        V = np.max(Q, axis=1)
    return V


def values_of_tables(P: Array, r: Array) -> Array:
    V = np.zeros(len(P))
    for _ in range(HORIZON):
        V = (r + P @ V).max(axis=1)
    return V


@pytest.mark.parametrize("name", TOYS)
def test_gymnasiums_tables_are_worth_what_its_dictionaries_are(name: str) -> None:
    """From every state where an episode starts, in every number of steps up to the horizon."""
    env = toy(name)
    P, r = from_gymnasium(env.P)
    starts = np.flatnonzero(env.initial_state_distrib)
    exact, found = values_of_dictionary(env.P), values_of_tables(P, r)
    np.testing.assert_allclose(found[starts], exact[starts], atol=1e-9)
    np.testing.assert_allclose(P.sum(axis=2), 1.0)


@pytest.mark.parametrize("name", TOYS)
def test_a_step_that_does_not_end_is_as_in_the_dictionary(name: str) -> None:
    env = toy(name)
    P, r = from_gymnasium(env.P)
    ends = {s for row in env.P.values() for o in row.values() for _, s, _, over in o if over}
    kept = [s for s in env.P if s not in ends or len(P) > len(env.P)]
    for s in kept:
        for a, outcomes in env.P[s].items():
            row = np.zeros(len(P))
            for p, to, _, over in outcomes:
                row[len(env.P) if over and len(P) > len(env.P) else to] += p
            np.testing.assert_allclose(P[s, a], row)
            assert r[s, a] == pytest.approx(sum(p * paid for p, _, paid, _ in outcomes))


def test_terminal_states_are_absorbing_and_pay_nothing() -> None:
    """FrozenLake's goal and holes; CliffWalking's goal, which its dictionary lets one leave."""
    lake, r = from_gymnasium(toy("FrozenLake-v1").P)
    for s in (5, 7, 11, 12, 15):
        assert (lake[s, :, s] == 1).all()
        assert (r[s] == 0).all()
    cliff, r = from_gymnasium(toy("CliffWalking-v1").P)
    assert cliff.shape == (48, 4, 48)
    assert (cliff[47, :, 47] == 1).all()
    assert (r[47] == 0).all()


def test_a_state_that_also_goes_on_gets_an_end_beside_it() -> None:
    """Taxi: a passenger who was brought may, in the table, ride on."""
    env = toy("Taxi-v4")
    P, r = from_gymnasium(env.P)
    assert P.shape == (501, 6, 501)
    assert (P[500, :, 500] == 1).all()
    assert (r[500] == 0).all()
    assert r[:500].max() == 20


def test_an_absorbing_state_that_pays_is_not_an_end() -> None:
    """One way into state 1 ends there, the other stays and is paid for ever."""
    P = {
        0: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 1, 5.0, False)], 1: [(1.0, 1, 5.0, False)]},
    }
    tensor, r = from_gymnasium(P)
    assert tensor.shape == (3, 2, 3)
    assert (tensor[0, 0, 2], tensor[0, 1, 1]) == (1, 1)
    assert r.tolist() == [[0, 0], [5, 5], [0, 0]]


# Worlds of tables --------------------------------------------------------------------------------


def test_a_world_is_its_tables() -> None:
    world = line(start=[0.5, 0.5, 0.0], states=["a", "b", "c"], forbidden=[1])
    (task,) = world.tasks
    assert (task.name, task.horizon, world.states) == ("last", 4, ("a", "b", "c"))
    np.testing.assert_array_equal(task.mdp.transition.toarray().reshape(3, 2, 3), LINE)
    np.testing.assert_array_equal(task.mdp.reward, [[0, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(task.mdp.start, [0.5, 0.5, 0])
    assert world.features == (Feature("state", "1"),)


def test_tasks_share_their_dynamics_and_differ_in_reward_and_start() -> None:
    rewards = {"last": REWARD["last"], "first": np.array([1.0, 0.0, 0.0])}
    world = line(rewards=rewards, start={"last": 0, "first": 2})
    assert [int(t.mdp.start.argmax()) for t in world.tasks] == [0, 2]
    assert world.tasks[0].mdp.transition is world.tasks[1].mdp.transition


def test_the_settings_make_the_world_again() -> None:
    """Through TOML, too: a run's directory has all that it needs."""
    rewards = {"last": REWARD["last"], "by action": np.array([[0.1, 0.2], [0, 0], [1, 0]])}
    for world in (
        line(rewards=rewards, start=[0.25, 0.75, 0], states=["a", "b", "c"], forbidden=[1]),
        line(horizon=None, discount=0.9),
        line(features=[Feature("x", "m")], values=[[0.5], [1.5], [-1.0]]),
    ):
        again = tables.make(tagged("test", "world", asdict(world.settings)))
        assert again.settings == world.settings
        assert "transition" in to_toml(again.settings)
        for one, two in zip(world.tasks, again.tasks, strict=True):
            np.testing.assert_array_equal(one.mdp.reward, two.mdp.reward)
            np.testing.assert_array_equal(one.phi, two.phi)
            assert (one.horizon, one.mdp.discount) == (two.horizon, two.mdp.discount)


def test_features_of_an_action_are_in_no_settings() -> None:
    values = np.arange(6.0).reshape(3, 2, 1)
    world = line(features=[Feature("x", "m")], values=values)
    assert world.settings is None
    assert world.cells is None


def test_states_are_cells_where_features_name_each() -> None:
    world = line(forbidden=[1])
    assert world.cells is not None
    assert world.cells.shape == (3,)
    assert world.cells.index(np.array([[2.0], [0.0]])).tolist() == [2, 0]
    c = TableConstraint(world.features, np.array([0.0, 0.7, 0.0]))
    assert world.cells.forbidden(c).tolist() == [False, True, False]
    assert world.cells.walls.tolist() == [False, True, False]
    assert line(features=[Feature("x", "m")], values=[[0.5], [1.5], [2.0]]).cells is None
    assert line(features=[Feature("x", "")], values=[[0.0], [0.0], [1.0]]).cells is None


def test_two_features_are_a_map_one_is_a_row_and_others_lines() -> None:
    square = np.broadcast_to(np.eye(4)[:, None], (4, 1, 4))
    world = table_world(
        square,
        {"t": np.ones(4)},
        horizon=2,
        features=[Feature("row", "cell"), Feature("col", "cell")],
        values=[[0, 0], [0, 1], [1, 0], [1, 1]],
        forbidden=[3],
    )
    (view,) = world.views()
    assert (view["kind"], view["columns"], view["shape"]) == ("map", [0, 1], [2, 2])
    assert (view["starts"], view["walls"]) == ([[0, 0]], [[0, 0], [0, 1]])
    (row,) = line().views()
    assert (row["kind"], row["columns"], row["shape"], row["walls"]) == ("map", [0], [1, 3], None)
    (along,) = line(features=[Feature("x", "m")], values=[[0.5], [1.5], [2.0]]).views()
    assert along == {"kind": "line", "columns": [0]}


def test_the_default_class_is_a_table_where_there_are_cells_else_linear() -> None:
    assert line().defaults({}) == {}
    other = line(features=[Feature("x", "m")], values=[[0.5], [1.5], [2.0]])
    assert other.defaults({}) == {"game": {"constraint": "linear"}}


def test_the_truth_counts_steps_in_forbidden_states() -> None:
    pi = Behaviour(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.5, 0.5]), 0.0, 0.0, 4.0, None)
    world = line(forbidden=[1])
    assert world.truth.known
    assert world.truth.true_cost(pi) == world.truth.true_raw(pi) == 2.5
    assert isinstance(line().truth, Unknown)
    assert line().truth.true_cost(pi) is None


def test_a_new_task_has_a_reward_and_a_start() -> None:
    world = line()
    task = world.new_task({"reward": [1.0, 0.0, 0.0], "start": 2})
    np.testing.assert_array_equal(task.mdp.reward, [[1, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(task.mdp.start, [0, 0, 1])
    assert task.mdp.transition is world.tasks[0].mdp.transition


def test_demonstrations_of_a_table_are_checked_against_it() -> None:
    world = line(forbidden=[1], start=2)
    made = make_demonstrations(world)
    assert [f.severity for f in world.check(made)] == ["note"]
    elsewhere = line(start=0, rewards={"last": REWARD["last"]})
    assert any("it starts in state 2" in f.message for f in elsewhere.check(made))


def test_a_row_that_sums_to_less_ends_the_episode() -> None:
    """State 1 is left by a third, and by two thirds nothing comes after it."""
    P = LINE.copy()
    P[1] /= 3
    world = line(P=P, start=1, forbidden=[0])
    made = make_demonstrations(world).tasks[0]
    episodes = [t for _, t in made.labelled]
    ended = [t for t in episodes if t.terminated]
    assert 0 < len(ended) < len(episodes)
    for t in ended:
        assert t.features[-1, 0] == 1
        assert len(t) < 4
    assert all(len(t) == 4 for t in episodes if not t.terminated)
    assert [f.severity for f in world.check(make_demonstrations(world))] == ["note"]


# In TOML -----------------------------------------------------------------------------------------


def test_a_world_may_be_made_by_a_named_function() -> None:
    assert tables.make(Config(make="test_tables:made_by_name")).name == "by name"
    with pytest.raises(InvalidInput, match="returned str, not a table_world"):
        tables.make(Config(make="test_tables:made_wrongly"))
    with pytest.raises(InvalidInput, match="can't find the function"):
        tables.make(Config(make="test_tables:nowhere"))


def test_tables_in_toml_are_lists_of_outcomes() -> None:
    stay = tuple((((float(s), 1.0),),) for s in range(2))
    slips = ((((0.0, 0.25), (1.0, 0.75)),), stay[1])
    config = Config(transition=slips, tasks=(TableTask("t", ((0.0,), (1.0,)), (0.5, 0.5)),))
    world = tables.make(replace(config, horizon=3))
    P = world.tasks[0].mdp.transition.toarray()
    np.testing.assert_array_equal(P, [[0.25, 0.75], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"P": np.zeros((3, 2))}, r"P has shape \(3, 2\); it must be \[states, actions, states\]"),
        ({"P": LINE * 1.1}, "is not a distribution"),
        ({"horizon": None}, "either a horizon .* or a discount below 1"),
        ({"discount": 0.9}, "either a horizon"),
        ({"rewards": {}}, "rewards of at least one task"),
        ({"states": ["a"]}, "1 names for 3 states"),
        ({"start": 3}, "start: 3 is none of the states 0 to 2"),
        ({"start": [0.5, 0.5]}, "start must be a distribution over 3 states"),
        ({"start": [0.5, 0.5, 0.5]}, "start must be a distribution over 3 states"),
        ({"forbidden": [-1]}, "forbidden: -1 is none of the states"),
        ({"rewards": {"t": [np.nan, 0, 0]}}, "must be finite"),
        ({"features": [Feature("x", "m")], "values": [[0.0]] * 2}, "values"),
        ({"rewards": {"t": [1.0, 2.0]}}, "reward"),
        ({"rewards": {"a": REWARD["last"]}, "start": {"b": 0}}, "start"),
    ],
)
def test_wrong_tables_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        line(**changes)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(), "needs transition and tasks, or make"),
        (
            Config(
                transition=((((0.0, 1.0),),), (((0.0, 1.0),), ((0.0, 1.0),))),
                tasks=(TableTask("t", ((0.0,), (0.0,))),),
                horizon=2,
            ),
            "state 1 has 2 actions, not 1",
        ),
        (
            Config(transition=((((7.0, 1.0),),),), tasks=(TableTask("t", ((0.0,),)),), horizon=2),
            "transition: 7.0 is none of the states",
        ),
    ],
)
def test_wrong_settings_are_named(config: Config, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tables.make(config)
