"""Evidence against brute force over all sets of allowed cells, and what noise does to it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from ringfence.analysis import evidence as ev
from ringfence.analysis.evidence import Evidence, Group, conflicts, moves, suggest
from ringfence.analysis.evidence.moves import Case
from ringfence.errors import InvalidInput
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.objects import Array, Feature, Trajectory
from ringfence.solvers import soft
from ringfence.worlds.finite import FiniteMDP, FiniteTask, from_tensor, occupancy, rollout
from ringfence.worlds.grid import GridTruth, GridWorld, maze, random_map, read_map, safe_distances

Mask = NDArray[np.bool_]

MAPS = 400
# Among these are conflict sets of 8 cells, and cells in a large set and a smaller one: without
# them a search that takes the first set it meets would pass.
HARD_MAPS = (557, 578, 1001, 1118, 1162, 1167, 2788, 2848, 2996)
MOST_UNVISITED = 13  # brute force is over 2^13 sets
MAZES = 10


# ------------------------------------------------------------------------- worlds and experts


def policy(world: GridWorld, task: FiniteTask, temperature: float = 0.05) -> Array:
    """Soft-optimal among the policies that keep off the walls."""
    cost = np.repeat(world.truth.walls.reshape(-1, 1), task.mdp.num_actions, axis=1)
    return soft.solve(task.mdp, cost.astype(float), 0.0, temperature)[0]


def state(world: GridWorld, cell: tuple[int, int]) -> int:
    return cell[0] * world.shape[1] + cell[1]


def demonstrate(
    world: GridWorld, paths: int, rng: np.random.Generator, noise: float = 0.0
) -> list[Group]:
    groups = []
    for task in world.tasks:
        pi = policy(world, task)
        starts = [state(world, cell) for cell in world.starts]
        walked = [rollout(task, pi, s, rng, noise) for s in starts for _ in range(paths)]
        groups += ev.groups_of(task, walked)
    return groups


def walk(task: FiniteTask, states: list[int]) -> Trajectory:
    """The trajectory along these states, which stays in the last one until the horizon."""
    assert task.horizon is not None
    states = states + [states[-1]] * (task.horizon + 1 - len(states))
    A, P = task.mdp.num_actions, task.mdp.transition
    actions = [
        next(a for a in range(A) if P[[s * A + a], [onward]] > 0) for s, onward in pairwise(states)
    ]
    visited = (np.array(states[:-1]), np.array(actions))
    return Trajectory(
        observations=np.array(states, dtype=float)[:, None],
        actions=np.array(actions, dtype=float)[:, None],
        rewards=task.mdp.reward[visited],
        features=task.phi[visited],
        terminated=False,
    )


def optimal_walk(task: FiniteTask, free: Mask, start: int, rng: np.random.Generator) -> Trajectory:
    """A random one of the exactly optimal paths within the free cells (ties to 1e-9)."""
    mdp = task.mdp
    V = soft.plan(mdp, mdp.reward, 0.0, np.repeat(free[:, None], mdp.num_actions, axis=1))[1]
    onward = mdp.transition.indices.reshape(mdp.reward.shape)
    states = [start]
    for t in range(len(V)):
        ahead = V[t + 1, onward[states[-1]]] if t + 1 < len(V) else 0.0
        Q = mdp.reward[states[-1]] + ahead
        states.append(int(onward[states[-1], rng.choice(np.flatnonzero(Q.max() - 1e-9 <= Q))]))
    return walk(task, states)


def small_world(rng: np.random.Generator) -> tuple[GridWorld, list[Group]]:
    """A random map of at most 4 x 4 with few starts and goals, and optimal experts in it.

    Half of the maps have one start and one goal: little evidence, so large conflict sets.
    """
    while True:
        shape = (int(rng.integers(2, 5)), int(rng.integers(2, 5)))
        walls = rng.random(shape) < rng.choice([0.2, 0.35, 0.5])
        free = [(int(r), int(c)) for r, c in np.argwhere(~walls)]
        most = 1 if rng.random() < 0.5 else 3
        starts, goals = (
            tuple(free[i] for i in rng.permutation(len(free))[: int(rng.integers(1, most + 1))])
            for _ in range(2)
        )
        reward = "goal" if rng.random() < 0.6 else "exp-distance"
        horizon = int(rng.integers(3, 20))
        world = GridWorld(shape, starts, goals, GridTruth(walls), horizon, 0.0, reward)
        groups = []
        for task in world.tasks:
            walks = [
                optimal_walk(task, ~walls.ravel(), state(world, cell), rng)
                for cell in starts
                for _ in range(int(rng.integers(1, 4)))
            ]
            groups += ev.groups_of(task, walks)
        visited = np.any([g.visitors > 0 for g in groups], axis=0)
        if groups and 0 < (~visited).sum() <= MOST_UNVISITED:
            return world, groups


def random_maze(rng: np.random.Generator, size: int = 8) -> tuple[GridWorld, list[FiniteTask]]:
    """About 30% walls, free cells in one piece, 2 starts and 3 goals; 8 tasks to ask for."""
    while True:
        walls = rng.random((size, size)) < 0.3
        free = [(int(r), int(c)) for r, c in np.argwhere(~walls)]
        if (safe_distances(walls, free[0])[~walls] >= 0).all():
            break
    longest = max(int(safe_distances(walls, cell).max()) for cell in free)
    cells = [free[i] for i in rng.permutation(len(free))]
    world = GridWorld(
        (size, size), tuple(cells[:2]), tuple(cells[2:5]), GridTruth(walls), longest + 3
    )
    return world, [world.task(goal) for goal in cells[5:13]]


# --------------------------------------------------------------------------------- brute force


def consistency(cases: list[Case], allowed: Mask) -> tuple[Mask, Mask]:
    """All sets F of cells with the allowed ones in it, [2^n, S], and which beat no group [2^n].

    F[i ^ 2^j] has or lacks the j-th unvisited cell, other than F[i].
    """
    S, unvisited = len(allowed), np.flatnonzero(~allowed)
    n = len(unvisited)
    F = np.repeat(allowed[None], 2**n, axis=0)
    F[:, unvisited] = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    consistent = np.ones(2**n, dtype=bool)
    for case in cases:
        P = case.mdp.transition.toarray().reshape(S, -1, S)
        onward = np.where(P.sum(axis=2) > 0, P.argmax(axis=2), S)
        V = np.zeros((2**n, S + 1))
        for _ in range(case.mdp.horizon or 0):
            V[:, :S] = np.where(F, (case.mdp.reward + V[:, onward]).max(axis=2), -np.inf)
        consistent &= V[:, case.start] <= case.bar
    return F, consistent


def conflict_sizes(F: Mask, consistent: Mask, allowed: Mask) -> NDArray[np.intp]:
    """How many cells the smallest inconsistent set has that is consistent without x; 0: none."""
    sizes = np.zeros(len(allowed), dtype=np.intp)
    for j, x in enumerate(np.flatnonzero(~allowed)):
        having = np.flatnonzero(F[:, x])
        pivotal = having[~consistent[having] & consistent[having ^ (1 << j)]]
        if len(pivotal):
            sizes[x] = F[pivotal].sum(axis=1).min() - allowed.sum()
    return sizes


@pytest.mark.parametrize("ahead", [conflicts.AHEAD, 1])
def test_labels_are_exactly_what_all_constraint_sets_say(
    ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if tables look less far ahead than usual, so that small sets are beyond them."""
    monkeypatch.setattr(conflicts, "AHEAD", ahead)
    seen = dict.fromkeys(ev.LABELS, 0)
    flagged, largest = 0, 0
    for seed in (*range(MAPS if ahead > 1 else MAPS // 4), *HARD_MAPS):
        world, groups = small_world(np.random.default_rng(seed))
        evidence = ev.label(groups, effort=25)
        cases = [Case(g.task.mdp, g.start, g.mean + 1e-9) for g in groups]
        F, consistent = consistency(cases, evidence.allowed)
        sizes = conflict_sizes(F, consistent, evidence.allowed)
        free = ~world.truth.walls.ravel()
        assert consistent[(free == F).all(axis=1)].all(), seed
        assert (evidence.proven == ~F[consistent].any(axis=0)).all(), seed
        assert not (evidence.proven & free).any(), seed
        sure = evidence.m_exact
        assert (evidence.implicated == (sizes > 1))[sure].all(), seed
        assert (evidence.m == sizes)[sure].all(), seed
        assert not (evidence.implicated & (sizes == 0)).any(), seed
        flagged += int((~sure).sum())
        largest = max(largest, int(sizes.max()))
        for name, count in evidence.counts().items():
            seen[name] += count
    # every label was really put to the test, and hardly a search was cut short
    assert min(seen.values()) > MAPS / 12, seen
    assert largest >= 8
    assert flagged <= MAPS / 100


def test_in_any_deterministic_world_sizes_are_right_or_marked_as_bounds() -> None:
    """Random moves without waiting or goals, episodes that end, different horizons."""
    bounds = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        S, A = 8, 3
        cases = []
        allowed = rng.random(S) < 0.3
        allowed[0] = True
        for _ in range(2):
            P = np.zeros((S, A, S))
            for s in range(S):
                for a in range(A):
                    P[s, a, rng.integers(S)] = rng.random() > 0.1
            start = np.eye(S)[0]
            mdp = from_tensor(P, start, rng.random((S, A)).round(1), int(rng.integers(3, 8)))
            within = soft.plan(mdp, mdp.reward, 0.0, np.repeat(allowed[:, None], A, axis=1))[1]
            cases.append(Case(mdp, 0, max(float(within[0, 0]), 1.0) + 1e-9))
        found = conflicts.smallest_conflicts(cases, allowed, effort=200)
        sizes = conflict_sizes(*consistency(cases, allowed), allowed)
        assert (found.size == sizes)[found.exact].all(), seed
        assert ((found.size == 1) == (sizes == 1)).all(), seed
        assert (found.size >= sizes).all(), seed
        assert ((found.size > 0) == (sizes > 0)).all(), seed
        quick = conflicts.smallest_conflicts(cases, allowed, effort=0)
        assert ((quick.size == 1) == (sizes == 1)).all(), seed  # proven needs no search
        assert (quick.size == sizes)[quick.exact].all(), seed
        bounds += int((~found.exact).sum())
    assert bounds > 0


def test_witnesses_are_minimal_and_beat_a_group() -> None:
    for seed in range(30):
        _, groups = small_world(np.random.default_rng(seed))
        evidence = ev.label(groups)
        for x in np.flatnonzero(evidence.m):
            conflict = evidence.conflicts[evidence.witness[x]]
            assert x in conflict.cells
            assert len(conflict.cells) == evidence.m[x]
            assert conflict.possible > conflict.expert_return + 1e-9
        assert (evidence.witness[evidence.m == 0] == -1).all()


# ------------------------------------------------------------------------------- built-in maze


@pytest.fixture(scope="module")
def maze_groups() -> list[Group]:
    return demonstrate(maze(), 10, np.random.default_rng(0))


@pytest.fixture(scope="module")
def maze_evidence(maze_groups: list[Group]) -> Evidence:
    return ev.label(maze_groups)


def test_a_wall_three_thick_has_m_3(maze_evidence: Evidence) -> None:
    """Except in its first and last row, where the cells beside it may not have been visited."""
    walls = maze().truth.walls
    m = maze_evidence.m.reshape(10, 10)
    inner = walls.copy()
    inner[[0, 9]] = False
    assert (m[inner] == 3).all()
    assert (m[walls] >= 3).all()
    assert not maze_evidence.proven.any()
    assert not (maze_evidence.allowed.reshape(10, 10) & walls).any()


def test_exact_experts_leave_nothing_open_but_the_wall() -> None:
    world = maze()
    groups = []
    for task in world.tasks:
        pi = policy(world, task)
        for cell in world.starts:
            start = np.zeros(100)
            start[state(world, cell)] = 1.0
            rho = occupancy(replace(task.mdp, start=start), pi)
            groups.append(ev.exact_group(task, state(world, cell), rho))
    evidence = ev.label(groups)
    walls = world.truth.walls.ravel()
    assert evidence.suspects == ()
    assert (evidence.allowed == ~walls).all()
    assert (evidence.m == 3 * walls).all()
    assert evidence.m_exact.all()
    assert evidence.standings[0].paths is None


def test_a_reason_can_be_read(maze_evidence: Evidence) -> None:
    said = maze_evidence.why(24)
    assert said.startswith("(2,4) is implicated (m = 3): if (2,2), (2,3) and (2,4) were all")
    assert "could be reached in" in said
    assert "the demonstrators took" in said
    assert maze_evidence.why(0) == "(0,0) is allowed: a demonstrator was there."


def test_a_proven_cell_has_its_reason_in_moves() -> None:
    world = read_map("S#0\n...\n")
    evidence = ev.label(demonstrate(world, 3, np.random.default_rng(0)))
    assert evidence.labels.tolist() == [0, ev.PROVEN, 0, 0, 0, 0]
    assert evidence.why(1) == (
        "(0,1) is proven forbidden: if (0,1) were allowed, goal (0,2) from (0,0) could be reached "
        "in 2 moves, the demonstrators took 4."
    )


def test_other_rewards_have_their_reason_in_returns() -> None:
    world = read_map("S#0\n...\n", reward="exp-distance")
    task = world.tasks[0]
    walks = [optimal_walk(task, ~world.truth.walls.ravel(), 0, np.random.default_rng(0))]
    assert "could return" in ev.label(ev.groups_of(task, walks)).why(1)


def test_labels_are_the_same_each_time(maze_groups: list[Group], maze_evidence: Evidence) -> None:
    assert ev.label(maze_groups).to_json() == maze_evidence.to_json()


def test_json_round_trip(maze_evidence: Evidence) -> None:
    text = json.dumps(maze_evidence.to_json(), allow_nan=False)
    again = ev.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    assert again.counts() == maze_evidence.counts()
    assert again.labels.dtype == np.int8
    assert again.conflicts == maze_evidence.conflicts


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"labels": ["maybe"]},
        {"conflicts": [{"cells": [1]}]},
        {"m": None, "shape": 3},
    ],
)
def test_a_foreign_document_is_refused(maze_evidence: Evidence, change: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="evidence"):
        ev.from_json({**maze_evidence.to_json(), **change})


