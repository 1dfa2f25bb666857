"""Which policy is handed out, and when a training has reached enough."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.solvers.keep_best import KeepBest, Kept

#: What an episode of a rollout earned and cost, and how often it fell.
STEADY, FALLING, SLOW, DEAR = (100, 0, 0), (110, 0, 1), (50, 0, 0), (200, 9, 0)


def policy(n: int) -> dict:
    return {"n": np.array(n)}


def played(*rollouts: tuple[float, float, float], window: int = 1, lag: int = 0) -> KeepBest:
    """A training whose policy after update n is `policy(n)`, under a limit of 5."""
    best = KeepBest()
    for n, rollout in enumerate(rollouts, 1):
        best = best.add(*rollout, window).judge(policy(n), n, 5.0, window, lag)
    return best


def handed_out(best: KeepBest) -> tuple[int, int] | None:
    """The kept policy and its update."""
    return None if best.kept is None else (int(best.kept.policy["n"]), best.kept.update)


def test_the_window_holds_the_latest_rollouts():
    best = KeepBest()
    for n in range(5):
        best = best.add(float(n), 0.0, 0.0, window=3)
    assert [reward for reward, _, _ in best.recent] == [2, 3, 4]
    assert best.episode() == (3.0, 0.0)


def test_falls_shorten_what_an_episode_earns():
    assert KeepBest().add(*FALLING, 1).episode()[0] == pytest.approx(110 * (1 - np.exp(-1)))
    assert handed_out(played(STEADY, FALLING)) == (1, 1)
    seldom = played(STEADY, (110, 0, 0.1))
    assert handed_out(seldom) == (2, 2)
    assert isinstance(seldom.kept, Kept)
    assert seldom.kept.reward == pytest.approx(110 * (1 - np.exp(-0.1)) / 0.1)


def test_what_earns_more_beyond_the_limit_is_not_kept():
    assert handed_out(played(SLOW, STEADY, DEAR, SLOW)) == (2, 2)
    assert handed_out(played(DEAR, DEAR)) is None


def test_no_policy_is_kept_before_the_window_is_full():
    assert handed_out(played(STEADY, SLOW, window=3)) is None
    assert handed_out(played(STEADY, SLOW, SLOW, window=3)) == (3, 3)


def test_a_candidate_waits_for_the_rollouts_after_it():
    """With a lag of 2 the policies after updates 1 and 4 are judged, at 3 and 6."""
    waiting = played(STEADY, SLOW, lag=2)
    assert handed_out(waiting) is None
    assert waiting.candidate is not None
    assert waiting.candidate.update == 1
    judged = played(DEAR, DEAR, SLOW, DEAR, DEAR, STEADY, lag=2)
    assert handed_out(judged) == (4, 4)
    assert judged.candidate is None


def test_the_stop_rule_needs_a_full_window_its_reward_and_its_limit():
    steady = KeepBest().add(*STEADY, window=2)
    assert not steady.reached(90.0, 5.0, window=2)
    assert steady.add(*STEADY, window=2).reached(90.0, 5.0, window=2)
    assert not steady.add(*STEADY, window=2).reached(None, 5.0, window=2)
    assert not steady.add(*DEAR, window=2).reached(90.0, 4.0, window=2)
    assert not KeepBest().add(*FALLING, window=1).reached(90.0, 5.0, window=1)
