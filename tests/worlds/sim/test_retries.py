"""Starts from which a limit was broken are tried again, until they are not."""

import numpy as np

from line_task import Line, LineSimulator
from random_policies import policy_for
from ringfence.worlds.sim.retries import KEPT, Retries
from ringfence.worlds.sim.rollouts import CollectorSpec, LocalCollector

ALWAYS = 1.0


def after(retries: Retries, episode: int, broken: bool, copy: int = 0) -> int:
    """The start of a copy's next episode, after one that broke the limit or not."""
    raw = np.full(len(retries.now), -1.0)
    raw[copy] = 1.0 if broken else -1.0
    retries.saw(raw)
    return retries.next(copy, episode)


def test_a_broken_start_is_tried_until_it_is_kept() -> None:
    retries = Retries(2, 0, ALWAYS, (0,))
    assert retries.next(0, 0) == 0
    assert not retries.now[0]
    assert after(retries, 1, broken=True) == 0
    assert retries.now[0]
    assert after(retries, 2, broken=True) == 0
    assert after(retries, 3, broken=False) == 3
    assert not retries.now[0]


def test_the_latest_broken_starts_are_kept_for_each_copy_alone() -> None:
    retries = Retries(2, 0, 1e-9, (0,))
    retries.next(0, 0)
    for episode in range(1, KEPT + 3):
        assert after(retries, episode, broken=True) == episode
        assert not retries.now[0]
    kept = retries.save()["retry/hard"]
    assert kept[0].tolist() == [KEPT + 1, KEPT, KEPT - 1, KEPT - 2]
    assert kept[1].tolist() == [-1] * KEPT


def test_without_a_share_every_episode_has_its_own_start() -> None:
    retries = Retries(1, 0, 0.0, (0,))
    assert [after(retries, episode, broken=True) for episode in range(5)] == list(range(5))


def test_a_retry_begins_where_the_broken_episode_did_and_is_marked() -> None:
    task = Line()
    spec = CollectorSpec(4, lambda phi: phi[:, 0] - 0.1, (0,), retry_share=ALWAYS)
    collector = LocalCollector(task, LineSimulator(task, 4), spec)
    chunk = collector.collect(policy_for(task), 200, 0)
    ended = chunk.truncated | chunk.terminated
    starts = np.concatenate([chunk.inputs[:1, :, 0], chunk.inputs[1:, :, 0]])
    for n in range(4):
        first = np.flatnonzero(np.concatenate([[True], ended[:-1, n]]))
        retried = chunk.retried[first, n]
        assert not retried[0]
        own = starts[first[~retried], n]
        assert set(starts[first[retried], n]) <= set(own)
        assert len(set(own)) == len(own)
    assert chunk.retried.any()
    assert not chunk.retried.all()
    assert len(chunk.returns) == sum(
        int((ended[:, n] & ~chunk.retried[:, n]).sum()) for n in range(4)
    )


def test_saved_retries_go_on_the_same() -> None:
    one, two = Retries(1, 0, 0.5, (3,)), Retries(1, 0, 0.5, (3,))
    for episode in range(5):
        after(one, episode, broken=True)
    two.restore(one.save())
    later = [[after(r, e, broken=e % 2 == 0) for e in range(5, 30)] for r in (one, two)]
    assert later[0] == later[1]