# --------------------------------------------------------------------------------------- noise


def test_a_visibly_suboptimal_group_proves_nothing() -> None:
    world = read_map("S..\n.#.\n..0\n", horizon=12)
    task = world.tasks[0]
    slow = walk(task, [0, 0, 0, 1, 2, 5, 8])  # waits twice: 6 moves where 4 do
    evidence = ev.label(ev.groups_of(task, [slow, walk(task, [0, 3, 6, 7, 8])]))
    assert [s.testifies for s in evidence.suspects] == [False]
    assert evidence.suspects[0].gap == pytest.approx(1.0)
    assert evidence.counts() == {"allowed": 8, "proven": 0, "implicated": 0, "unknown": 1}
    assert any("do not testify" in said for said in evidence.sentences())


def test_noisy_experts_never_prove_anything_from_a_suspect() -> None:
    for seed in range(5):
        groups = demonstrate(maze(), 3, np.random.default_rng(seed), noise=0.1)
        evidence = ev.label(groups)
        assert evidence.suspects
        heard = {(s.task, s.start) for s in evidence.standings if s.testifies}
        assert {(c.task, c.start) for c in evidence.conflicts} <= heard
        alone = [g for g, s in zip(groups, evidence.standings, strict=True) if not s.testifies]
        for group in alone:
            within = ev.label([group])
            if within.suspects:
                assert not within.proven.any()
                assert not within.implicated.any()


