"""Finite MDPs: validation, occupancies, behaviours and sampled episodes."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.objects import Feature, behaviour_of
from ringfence.solvers import soft
from ringfence.worlds.finite import (
    NOT_STORED,
    FiniteMDP,
    FiniteTask,
    behaviour,
    from_tensor,
    met,
    occupancy,
    rollout,
    stored,
    whole_policy,
)
from ringfence.worlds.grid import maze, read_map


def random_task(seed: int, horizon: int | None, discount: float = 1.0) -> FiniteTask:
    rng = np.random.default_rng(seed)
    S, A = 4, 3
    P = rng.dirichlet(np.ones(S), size=(S, A))
    mdp = from_tensor(P, rng.dirichlet(np.ones(S)), rng.random((S, A)), horizon, discount)
    phi = np.stack(np.meshgrid(np.arange(S), np.arange(A), indexing="ij"), axis=-1).astype(float)
    return FiniteTask("random", mdp, (Feature("state", ""), Feature("action", "")), phi)


def random_policy(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_finite_occupancy_has_mass_one_per_step() -> None:
    task = random_task(0, 6)
    rho = occupancy(task.mdp, random_policy(1, (6, 4, 3)))
    assert rho.sum(axis=(1, 2)) == pytest.approx(np.ones(6))


def test_discounted_occupancy_solves_the_flow_equation() -> None:
    task = random_task(0, None, 0.9)
    mdp, pi = task.mdp, random_policy(1, (4, 3))
    rho = occupancy(mdp, pi)
    assert rho.sum() == pytest.approx(10)
    assert rho.sum(axis=1) == pytest.approx(mdp.start + 0.9 * mdp.transition_t @ rho.ravel())


def test_sampled_behaviour_approaches_the_exact_one() -> None:
    task = random_task(0, 5)
    pi = random_policy(1, (5, 4, 3))
    exact = behaviour(task, occupancy(task.mdp, pi))
    rng = np.random.default_rng(2)
    starts = rng.choice(4, size=4000, p=task.mdp.start)
    sampled = behaviour_of([rollout(task, pi, int(s), rng) for s in starts])
    assert sampled.reward == pytest.approx(exact.reward, abs=4 * sampled.reward_se)
    assert np.array_equal(sampled.features, exact.features)
    assert sampled.visits == pytest.approx(exact.visits, abs=0.05)
    assert sampled.length == 5
    assert exact.length == pytest.approx(5)


def test_episode_starts_where_asked_and_obeys_the_dynamics() -> None:
    task = random_task(3, 7)
    path = rollout(task, random_policy(1, (7, 4, 3)), 2, np.random.default_rng(0))
    s, a = path.observations[:, 0].astype(int), path.actions[:, 0].astype(int)
    assert s[0] == 2
    assert np.array_equal(path.rewards, task.mdp.reward[s[:-1], a])
    assert np.array_equal(path.features, np.stack([s[:-1], a], axis=1))


def test_noise_one_ignores_the_policy() -> None:
    task = random_task(3, 400)
    pi = np.zeros((400, 4, 3))
    pi[..., 0] = 1
    path = rollout(task, pi, 0, np.random.default_rng(0), noise=1.0)
    share = np.bincount(path.actions[:, 0].astype(int), minlength=3) / 400
    assert share == pytest.approx(np.full(3, 1 / 3), abs=0.08)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"start": np.array([0.5, 0.6])}, "distribution"),
        ({"reward": np.array([[0.0, np.nan], [0.0, 0.0]])}, "NaN"),
        ({"transition": np.full((2, 2, 2), 0.6)}, "state 0, action 0"),
        ({"horizon": None, "discount": 0.0}, "discount"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 3, "discount": 0.9}, "discount 1"),
    ],
)
def test_bad_mdp_is_refused(change: dict, word: str) -> None:
    good = {
        "transition": np.full((2, 2, 2), 0.5),
        "start": np.array([0.5, 0.5]),
        "reward": np.zeros((2, 2)),
        "horizon": 3,
    }
    with pytest.raises(InvalidInput, match=word):
        from_tensor(**(good | change))


def test_a_stored_policy_is_small_and_acts_as_the_whole_one_wherever_its_episodes_come() -> None:
    task = maze().tasks[0]
    pi, _ = soft.plan(task.mdp, task.mdp.reward, 0.05)
    rho = occupancy(task.mdp, pi)
    kept = stored(pi, rho)
    again = whole_policy(task.mdp, kept)
    assert sum(a.nbytes for a in kept.values()) < pi.nbytes / 5
    left_out = (again != pi).any(axis=2)
    assert 0 < rho.sum(axis=2)[left_out].sum() <= NOT_STORED
    np.testing.assert_allclose(again.sum(axis=2), 1)
    np.testing.assert_allclose(occupancy(task.mdp, again), rho, atol=1e-5)


def test_a_discounted_policy_is_stored_as_it_is() -> None:
    task, pi = random_task(0, None, 0.9), random_policy(1, (4, 3))
    kept = stored(pi, occupancy(task.mdp, pi))
    assert whole_policy(task.mdp, kept).tobytes() == pi.tobytes()


@pytest.mark.parametrize("slip", [0.0, 0.1])
def test_what_a_policy_meets_is_its_occupancy_to_the_byte(slip: float) -> None:
    """Whether the policy is an array or a plan that is worked out where episodes come."""
    task = read_map("S..#\n...0\n", horizon=9, slip=slip).tasks[0]
    pi = soft.plan(task.mdp, task.mdp.reward, 0.05)[0]
    rho = occupancy(task.mdp, pi)
    for policy in (pi, soft.best(task.mdp, 0.05)):
        found = met(task.mdp, policy)
        assert found.per_pair.tobytes() == rho.sum(axis=0).tobytes()
        assert found.at is not None
        assert found.at.tolist() == np.flatnonzero(rho.any(axis=2).ravel()).tolist()
        assert found.rho.tobytes() == rho.reshape(-1, 5)[found.at].tobytes()
        assert found.pi.tobytes() == pi.reshape(-1, 5)[found.at].tobytes()
        kept, whole = found.policy(), stored(pi, rho)
        assert all(kept[name].tobytes() == whole[name].tobytes() for name in whole)


def test_a_discounted_policy_meets_its_occupancy() -> None:
    task, pi = random_task(0, None, 0.9), random_policy(1, (4, 3))
    found = met(task.mdp, pi)
    assert found.per_pair.tobytes() == occupancy(task.mdp, pi).tobytes()
    assert found.policy()["pi"] is pi


def test_moves_are_told_only_where_every_action_leads_to_one_state_for_sure() -> None:
    sure, slips, ends = maze().tasks[0].mdp, read_map("S0", slip=0.1).tasks[0].mdp, ending()
    assert sure.moves is not None
    V = np.arange(sure.num_states) ** 2.0
    assert np.array_equal(sure.expected(V), (sure.transition @ V).reshape(sure.reward.shape).T)
    assert slips.moves is None
    assert ends.moves is None


def ending() -> FiniteMDP:
    """One state that is left for good by half of its steps."""
    return from_tensor(np.full((1, 1, 1), 0.5), np.ones(1), np.zeros((1, 1)), 3)
