from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pybullet_envs_gymnasium")

import gymnasium

from random_policies import policy_for
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.worlds.ant_bullet import AntBulletTask, BulletAnt, BulletSimulator
from ringfence.worlds.sim.rollouts import CollectorSpec


def spec(copies: int = 16) -> CollectorSpec:
    raw = parse_inequality("speed <= 0.75", AntBulletTask().features).raw
    return CollectorSpec(copies, raw, (3,))


def test_steps_exactly_like_ant_bullet_env():
    env = gymnasium.make("AntBulletEnv-v0").unwrapped
    env.reset(seed=0)
    ant = BulletAnt()
    for seed in (5, 6):
        expected, _ = env.reset(seed=seed)
        assert np.array_equal(ant.reset(seed), expected)
        for action in np.random.default_rng(seed).uniform(-1, 1, (100, 8)):
            expected, reward, terminated, _, _ = env.step(action)
            observation, ours, (x, y, _), ended = ant.step(action)
            assert np.array_equal(observation, expected)
            assert ours == reward
            assert ended == terminated
            assert (x, y) == tuple(env.robot.body_real_xyz[:2])


def test_restored_state_goes_on_with_the_same_bytes():
    actions = np.random.default_rng(1).uniform(-1, 1, (30, 2, 8))
    sim, other = BulletSimulator(2), BulletSimulator(2)
    sim.reset(np.arange(2), [np.random.default_rng(i) for i in range(2)])
    for a in actions[:15]:
        sim.step(a)
    assert np.array_equal(other.restore(sim.save()), sim._seen)
    for a in actions[15:]:
        for x, y in zip(sim.step(a), other.step(a), strict=True):
            assert np.array_equal(x, y)


def test_number_of_workers_changes_no_bit_and_chunks_resume():
    runs = []
    for workers in (1, 2):
        task = AntBulletTask(workers=workers)
        collector = task.collector(spec())
        policy = policy_for(task)
        collector.collect(policy, 16, 0)
        saved = collector.save()
        runs.append(collector.collect(policy, 16, 1))
        collector.restore(saved)
        again = collector.collect(policy, 16, 1)
        collector.close()
        for name, value in again.arrays().items():
            assert np.array_equal(value, runs[-1].arrays()[name]), name
    for name, value in runs[0].arrays().items():
        assert np.array_equal(value, runs[1].arrays()[name]), name


def test_episodes_do_not_depend_on_workers_and_leave_the_training_where_it_was():
    found, trained = [], []
    for workers, interrupted in ((1, False), (2, True)):
        task = AntBulletTask(workers=workers)
        collector, policy = task.collector(spec(32)), policy_for(task)
        collector.collect(policy, 16, 0)
        if interrupted:
            before = collector.save()
            found.append(collector.episodes(policy, 12, False, (7,)))
            after = collector.save()
            assert all(np.array_equal(before[k], after[k]) for k in before)
        trained.append(collector.collect(policy, 16, 1))
        if not interrupted:
            found.append(collector.episodes(policy, 12, False, (7,)))
        collector.close()
    assert np.array_equal(trained[0].inputs, trained[1].inputs)
    assert len(found[0]) == 12
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one.observations, two.observations)
    assert not np.array_equal(found[0][0].observations, found[0][8].observations)


def signal_worker(collector, number, name):
    os.kill(collector._pools[number].submit(os.getpid).result(), name)


def test_a_dead_worker_is_a_clear_error():
    task = AntBulletTask()
    collector = task.collector(spec())
    signal_worker(collector, 1, signal.SIGKILL)
    with pytest.raises(SolverFailed, match="worker 1 died"):
        collector.collect(policy_for(task), 8, 0)


def test_a_worker_leaves_ctrl_c_to_its_parent():
    task = AntBulletTask()
    collector, policy = task.collector(spec()), policy_for(task)
    collector.collect(policy, 8, 0)  # it is at work
    signal_worker(collector, 1, signal.SIGINT)
    collector.collect(policy, 8, 1)
    collector.close()


UNGUARDED = """
from ringfence.constraints.linear import parse_inequality
from ringfence.worlds.ant_bullet import AntBulletTask
from ringfence.worlds.sim.rollouts import CollectorSpec

task = AntBulletTask()
raw = parse_inequality("speed <= 0.75", task.features).raw
task.collector(CollectorSpec(16, raw, (3,))).save()
"""


def test_a_script_without_a_main_guard_is_told_of_it(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "worker 0 died" in last
    assert "if __name__ == '__main__':" in last


def test_copies_must_fill_groups():
    with pytest.raises(InvalidInput, match="multiple of 8"):
        AntBulletTask().collector(spec(copies=9))