def test_stated_suboptimality_lets_a_slow_group_testify_against_more() -> None:
    """A detour of 8 moves where 4 lead through the wall: slow by one move, still far behind."""
    world = read_map("S.#.0\n..#..\n..#..\n.....\n", horizon=20)
    task = world.tasks[0]
    fast = [0, 5, 10, 15, 16, 17, 18, 19, 14, 9, 4]
    slow = walk(task, [0, *fast])
    groups = ev.groups_of(task, [walk(task, fast), slow])
    assert ev.label(groups).suspects
    heard = ev.label(groups, suboptimality=1.0)
    assert heard.suspects == ()
    assert heard.standings[0].bar == pytest.approx(10 + 1.0)
    assert heard.m.reshape(4, 5)[:2].max() > 0
    # the bar is eps above the best path shown: a gain of 1 is not held against them
    assert all(c.possible > 11 for c in heard.conflicts)


def test_min_paths_keeps_a_stray_visit_from_passing_as_permission() -> None:
    world = read_map("S#0\n...\n...\n", horizon=8)
    task = world.tasks[0]
    around, through = walk(task, [0, 3, 4, 5, 2]), walk(task, [0, 1, 2])
    other = world.task((0, 2), ((1, 0),))
    crossing = walk(other, [3, 0, 1, 2])  # a stray demonstrator of another group: no gain
    groups = [*ev.groups_of(task, [around] * 3), *ev.groups_of(other, [crossing])]
    trusting = ev.label(groups)
    assert trusting.allowed[1]
    assert [s.start for s in trusting.suspects] == [0]
    wary = ev.label(groups, min_paths=2)
    assert wary.proven[1]
    assert 1 in wary.doubtful
    assert any("doubtful" in said for said in wary.sentences())
    # within one group a faster path makes it a suspect: slow experts, or one who cheated
    mixed = ev.label(ev.groups_of(task, [around] * 3 + [through]), min_paths=2)
    assert mixed.suspects
    assert not mixed.proven.any()


