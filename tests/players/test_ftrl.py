"""Follow the regularised leader: its objective, its payoff, its rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from class_cases import CASES, PLANE, SHAPE, Case, T, feasible_points, on_cells, theta_of
from ringfence.constraints.classes import LinearClass, TableClass
from ringfence.constraints.family import make_family
from ringfence.errors import InvalidInput
from ringfence.objects import Array, J
from ringfence.players.ftrl import FTRL, Config, ftrl, make
from ringfence.players.player import Ground, payoff_gradient
from ringfence.worlds.grid import FEATURES


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
@pytest.mark.parametrize("eta", [0.05, 1.0, 50.0])
def test_ftrl_update_is_the_argmax_of_its_objective(
    case: Case, restricted: bool, seed: int, eta: float
) -> None:
    F_c, experts, history = case(seed, restricted)
    total = np.sum([payoff_gradient(F_c, experts, pi, T) for pi in history], axis=0)
    theta = theta_of(FTRL(F_c, T, eta).update(experts, history))

    def objective(points: Array) -> Array:
        return np.asarray(points @ total - (points**2).sum(axis=-1) / (2 * eta))

    others = feasible_points(F_c, np.random.default_rng(99), 20_000)
    assert objective(theta) >= objective(others).max() - 1e-12
    # The optimality condition: the objective's gradient points out of the class.
    assert ((others - theta) @ (total - theta / eta)).max() <= 1e-10


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
def test_payoff_is_linear_in_the_parameters(case: Case, restricted: bool, seed: int) -> None:
    F_c, experts, history = case(seed, restricted)
    c = ftrl(F_c, T, 4).update(experts, history)
    for learners in history:
        gap = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
        g = payoff_gradient(F_c, experts, learners, T)
        assert g @ theta_of(c) == pytest.approx(np.mean(gap) / T, abs=1e-12)
        assert np.linalg.norm(g) <= F_c.moment_bound + 1e-12


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
def test_ftrl_s_rate_holds_against_an_adversary(case: Case, restricted: bool, seed: int) -> None:
    """Learners that change sides each round, the worst for a player that follows the leader."""
    F_c, experts, history = case(seed, restricted)
    N = 30
    rounds = [history[0] if i % 2 else experts[::-1] for i in range(N)]
    for scale in (0.1, 1.0, 10.0):
        best_for_N = ftrl(F_c, T, N)
        player = replace(best_for_N, eta=scale * best_for_N.eta)
        iterates = [player.initial()]
        iterates += [player.update(experts, rounds[:i]) for i in range(1, N)]
        gradients = np.array([payoff_gradient(F_c, experts, pi, T) for pi in rounds])
        own = np.cumsum([g @ theta_of(c) for g, c in zip(gradients, iterates, strict=True)])
        best = np.array([g @ F_c.maximise(g) for g in gradients.cumsum(axis=0)])
        rate = np.array([player.rate(n) for n in range(1, N + 1)])
        assert (best - own <= rate + 1e-9).all()


def test_ftrl_starts_from_nothing_forbidden() -> None:
    assert not theta_of(ftrl(TableClass(FEATURES, SHAPE), T, 5).initial()).any()
    assert not theta_of(ftrl(LinearClass(PLANE, 1.0, 2.0), T, 5).initial()).any()


def test_best_step_size_gives_the_rate_D_G_sqrt_N() -> None:
    F_c = TableClass(FEATURES, SHAPE)
    player = ftrl(F_c, T, 50)
    assert player.rate(50) == pytest.approx(F_c.radius * F_c.moment_bound * np.sqrt(50))
    assert player.rate(50) < min(replace(player, eta=k * player.eta).rate(50) for k in (0.9, 1.1))


def test_the_kind_is_made_for_convex_classes() -> None:
    rng = np.random.default_rng(0)
    experts = [on_cells(rng, 0.3)]
    cells = make_family("table", (), FEATURES, SHAPE, None)
    for restricted in (True, False):
        player = make(Config(restricted=restricted), Ground(cells, T, experts, True, 7, 0))
        assert isinstance(player.F_c, TableClass)
        assert (player.F_c.zero is not None) == restricted
        assert player.eta == ftrl(player.F_c, T, 7).eta
    line = make_family("row <= ?", (), FEATURES, None, None)
    with pytest.raises(InvalidInput, match=r"ftrl needs a convex class.*'row <= \?' is none"):
        make(Config(), Ground(line, T, experts, True, 7, 0))
