"""Gathering data: a chunk is its copies' episodes, whatever runs beside them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from line_task import Line, LineSimulator
from random_policies import policy_for
from ringfence.worlds.sim.rollouts import (
    OBSERVATION_CLIP,
    Actor,
    Chunk,
    CollectorSpec,
    GroupedCollector,
    LocalCollector,
    applied,
    choices_of,
    choose,
    from_environment,
    gaussian_log_prob,
    join_chunks,
    to_environment,
)
from toy_tasks import FIVE_BY_THREE, ROAD

LINE = Line()
POLICY = policy_for(LINE)


def spec(copies: int = 4, seed: tuple[int, ...] = (0,)) -> CollectorSpec:
    return CollectorSpec(copies, lambda phi: phi[:, 1] - 0.3, seed)


def same(one: Chunk, two: Chunk) -> bool:
    return all(np.array_equal(getattr(one, f.name), getattr(two, f.name)) for f in fields(Chunk))


def grouped(threads: int, seed: tuple[int, ...] = (0,)) -> GroupedCollector:
    """Two groups of two copies."""
    groups = [
        LocalCollector(LINE, LineSimulator(LINE, 2), spec(4, seed), first, total=4)
        for first in (0, 2)
    ]
    return GroupedCollector(groups, threads)


def test_the_seed_decides_a_chunk_and_its_number_the_noise() -> None:
    one, two, other = (
        LINE.collector(spec(seed=s)).collect(POLICY, 8, 0) for s in ((0,), (0,), (1,))
    )
    assert same(one, two)
    assert not same(one, other)
    later = LINE.collector(spec()).collect(POLICY, 8, 1)
    assert not np.array_equal(one.actions, later.actions)


def test_groups_in_threads_are_the_copies_of_one_collector() -> None:
    whole = LINE.collector(spec()).collect(POLICY, 60, 0)
    one, two = grouped(1), grouped(2)
    assert same(one.collect(POLICY, 60, 0), two.collect(POLICY, 60, 0))
    for threads in (1, 2):
        collector = grouped(threads)
        found = collector.collect(POLICY, 60, 0)
        for name in ("inputs", "actions", "rewards", "features", "terminated", "truncated"):
            np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-6)
        np.testing.assert_allclose(sorted(found.returns), sorted(whole.returns), atol=1e-6)
        collector.close()


def test_a_policy_sees_the_raw_value_of_the_step_before_and_0_at_a_start() -> None:
    chunk = LINE.collector(spec()).collect(POLICY, 60, 0)
    ended = chunk.terminated | chunk.truncated
    before = np.where(ended[:-1], 0.0, chunk.features[:-1, :, 1] - 0.3)
    np.testing.assert_allclose(chunk.inputs[1:, :, -1], before)
    assert not chunk.inputs[0, :, -1].any()


def test_first_episodes_are_cut_at_ages_spread_over_the_horizon() -> None:
    chunk = LINE.collector(spec(5)).collect(POLICY, LINE.horizon, 0)
    first = [int(np.flatnonzero(chunk.truncated[:, n])[0]) + 1 for n in range(5)]
    assert first == [50, 40, 30, 20, 10]


def test_a_saved_collector_goes_on_with_the_same_bytes() -> None:
    for make in (lambda: LINE.collector(spec()), lambda: grouped(2)):
        one, two = make(), make()
        one.collect(POLICY, 20, 0)
        two.restore(one.save())
        assert same(one.collect(POLICY, 70, 1), two.collect(POLICY, 70, 1))


def test_episodes_in_between_leave_the_training_as_it_was() -> None:
    plain, tried = LINE.collector(spec()), LINE.collector(spec())
    plain.collect(POLICY, 20, 0)
    tried.collect(POLICY, 20, 0)
    tried.episodes(POLICY, 6, False, (9,))
    assert same(plain.collect(POLICY, 20, 1), tried.collect(POLICY, 20, 1))


def test_whole_episodes_are_counted_and_deterministic_ones_have_no_noise() -> None:
    collector = LINE.collector(spec())
    runs = collector.episodes(POLICY, 6, False, (9,))
    again = LINE.collector(spec()).episodes(POLICY, 6, False, (9,))
    assert [len(t) for t in runs] == [LINE.horizon] * 6
    assert all(np.array_equal(a.features, b.features) for a, b in zip(runs, again, strict=True))
    calm = collector.episodes(POLICY, 2, True, (9,))
    actor, raw = Actor(POLICY), np.zeros(2)
    for t in range(3):
        seen = np.column_stack([[r.observations[t] for r in calm], raw])
        mean = to_environment(actor.mean(seen), LINE.action_low, LINE.action_high)
        np.testing.assert_allclose([r.actions[t] for r in calm], mean, atol=1e-6)
        raw = np.array([r.features[t, 1] - 0.3 for r in calm])


def test_chunks_side_by_side_shift_the_places_of_their_ends() -> None:
    one = LINE.collector(spec(2)).collect(POLICY, 60, 0)
    both = join_chunks([one, one])
    assert both.rewards.shape == (60, 4)
    n = len(one.final_at)
    assert n > 0
    np.testing.assert_array_equal(both.final_at[:n], one.final_at)
    np.testing.assert_array_equal(both.final_at[n:], one.final_at + np.array([0, 2]))


def test_log_probabilities_are_the_gaussians() -> None:
    rng = np.random.default_rng(0)
    noise, log_std = rng.standard_normal((5, 3)).astype(np.float32), np.array([-1.0, 0.0, 0.5])
    x = noise * np.exp(log_std)
    density = np.exp(-0.5 * (x / np.exp(log_std)) ** 2) / (np.exp(log_std) * np.sqrt(2 * np.pi))
    found = gaussian_log_prob(noise, log_std.astype(np.float32))
    np.testing.assert_allclose(found, np.log(density).sum(axis=1), rtol=1e-5)


def test_actions_are_clipped_and_scaled_to_the_box_and_back() -> None:
    low, high = np.array([-2.0, 0.0]), np.array([2.0, 10.0])
    np.testing.assert_allclose(
        to_environment(np.array([[-9.0, 0.0], [0.5, 9.0]]), low, high), [[-2, 5], [1, 10]]
    )
    inside = np.array([[0.3, -0.7]])
    np.testing.assert_allclose(
        from_environment(to_environment(inside, low, high), low, high), inside
    )
    unit = np.array([-1.0, -1.0])
    np.testing.assert_array_equal(to_environment(inside, unit, -unit), inside)


def test_inputs_far_off_are_cut_off() -> None:
    policy = {**POLICY, "norm/std": np.full(3, 1e-3)}
    far, edge = (
        Actor(policy).mean(np.full((1, 3), 1e9)),
        Actor(policy).mean(np.full((1, 3), OBSERVATION_CLIP * 1e-3)),
    )
    np.testing.assert_array_equal(far, edge)


def test_episodes_can_start_at_demonstrated_states():
    spec = CollectorSpec(8, lambda p: p[:, 1], (0,), starts=np.array([[7.0]]), start_share=0.5)
    collector = Line().collector(spec)
    chunk = collector.collect(POLICY, 4, 0)
    at_seven = chunk.inputs[0, :, 0] == 7.0
    assert 0 < at_seven.sum() < 8


def test_truncated_episodes_are_bootstrapped_and_counted_once():
    collector = Line().collector(CollectorSpec(4, lambda p: p[:, 1], (0,)))
    chunk = collector.collect(POLICY, 100, 0)
    assert chunk.truncated.sum() == len(chunk.final_at) == len(chunk.lengths) == 8
    # the first episodes are cut early, spread over the horizon
    assert sorted(chunk.lengths) == [13, 25, 38, 50, 50, 50, 50, 50]
    t, n = chunk.final_at[0]
    assert chunk.inputs[t + 1, n, -1] == 0  # the augmentation is 0 at a start
    assert chunk.final_inputs[0, -1] == chunk.features[t, n, 1]


# Choices -----------------------------------------------------------------------------------------


def test_an_actor_acts_by_its_mean_or_around_it_with_the_noise_given() -> None:
    actor, inputs = Actor(POLICY), np.random.default_rng(0).standard_normal((5, 3))
    calm, at_most = actor.act(inputs, None)
    np.testing.assert_array_equal(calm, actor.mean(inputs))
    noise = actor.noise(np.random.default_rng(1), (5,))
    drawn, log_probs = actor.act(inputs, noise)
    np.testing.assert_allclose(drawn, calm + np.exp(-1.0) * noise, rtol=1e-6)
    np.testing.assert_array_equal(log_probs, gaussian_log_prob(noise, actor.log_std))
    assert (log_probs <= at_most).all()


def test_choices_are_drawn_from_their_softmax_and_told_with_its_logarithm() -> None:
    logits = np.tile(np.array([[0.0, 1.0, 2.0, -1.0, 0.5]], np.float32), (50_000, 1))
    noise = np.random.default_rng(0).gumbel(size=logits.shape).astype(np.float32)
    chosen, log_probs = choose(logits, noise, (3, 2))
    for column, part in ((0, logits[0, :3]), (1, logits[0, 3:])):
        share = np.bincount(chosen[:, column].astype(int)) / len(chosen)
        np.testing.assert_allclose(share, np.exp(part) / np.exp(part).sum(), atol=0.01)
    one, two = (np.exp(part) / np.exp(part).sum() for part in (logits[0, :3], logits[0, 3:]))
    first, second = chosen.astype(int).T
    np.testing.assert_allclose(np.exp(log_probs), one[first] * two[second], rtol=1e-5)
    likeliest, _ = choose(logits[:1], None, (3, 2))
    assert likeliest.tolist() == [[2.0, 1.0]]


def test_choices_are_counted_from_their_lowest() -> None:
    assert choices_of(ROAD) == ()
    assert choices_of(FIVE_BY_THREE) == (5, 3)
    low, high = np.array([-2.0, 1.0]), np.array([2.0, 3.0])
    actor = Actor(policy_for(FIVE_BY_THREE))
    np.testing.assert_array_equal(
        applied(actor, np.array([[0, 0], [4, 2]], np.float32), low, high), [[-2, 1], [2, 3]]
    )


def test_a_rollout_of_choices_holds_their_numbers_and_their_probabilities() -> None:
    policy = policy_for(FIVE_BY_THREE)
    collector = FIVE_BY_THREE.collector(CollectorSpec(8, lambda phi: phi[:, 0], (0,)))
    chunk = collector.collect(policy, 60, 0)
    assert chunk.actions.shape == (60, 8, 2)
    assert [sorted(np.unique(chunk.actions[..., a])) for a in (0, 1)] == [
        [0, 1, 2, 3, 4],
        [0, 1, 2],
    ]
    np.testing.assert_allclose(chunk.features[..., 0], chunk.actions[..., 0] / 2 - 1)
    assert (chunk.log_probs < 0).all()
    (calm,) = collector.episodes(policy, 1, True, (1,))
    inputs = np.column_stack([calm.observations[:1], [0.0]])
    wanted, _ = choose(Actor(policy).mean(inputs), None, (5, 3))
    np.testing.assert_array_equal(calm.actions[:1], wanted)