def lottery() -> FiniteTask:
    """From 0: action 0 leads to 1 (pays 1) or 2 (pays nothing) by chance, action 1 to 3 (pays 1),
    action 2 over 4 to 5 (pays 5)."""
    P = np.zeros((6, 3, 6))
    P[0, 0, [1, 2]] = 0.5
    P[0, 1, 3] = P[0, 2, 4] = 1.0
    P[1, :, 1] = P[2, :, 2] = P[3, :, 3] = P[5, :, 5] = 1.0
    P[4, :, 5] = 1.0
    reward = np.repeat(np.array([0.0, 1, 0, 1, 0, 5])[:, None], 3, axis=1)
    phi = np.repeat(np.arange(6.0)[:, None, None], 3, axis=1)
    mdp = from_tensor(P, np.eye(6)[0], reward, 3)
    return FiniteTask("lottery", mdp, (Feature("state", "index"),), phi)


def test_with_chance_a_claim_needs_three_standard_errors() -> None:
    task, rng = lottery(), np.random.default_rng(1)
    pi = np.zeros((3, 6, 3))
    pi[:, :, 0] = 1.0
    paths = [rollout(task, pi, 0, rng) for _ in range(60)]
    evidence = ev.label(ev.groups_of(task, paths))
    standing = evidence.standings[0]
    assert standing.bar == pytest.approx(
        standing.expert_return + 3 * standing.standard_error, abs=1e-6
    )
    assert evidence.labels.tolist() == [0, 0, 0, ev.PROVEN, ev.IMPLICATED, ev.IMPLICATED]
    assert evidence.m.tolist() == [0, 0, 0, 1, 2, 2]
    assert evidence.m_exact.all()
    assert any("standard errors" in said for said in evidence.sentences())
    few = ev.label(ev.groups_of(task, paths[:4]))
    assert few.suspects
    assert not few.proven.any()


