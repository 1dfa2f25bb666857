"""Who keeps a limit on any world: trainings at one setting, counted on fresh episodes.

The summary of a training has, beside what a solve says, `limits`: figures of 100 episodes with the
policy's noise and of 100 without, under the world's constraint, and what random actions earn. A
part of the experiment is an environment: its unconstrained training and those at fixed multipliers
are what the others are measured by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringfence.binomial import binomial_interval
from ringfence.deploy.policies import load_policy
from ringfence.disk import read_json
from ringfence.objects import Constraint, Trajectory
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, standard_error
from ringfence.reproduce.solves import constraint_of, document, referred, trained, world_of
from ringfence.reproduce.study import Study, Summary, kept
from ringfence.reproduce.trainings import ACTIONS, UNCONSTRAINED
from ringfence.runs import problem
from ringfence.runs.config import merged
from ringfence.solvers.collecting import evaluate, seen_of
from ringfence.worlds.gym import GymTask

EPISODES = 100
#: The seed path of the episodes, beside the training's own; that of random actions.
FRESH, RANDOM = 71, 72
#: At a limit of 0, of steps and of episodes, the most that may violate.
STEPS_BEYOND, EPISODES_BEYOND = 0.01, 0.05
#: Of what the best fixed multiplier earns above random actions, enough.
ENOUGH = 0.95
#: What a row has of the policy with its noise, and without.
FIGURES = ("reward", "cost", "violating_episodes", "violating_steps", "length")


# A training and its episodes -------------------------------------------------------------------


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """A training's summary, with its fresh episodes, and the seconds that it took."""
    variant = with_limit(study, variant)
    training, world, judged = variant.get("training"), world_of(variant), judged_under(variant)
    run = trained(study.experiment, variant, seed, study.say)
    asked = {**document(study.experiment, variant, seed), "judged": judged}

    def count() -> Summary:
        c = constraint_of(judged or UNCONSTRAINED, training, world)
        seen = constraint_of(training["constraint"], training, world)
        raw = seen_of(seen, getattr(problem.read(run).solver, "augment", True))
        task: Any = world.tasks[0]
        found: Summary = {"constraint": c.describe() if judged else None}
        for k, actions in enumerate(ACTIONS):
            study.say(f"  {EPISODES} fresh episodes, {actions}")
            path, fixed = (seed, FRESH, k), actions == "deterministic"
            episodes = evaluate(task, load_policy(run).arrays, raw, EPISODES, path, fixed)
            found[actions] = figures(episodes, c, float(training["delta"]))
        return found

    limits = kept("limits", asked, count)
    random = kept("random", {"world": asked["world"]}, lambda: random_rewards(world.tasks[0]))
    summary = {**read_json(run / "summary.json"), "limits": {**limits, "random": random}}
    return summary, float(read_json(run / "timing.json")["seconds"])


def with_limit(study: Study, variant: Variant) -> Variant:
    """The variant with its delta in figures, where that is a share of an unconstrained cost."""
    training = variant.get("training")
    if "share_of" not in training:
        return variant
    _, free = referred(study.experiment, training["share_of"])
    summary, _ = play(study, free, free.first_seed)
    delta = training["share"] * summary["limits"]["stochastic"]["cost"]
    return replace(variant, settings=merged(variant.settings, {"training": {"delta": delta}}))


def judged_under(variant: Variant) -> str:
    """The constraint that its episodes are counted under; "" if there is none."""
    training = variant.get("training")
    if training["constraint"] != UNCONSTRAINED:
        return str(training["constraint"])
    return str(next(iter(training.get("judged_under", ())), ""))


def figures(episodes: Sequence[Trajectory], c: Constraint, delta: float) -> Summary:
    """Means over episodes; an episode violates if its cost sums to more than delta."""
    rewards, lengths = (
        np.array([float(value(t)) for t in episodes]) for value in (lambda t: t.rewards.sum(), len)
    )
    costs = [c.cost(t.features) for t in episodes]
    sums = np.array([float(cost.sum()) for cost in costs])
    return {
        "episodes": len(episodes),
        "reward": float(rewards.mean()),
        "reward_se": standard_error(rewards.tolist()),
        "cost": float(sums.mean()),
        "cost_se": standard_error(sums.tolist()),
        "violating_episodes": int((sums > delta).sum()),
        "violating_steps": float(np.concatenate(costs).astype(bool).mean()),
        "length": float(lengths.mean()),
    }


def random_rewards(task: Any) -> Summary | None:
    """What uniformly random actions earn; None where it is no Gymnasium environment."""
    if not isinstance(task, GymTask):
        return None
    env, rewards = task.make(), []
    env.action_space.seed(RANDOM)
    for n in range(EPISODES):
        seen, total = env.reset(seed=n)[0], 0.0
        for _ in range(task.horizon):
            action, before = env.action_space.sample(), seen
            seen, reward, terminated, truncated, _ = env.step(action)
            if task.reward is not None:
                transition = (before, np.atleast_1d(action), seen)
                (reward,) = task.reward(*(np.asarray(x)[None] for x in transition))
            total += float(reward)
            if terminated or truncated:
                break
        rewards.append(total)
    env.close()
    return {"reward": float(np.mean(rewards)), "reward_se": standard_error(rewards)}


# The table -------------------------------------------------------------------------------------


def limits(study: Study) -> Found:
    """A row per environment, limit and seed, each with the figures of its seeds together."""
    variants = {**study.experiment.variants, **{v.name: v for v in study.variants}}.values()
    rows: Rows = []
    for variant in variants:
        if multiplier(variant) is None:
            rows += with_together(
                [row_of(variant, *pair) for pair in each_seed(study, variant).items()],
                {f"reference_{key}": value for key, value in variant.reference.items()},
                measures(study, variant, [v for v in variants if v.part == variant.part]),
            )
    return Found(rows)


