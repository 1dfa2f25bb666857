"""From a game's configuration to its constraint class and player, and the interval behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from ringfence.analysis.intervals import LEVEL, bootstrap, interval
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.template import Template, linear_template, parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint, Feature, Trajectory, behaviour_of
from ringfence.players.convex import Begun, ConstraintPlayer
from ringfence.players.template import PayoffPlayer, TemplateRegression
from ringfence.runs.control_config import ControlConfig, ControlGame

LINEAR, NETWORK = "linear", "mlp"
#: The network's stream of random numbers, after the run's seed.
NETWORK_STREAM = 50


def make_template(game: ControlGame, features: Sequence[Feature]) -> Template | None:
    """The class as a template; None for networks."""
    names = [f.name for f in features]
    for name in game.on:
        if name not in names:
            raise InvalidInput(
                f"[game] on: there is no feature {name!r}; features are {', '.join(names)}"
            )
    if game.constraint == NETWORK:
        return None
    if game.constraint == LINEAR:
        return linear_template(features, game.on or names)
    if game.on:
        raise InvalidInput(f"[game] on is for {LINEAR!r} and {NETWORK!r}; an inequality names its")
    return parse_template(game.constraint, features)


def used_features(game: ControlGame, features: Sequence[Feature]) -> list[str]:
    """The names of the features that the class depends on."""
    template = make_template(game, features)
    if template is None:
        return list(game.on) or [f.name for f in features]
    rows = np.vstack([template.weights, template.basis])
    return [f.name for f, column in zip(features, rows.T, strict=True) if column.any()]


def make_player(config: ControlConfig, features: tuple[Feature, ...], T: float) -> ConstraintPlayer:
    """The player without what it knows before the game."""
    game, template = config.game, make_template(config.game, features)
    if game.method == "mt-icl" and template is not None and game.player != "payoff":
        raise InvalidInput(
            "mt-icl needs a class under which the experts are safe: use player payoff, or the "
            f"class {NETWORK!r} with a tolerance"
        )
    if template is None:
        if game.player == "payoff":
            raise InvalidInput("the payoff player has no network; use regression with a tolerance")
        from ringfence.players.network import MLPRegression

        tolerance = 0.0 if game.method == "mt-icl" and game.tolerance is None else game.tolerance
        return MLPRegression(
            features,
            T,
            (config.seed, NETWORK_STREAM),
            used=game.on or None,
            tolerance=tolerance,
            **asdict(config.network),
        )
    if game.tolerance is not None:
        raise InvalidInput(f"[game] tolerance is for {NETWORK!r}; player payoff has expert_budget")
    if game.player == "payoff":
        return PayoffPlayer(template, T, game.expert_budget)
    return TemplateRegression(template, T)


def begin(
    player: ConstraintPlayer, game: ControlGame, experts: Sequence[Behaviour], first: Any
) -> Begun:
    """With the learners known before the game.

    The plain regression forgets them, as they were made under no constraint of the game and
    would hold its mean back (a fifth of the error after 20 iterations); the others keep them.
    """
    keep = game.player == "payoff" or game.constraint == NETWORK
    return Begun(player, experts, first, keep)


def parameters(template: Template | None, c: Constraint) -> dict[str, float]:
    """What was learned, by name; nothing for a network."""
    if template is None or not isinstance(c, LinearConstraint):
        return {}
    theta = template.theta_of(c)
    return {} if theta is None else dict(zip(template.names, map(float, theta), strict=True))


def make_interval(
    player: Begun,
    template: Template | None,
    trajectories: Sequence[Sequence[Trajectory]],
    history: Sequence[Sequence[Behaviour]],
    resamples: int,
    seed: int,
) -> dict[str, Any] | None:
    """The bootstrap interval of c_i, learned from the learners before it.

    It says what other demonstrations by the same experts would have given, not how far the
    experts are from their limit. None for networks, and where most resamples have no answer.
    """
    if template is None or resamples < 1:
        return None
    learners = [*([player.first] if player.keep or not history else []), *history]

    def fit(experts: Sequence[Behaviour]) -> Array:
        try:
            c = player.player.update(experts, learners)
        except InvalidInput:  # payoff: these few are in no constraint's budget
            return np.full(len(template.names), np.nan)
        theta = template.theta_of(cast(LinearConstraint, c))
        assert theta is not None
        return theta

    samples = bootstrap(fit, trajectories, resamples, (seed,))
    answered = ~np.isnan(samples).any(axis=1)
    if answered.mean() < 0.5:
        return None
    if isinstance(player.player, TemplateRegression):
        # The regression lies between experts and learners, and learners follow their experts:
        # other experts would have moved both, so the answer twice as far as they alone do.
        centre = fit([behaviour_of(task) for task in trajectories])
        samples = centre + 2 * (samples - centre)
    low, high = interval(samples[answered])
    return {
        "level": LEVEL,
        "resamples": resamples,
        "unanswered": int((~answered).sum()),
        "over": "demonstrations",
        "parameters": {
            name: [float(a), float(b)] for name, a, b in zip(template.names, low, high, strict=True)
        },
    }