def test_slip_does_not_make_false_claims() -> None:
    for seed in range(3):
        world = read_map("S.#.0\n..#..\n.....\n", slip=0.1, horizon=14)
        cost = np.repeat(world.truth.walls.reshape(-1, 1).astype(float), 5, axis=1)
        task, rng = world.tasks[0], np.random.default_rng(seed)
        pi, _ = soft.solve(task.mdp, cost, 0.6, 0.05)
        evidence = ev.label(ev.groups_of(task, [rollout(task, pi, 0, rng) for _ in range(20)]))
        assert evidence.chance
        assert not (evidence.proven & ~world.truth.walls.ravel()).any()


# ----------------------------------------------------------------------------------------- use


def test_covered_means_the_goal_is_in_reach_within_allowed_cells(maze_evidence: Evidence) -> None:
    world = maze()
    for task in world.tasks:
        assert ev.covered(maze_evidence, task, 0)
    start_in_wall = state(world, (0, 3))
    goal_in_wall = world.task((0, 3))
    assert not ev.covered(maze_evidence, world.tasks[0], start_in_wall)
    assert not ev.covered(maze_evidence, goal_in_wall, 0)
    short = replace(world, horizon=21).task((0, 9))
    assert not ev.covered(maze_evidence, short, 0)  # 21 moves: the 22nd step is too late
    assert ev.covered(maze_evidence, replace(world, horizon=22).task((0, 9)), 0)


def test_relate_lists_choices_misses_and_contradictions(
    maze_groups: list[Group], maze_evidence: Evidence
) -> None:
    walls = maze().truth.walls
    relation = ev.relate(maze_evidence, walls, maze_groups)
    assert relation.contradicted == relation.missed == relation.unexplained == ()
    assert relation.beaten == ()
    assert set(relation.choices) == set(np.flatnonzero(walls).tolist())
    assert relation.sentences[-1].startswith("Under the constraint no group")
    nothing = ev.relate(maze_evidence, np.zeros(100, dtype=bool), maze_groups)
    assert nothing.unexplained == maze_evidence.conflicts
    assert nothing.beaten
    wrong = ev.relate(maze_evidence, ~walls)
    assert len(wrong.contradicted) == maze_evidence.counts()["allowed"]
    assert wrong.beaten is None
    assert "contradiction" in wrong.sentences[0]


