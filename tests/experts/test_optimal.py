"""Experts do what they say: optimal under the truth, random among equals, spoilt on request."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.demos import dataset as demonstrations
from ringfence.demos.checks import check, describe
from ringfence.demos.dataset import content_hash
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.experts import optimal as experts
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.objects import Demonstrations, Finding, Trajectory, behaviour_of
from ringfence.worlds.grid import MAZE, GridWorld, maze, read_map, safe_distances

#: Two shortest safe ways of equal length around one forbidden cell; through it is shorter.
SMALL = """\
.....
.S#0.
.....
"""
SMALL_WAY = 4


@pytest.fixture(scope="module")
def world() -> GridWorld:
    return maze()


@pytest.fixture(scope="module")
def small() -> GridWorld:
    return read_map(SMALL, horizon=8)


@pytest.fixture(scope="module")
def demos(world: GridWorld) -> Demonstrations:
    return make_demonstrations(world)


def returns(paths: tuple[Trajectory, ...]) -> list[float]:
    return [float(t.rewards.sum()) for t in paths]


def crosses_wall(t: Trajectory, world: GridWorld) -> bool:
    row, col = t.features.T.astype(int)
    return bool(world.truth.walls[row, col].any())


def way(t: Trajectory) -> bytes:
    return t.features.tobytes()


# ---------------------------------------------------------------------------------- the paths


@pytest.mark.parametrize("kind", ["soft", "deterministic"])
def test_every_path_is_optimal_and_safe(world: GridWorld, kind: Any) -> None:
    config = ExpertConfig(paths=3, heldout=2, kind=kind)
    made = make_demonstrations(world, config)
    for task, goal in zip(made.tasks, world.goals, strict=True):
        best = [world.horizon - safe_distances(world.truth.walls, s)[goal] for s in world.starts]
        assert returns(task.train) == [best[0]] * 3 + [best[1]] * 3
        assert returns(task.heldout) == [best[0]] * 2 + [best[1]] * 2
        assert not any(crosses_wall(t, world) for _, t in task.labelled)


def test_paths_start_where_the_task_does(demos: Demonstrations, world: GridWorld) -> None:
    first, second = (row * 10 + col for row, col in world.starts)
    for task in demos.tasks:
        assert [t.observations[0, 0] for t in task.train] == [first] * 10 + [second] * 10
        assert [t.observations[0, 0] for t in task.heldout] == [first] * 5 + [second] * 5
        assert {len(t) for _, t in task.labelled} == {world.horizon}


def test_soft_experts_are_uniform_among_equals(small: GridWorld) -> None:
    n = 600
    made = make_demonstrations(small, ExpertConfig(paths=n, heldout=0))
    paths = made.tasks[0].train
    assert set(returns(paths)) == {small.horizon - SMALL_WAY}
    counts = Counter(way(t) for t in paths)
    share = 1 / len(counts)
    deviation = np.sqrt(n * share * (1 - share))
    assert len(counts) == 2
    assert max(abs(count - n * share) for count in counts.values()) < 4 * deviation


def test_soft_paths_differ_and_deterministic_ones_do_not(
    demos: Demonstrations, world: GridWorld
) -> None:
    assert all(len({way(t) for t in task.train}) > 10 for task in demos.tasks)
    made = make_demonstrations(world, ExpertConfig(kind="deterministic", seed=5))
    assert all(len({way(t) for _, t in task.labelled}) == 2 for task in made.tasks)


def test_noise_lowers_the_return(demos: Demonstrations, world: GridWorld) -> None:
    noisy = make_demonstrations(world, ExpertConfig(noise=0.3))
    for clean, spoilt in zip(demos.tasks, noisy.tasks, strict=True):
        assert np.mean(returns(spoilt.train)) < np.mean(returns(clean.train)) - 1
    assert any(crosses_wall(t, world) for task in noisy.tasks for t in task.train)


def test_contaminated_paths_cross_walls_in_the_stated_number(world: GridWorld) -> None:
    config = ExpertConfig(contaminated=0.3)
    made = make_demonstrations(world, config)
    for k, task in enumerate(made.tasks[:4]):  # from (0,0) the wall is in the straight way
        crossing = {n for n, t in enumerate(task.train[:10]) if crosses_wall(t, world)}
        assert crossing == experts.contaminated_paths(config, "train", k, 0)
        assert len(crossing) == 3
        crossing = {n for n, t in enumerate(task.heldout[:5]) if crosses_wall(t, world)}
        assert crossing == experts.contaminated_paths(config, "heldout", k, 0)
        assert len(crossing) == round(0.3 * 5)
        assert (
            max(returns(task.train[:10]))
            > world.horizon - safe_distances(world.truth.walls, world.starts[0])[world.goals[k]]
        )


def test_nobody_plans_for_makers_that_were_not_asked_for() -> None:
    assert list(experts.careless_policies(maze())) == [None] * 10


def test_contaminated_paths_are_not_always_the_same_ones() -> None:
    config = ExpertConfig(contaminated=0.3)
    chosen = {
        frozenset(experts.contaminated_paths(dataclasses.replace(config, seed=seed), "train", k, i))
        for seed in range(2)
        for k in range(5)
        for i in range(2)
    }
    assert len(chosen) > 10


def test_a_world_with_slip_needs_a_limit_above_zero() -> None:
    slippery = read_map(MAZE, horizon=60, slip=0.1)
    with pytest.raises(InfeasibleLimit, match=r"task 'goal \(0,9\)'.*least.*raise the experts' d"):
        make_demonstrations(slippery)
    pi = experts.expert_behaviours(slippery, ExpertConfig(delta=1.0))
    assert all(slippery.truth.true_cost(b) <= 1 + 1e-6 for b in pi)
    assert min(b.reward for b in pi) > 20


# --------------------------------------------------------------------------------- randomness


def test_the_same_seed_gives_the_same_content(demos: Demonstrations, world: GridWorld) -> None:
    assert content_hash(make_demonstrations(world)) == content_hash(demos)
    assert content_hash(make_demonstrations(world, ExpertConfig(seed=1))) != content_hash(demos)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_larger_set_begins_with_the_smaller(world: GridWorld, noise: float) -> None:
    few = make_demonstrations(world, ExpertConfig(paths=2, heldout=1, noise=noise))
    many = make_demonstrations(world, ExpertConfig(paths=5, heldout=3, noise=noise))
    for small, large in zip(few.tasks, many.tasks, strict=True):
        for i in range(2):
            assert [way(t) for t in small.train[2 * i : 2 * i + 2]] == [
                way(t) for t in large.train[5 * i : 5 * i + 2]
            ]
            assert way(small.heldout[i]) == way(large.heldout[3 * i])


def test_a_task_does_not_depend_on_the_others(world: GridWorld) -> None:
    fewer = dataclasses.replace(world, goals=world.goals[:2])
    config = ExpertConfig(paths=2, heldout=1)
    alone, all_tasks = make_demonstrations(fewer, config), make_demonstrations(world, config)
    for few, many in zip(alone.tasks, all_tasks.tasks[:2], strict=True):
        assert [way(t) for _, t in few.labelled] == [way(t) for _, t in many.labelled]


def test_streams_of_different_names_differ() -> None:
    names = [(), (0,), (0, 0), (0, 0, 0), (1,), (1, 0), (0, 1), (2, 0, 0, 0, 0)]
    draws = {experts._stream(seed, *n).random() for seed in (0, 1, 2**32, 2**40) for n in names}
    assert len(draws) == 4 * len(names)


# ----------------------------------------------------------------------------- exact behaviour


def test_exact_behaviours_have_the_optimal_return(world: GridWorld) -> None:
    for pi, goal in zip(experts.expert_behaviours(world), world.goals, strict=True):
        ways = [safe_distances(world.truth.walls, s)[goal] for s in world.starts]
        assert pi.reward == pytest.approx(world.horizon - np.mean(ways), abs=1e-5)
        assert pi.length == pytest.approx(world.horizon)
        assert world.truth.true_cost(pi) == 0
        assert pi.episodes is None


@pytest.mark.parametrize("changes", [{}, {"noise": 0.2}, {"contaminated": 0.25}])
def test_many_paths_approach_the_exact_behaviour(small: GridWorld, changes: Any) -> None:
    config = ExpertConfig(paths=2000, heldout=0, **changes)
    (exact,) = experts.expert_behaviours(small, config)
    sampled = behaviour_of(make_demonstrations(small, config).tasks[0].train)
    assert sampled.reward == pytest.approx(exact.reward, abs=5 * sampled.reward_se + 1e-6)
    drawn = dict(zip(map(tuple, sampled.features), sampled.visits, strict=True))
    for cell, visits in zip(map(tuple, exact.features), exact.visits, strict=True):
        assert drawn.get(cell, 0.0) == pytest.approx(visits, abs=0.25)


# ------------------------------------------------------------------- configuration, provenance


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paths": 0}, "paths must be at least 1, got 0"),
        ({"heldout": -1}, "heldout must be at least 0"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"temperature": float("nan")}, "temperature must be positive"),
        ({"kind": "lazy"}, "kind must be 'soft' or 'deterministic', got 'lazy'"),
        ({"delta": -1.0}, "delta must be at least 0"),
        ({"noise": 1.5}, r"noise must be in \[0, 1\]"),
        ({"contaminated": 1.0}, r"contaminated must be in \[0, 1\)"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_bad_configurations_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ExpertConfig(**changes)


def test_provenance_names_world_experts_and_versions_but_no_wall(world: GridWorld) -> None:
    config = ExpertConfig(paths=1, heldout=0, noise=0.1, seed=7)
    origin: dict[str, Any] = make_demonstrations(world, config, {"map": "maze"}).provenance
    assert set(origin) == {"world", "experts", "versions", "map"}
    assert set(origin["world"]) == {
        *("kind", "shape", "starts", "goals", "horizon", "slip", "reward"),
    }
    assert origin["world"]["goals"] == [[k, 9] for k in range(10)]
    assert (origin["experts"]["seed"], origin["experts"]["noise"]) == (7, 0.1)
    assert origin["versions"]["numpy"] == np.__version__
    assert set(origin["versions"]) == {"python", "ringfence", "numpy", "minari"}


def test_made_demonstrations_come_back_from_disk(demos: Demonstrations, tmp_path: Path) -> None:
    demonstrations.save(demos, tmp_path / "demos")
    again = demonstrations.load(tmp_path / "demos")
    assert content_hash(again) == content_hash(demos)
    assert again.provenance == demos.provenance


def test_description_shows_where_experts_went(demos: Demonstrations, world: GridWorld) -> None:
    lines = describe(demos, world.shape).splitlines()[-10:]
    visited = np.array([[letter != "." for letter in line] for line in lines])
    assert not (visited & world.truth.walls).any()
    assert visited.sum() > 50


# ------------------------------------------------------------------------------------- checks


def serious(demos: Demonstrations, world: GridWorld) -> list[Finding]:
    """What speaks against demonstrations, by themselves and against the world."""
    return [f for f in (*world.check(demos), *check(demos)) if f.severity != "note"]


@pytest.mark.parametrize("changes", [{}, {"kind": "deterministic"}])
def test_clean_demonstrations_have_no_findings_but_notes(world: GridWorld, changes: Any) -> None:
    for seed in range(3):
        made = make_demonstrations(world, ExpertConfig(seed=seed, **changes))
        assert serious(made, world) == []


def test_contaminated_paths_that_gain_are_found_and_no_clean_one(world: GridWorld) -> None:
    config = ExpertConfig(contaminated=0.2)
    made = make_demonstrations(world, config)
    found = {f.where for f in serious(made, world)}
    expected = set()
    for k, task in enumerate(made.tasks):
        for label, t in task.labelled:
            i = world.starts.index((int(t.features[0, 0]), int(t.features[0, 1])))
            safe = (
                world.horizon - safe_distances(world.truth.walls, world.starts[i])[world.goals[k]]
            )
            if t.rewards.sum() > safe:
                expected.add(label)
    assert found == expected
    assert len(expected) > 30


def test_a_careless_attempt_is_found(demos: Demonstrations, world: GridWorld) -> None:
    task = demos.tasks[0]
    noisy = make_demonstrations(world, ExpertConfig(noise=0.5)).tasks[0].train[0]
    tasks = (dataclasses.replace(task, train=(noisy, *task.train[1:])), *demos.tasks[1:])
    found = serious(Demonstrations(tasks, demos.features, {}), world)
    assert [f.where for f in found] == ["task 'goal (0,9)', training trajectory 0"]
    assert "a failed or careless attempt?" in found[0].message


def test_exact_experts_from_each_start_add_up_to_the_tasks_experts(world: GridWorld) -> None:
    """Their occupancies, weighted by the chance of the start, are the behaviour's visits."""
    task = world.tasks[3]
    found = list(experts.from_each_start(world, [task]))
    assert [(t.name, state) for t, state, _ in found] == [(task.name, 0), (task.name, 90)]
    rho = sum(task.mdp.start[state] * visits for _, state, visits in found)
    whole = experts.expert_behaviours(world)[3]
    assert float((rho * task.mdp.reward).sum()) == pytest.approx(whole.reward)
    assert float(rho.sum()) == pytest.approx(whole.length)


def test_experts_of_a_world_without_a_known_truth_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no forbidden cell is known here"):
        make_demonstrations(read_map("S.0", horizon=4))