def multiplier(variant: Variant) -> float | None:
    """At which the training is held, if it is."""
    found: float | None = variant.get("solver").get("fixed_lam")
    return found


def row_of(variant: Variant, seed: int, summary: Summary | None) -> Row:
    """One training's policy."""
    training = variant.get("training")
    limited = training["constraint"] != UNCONSTRAINED
    row: Row = {"env": variant.part, "limit": training["delta"] if limited else None, "seed": seed}
    row |= {"variant": variant.name, "constraint": judged_under(variant)}
    names = [name + end for name in FIGURES for end in ("", "_deterministic")]
    row |= dict.fromkeys(("steps", *names, "violation_low", "violation_high", "kept"))
    if summary is None:
        return {**row, "limit": None if "share_of" in training else row["limit"], "status": NOT_RUN}
    found = summary["limits"]
    row |= {"limit": summary["delta"] if limited else None, "steps": summary["env_steps"]}
    row["told"] = "; ".join(summary.get("doubts", ()))
    for actions, end in zip(ACTIONS, ("", "_deterministic"), strict=True):
        row |= {name + end: found[actions][name] for name in FIGURES}
    if found["constraint"] is None:
        names = [name for name in names if name.startswith(("cost", "violating"))]
        return {**row, **dict.fromkeys(names), "kept": True}
    low, high = binomial_interval(row["violating_episodes"], EPISODES)
    within = all(keeps(found[actions], row["limit"]) for actions in ACTIONS)
    return {**row, "violation_low": low, "violation_high": high, "kept": within}


def keeps(found: Mapping[str, Any], limit: float | None) -> bool:
    """The mean cost is within the limit; at a limit of 0 hardly a step or episode violates."""
    if limit is None:
        return True
    if limit > 0:
        return bool(found["cost"] <= limit)
    few = found["violating_episodes"] <= EPISODES_BEYOND * found["episodes"]
    return bool(few and found["violating_steps"] <= STEPS_BEYOND)


def measures(study: Study, variant: Variant, part: Sequence[Variant]) -> Summary:
    """What a variant is measured by, as far as that was run: random actions, its environment's
    unconstrained training, and the same training at fixed multipliers."""
    small = any(multiplier(other) is not None for other in part)
    found: Summary = {"small": small, "random": None, "free": None, "fixed": {}}
    for other in part:
        training, held = other.get("training"), multiplier(other)
        for summary in study.summaries(other).values():
            found["random"] = summary["limits"]["random"]
            if held is not None and training == variant.get("training"):
                found["fixed"][held] = summary["limits"]["stochastic"]
            elif training["constraint"] == UNCONSTRAINED and found["free"] is None:
                found["free"] = summary["limits"]["stochastic"]
    return found


def with_together(rows: Rows, reference: Row, measured: Summary) -> Rows:
    """Each row with what its seeds reach together, and what that is measured by."""
    played = [row for row in rows if "status" not in row]
    together: Row = {"first": False, "small": measured["small"], **reference}
    together["seeds_not_run"] = len(rows) - len(played)
    if played:
        limit, rewards = played[0]["limit"], [row["reward"] for row in played]
        mean, error = float(np.mean(rewards)), standard_error(rewards)
        together |= {"mean_reward": mean, "mean_reward_se": error}
        together["seeds_kept"] = sum(row["kept"] for row in played)
        if played[0]["cost"] is not None:
            together |= pooled(played)
        if "reference_reward" in reference:
            enough = reference["reference_reward"] - reference["reference_spread"]
            together["reached"] = mean >= enough
        together |= compared(mean, limit, measured)
    rows = [{**row, **together} for row in rows]
    return [{**rows[0], "first": True}, *rows[1:]]


def pooled(rows: Sequence[Row]) -> Row:
    """The seeds' episodes as one, with the exact interval of the chance that one violates."""
    violating, episodes = sum(row["violating_episodes"] for row in rows), EPISODES * len(rows)
    low, high = binomial_interval(violating, episodes)
    return {
        "pooled_episodes": episodes,
        "pooled_violating": violating,
        "pooled_low": low,
        "pooled_high": high,
        "pooled_steps": float(np.mean([row["violating_steps"] for row in rows])),
        "most_cost": max(row["cost"] for row in rows),
        "most_cost_deterministic": max(row["cost_deterministic"] for row in rows),
    }


def compared(mean: float, limit: float | None, measured: Summary) -> Row:
    """Against the best fixed multiplier within the limit, both above random actions."""
    row: Row = {}
    random, free, fixed = measured["random"], measured["free"], measured["fixed"]
    if random is not None:
        row["random_reward"] = random["reward"]
    if free is not None:
        row |= {"free_reward": free["reward"], "free_cost": free["cost"]}
        row["free_violating"] = free["violating_episodes"]
    if not fixed or random is None or limit is None:
        return row
    row["fixed_multipliers"] = "; ".join(
        f"{lam:g}: {found['reward']:.4g} at {found['cost']:.3g}"
        for lam, found in sorted(fixed.items())
    )
    within = {lam: found["reward"] for lam, found in fixed.items() if keeps(found, limit)}
    if within and max(within.values()) > random["reward"]:
        lam = max(within, key=lambda lam: within[lam])
        score = (mean - random["reward"]) / (within[lam] - random["reward"])
        row |= {"best_multiplier": lam, "best_reward": within[lam], "score": score}
        row["reached"] = score >= ENOUGH
    return row