def test_relate_tells_proven_cells_that_were_missed() -> None:
    world = read_map("S#0.\n....\n")
    evidence = ev.label(demonstrate(world, 3, np.random.default_rng(0)))
    forbidden = np.zeros((2, 4), dtype=bool)
    forbidden[0, 3] = True
    relation = ev.relate(evidence, forbidden)
    assert relation.missed == (1,)
    assert relation.unknown == (3,)
    assert [c.cells for c in relation.unexplained] == [(1,)]
    assert ev.relate(evidence, world.truth.walls).confirmed == (1,)


def settled(
    before: Evidence, groups: list[Group], world: GridWorld, task: FiniteTask, start: int, seed: int
) -> int:
    """Unknown cells that ten optimal demonstrations of the task from `start` settle."""
    rng = np.random.default_rng(seed)
    inside = np.repeat(~world.truth.walls.reshape(-1, 1), 5, axis=1)
    pi, _ = soft.plan(task.mdp, task.mdp.reward, 0.05, inside)
    walked = [rollout(task, pi, start, rng) for _ in range(10)]
    after = ev.label([*groups, *ev.groups_of(task, walked)], effort=5)
    return int(before.unknown.sum() - after.unknown.sum())


def test_the_suggested_demonstration_settles_more_than_a_random_one() -> None:
    suggested, at_random = 0.0, 0.0
    for seed in range(MAZES):
        rng = np.random.default_rng(seed)
        world, candidates = random_maze(rng)
        groups = demonstrate(world, 10, rng)
        evidence = ev.label(groups, effort=5)
        first = ev.next_demonstrations(evidence, candidates)[0]
        task = next(t for t in candidates if t.name == first.task)
        suggested += settled(evidence, groups, world, task, first.start, seed)
        for _ in range(3):
            task = candidates[rng.integers(len(candidates))]
            start = int(rng.choice(np.flatnonzero(evidence.allowed)))
            at_random += settled(evidence, groups, world, task, start, seed) / 3
    assert suggested > 1.5 * at_random > 0


def test_suggestions_are_ranked_and_start_where_it_is_safe() -> None:
    world = read_map("S..0\n....\n....\n....\n")
    groups = demonstrate(world, 3, np.random.default_rng(0))
    evidence = ev.label(groups)
    far, near = world.task((3, 3)), world.task((0, 1))
    found = ev.next_demonstrations(evidence, [near, far], np.zeros((4, 4), dtype=bool), paths=5)
    assert found[0].task == far.name
    assert found[0].cells
    assert all(evidence.unknown[x] for s in found for x in s.cells)
    assert all(evidence.allowed[s.start] for s in found)
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_shortest_ways_are_the_optimal_ones_where_only_goals_pay(seed: int) -> None:
    world = read_map(random_map(seed))
    free = np.random.default_rng(seed).random(64) < 0.9
    undecided = 0
    for task in world.tasks:
        shortest, optimal = (
            ways(task.mdp, free, np.arange(64))
            for ways in (suggest.on_shortest_ways, suggest.on_optimal_ways)
        )
        np.testing.assert_allclose(shortest, optimal, atol=1e-9)
        assert (shortest.sum(axis=1) == 0).any()  # from outside
        undecided += int(((shortest > 0) & (shortest < 1)).sum())
    assert undecided > 0


def test_on_a_large_map_some_starts_evenly_spread_stand_for_all() -> None:
    cells = np.arange(1000)
    assert len(suggest.spread(cells, 7)) == 7
    assert list(suggest.spread(cells, 3)) == [0, 499, 999]
    assert list(suggest.spread(cells[:5], 7)) == list(range(5))


# ------------------------------------------------------------------------------------ bad input


def good() -> tuple[FiniteTask, Trajectory]:
    world = read_map("S#0\n...\n")
    return world.tasks[0], walk(world.tasks[0], [0, 3, 4, 5, 2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": np.full((7, 1), 6.0)}, "leaves the map"),
        ({"observations": np.full((7, 1), 0.5)}, "leaves the map"),
        ({"observations": np.zeros((3, 1))}, "expected"),
        ({"observations": np.array([[0.0], [3], [4], [5], [2], [0], [2]])}, "can't lead"),
        ({"rewards": np.ones(6)}, "another task"),
        ({"rewards": np.zeros(2)}, "whole episodes"),
        ({"rewards": np.zeros(9)}, "whole episodes"),
        ({"actions": np.full((6, 1), 9.0)}, "action 9"),
    ],
)
def test_trajectories_that_the_task_can_not_have_produced_are_refused(
    changes: dict[str, Array], message: str
) -> None:
    task, trajectory = good()
    with pytest.raises(InvalidInput, match=message):
        ev.groups_of(task, [replace(trajectory, **changes)])


def test_the_state_after_the_horizon_is_not_a_visit() -> None:
    task, _ = good()
    states = [0, 0, 0, 0, 0, 0, 1]
    assert ev.groups_of(task, [walk(task, states)])[0].visitors[1] == 0


def test_useless_arguments_are_refused(maze_evidence: Evidence) -> None:
    task, trajectory = good()
    groups = ev.groups_of(task, [trajectory])
    other = ev.groups_of(maze().tasks[0], [walk(maze().tasks[0], [0])])
    endless = FiniteMDP(task.mdp.transition, task.mdp.start, task.mdp.reward, None, 0.9)
    with pytest.raises(InvalidInput, match="no group"):
        ev.label([])
    with pytest.raises(InvalidInput, match="one set of cells"):
        ev.label([*groups, *other])
    with pytest.raises(InvalidInput, match="min_paths"):
        ev.label(groups, min_paths=0)
    with pytest.raises(InvalidInput, match="suboptimality"):
        ev.label(groups, suboptimality=-1.0)
    with pytest.raises(InvalidInput, match="finite one"):
        ev.groups_of(replace(task, mdp=endless), [trajectory])
    with pytest.raises(InvalidInput, match="100 cells"):
        ev.covered(maze_evidence, task, 0)
    with pytest.raises(InvalidInput, match="forbidden"):
        ev.relate(maze_evidence, np.zeros((3, 3), dtype=bool))
    with pytest.raises(InvalidInput, match="groups"):
        ev.relate(maze_evidence, np.zeros(100, dtype=bool), groups)
    with pytest.raises(InvalidInput, match="other cells"):
        ev.next_demonstrations(maze_evidence, [task])
    with pytest.raises(InvalidInput, match="paths"):
        ev.next_demonstrations(maze_evidence, [], paths=0)
    with pytest.raises(InvalidInput, match="rho"):
        ev.exact_group(task, 0, np.zeros((2, 6, 5)))


def test_cells_without_a_grid_are_named_by_number() -> None:
    assert ev.shape_of(lottery()) == (6,)
    assert ev.shape_of(maze().tasks[0]) == (10, 10)


def test_a_large_world_is_labelled_in_seconds_and_says_what_is_unsettled() -> None:
    world = read_map(random_map(1, side=30, walls=0.25, starts=2, goals=3))
    demos = make_demonstrations(world, ExpertConfig(paths=3, heldout=0))
    pairs = zip(world.tasks, demos.tasks, strict=True)
    evidence = ev.label([g for task, d in pairs for g in ev.groups_of(task, d.train)])
    walls = world.truth.walls.ravel()
    assert not (evidence.proven & ~walls).any()
    assert not (evidence.allowed & walls).any()
    assert any("cut short" in said for said in evidence.sentences())


def test_tables_of_a_few_groups_at_a_time_give_the_same_evidence(
    monkeypatch: pytest.MonkeyPatch, maze_groups: list[Group], maze_evidence: Evidence
) -> None:
    monkeypatch.setattr(moves, "AT_ONCE", 1000)
    assert ev.label(maze_groups).to_json() == maze_evidence.to_json()


@pytest.mark.parametrize("seed", range(4))
def test_shortest_ways_give_the_returns_of_the_dynamic_programme(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world = read_map(random_map(seed))
    starts = [state(world, cell) for cell in world.starts]
    cases = [Case(task.mdp, start, 0.0) for task in world.tasks for start in starts]
    sets = np.random.default_rng(seed).random((20, 64)) < 0.8
    by_steps = conflicts.best_returns(cases, sets)
    monkeypatch.setattr(moves, "MANY", 0)
    np.testing.assert_array_equal(conflicts.best_returns(cases, sets), by_steps)
    assert np.isneginf(by_steps).any()
    assert (by_steps > 0).any()
