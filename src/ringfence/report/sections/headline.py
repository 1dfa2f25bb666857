"""The result in one look: the constraint, what speaks against it, and its figures."""

from __future__ import annotations

from ringfence.objects import NotHere
from ringfence.report.facts import difference, rule, title
from ringfence.report.markup import Markup, muted, tag, tiles
from ringfence.report.read import Run
from ringfence.report.text import figure_text, parameter_words, plural, subscript

TITLE = "The result"
MOST_PARAMETERS = 4  # of these have a tile


def section(run: Run) -> Markup | NotHere:
    s = run.summary
    names = [s["world"], s["method"], s["player"], f"seed {s['seed']}"]
    body = [tag("p", _without(run), class_="lede")] if not run.rows else _found(run)
    return tag(
        "header",
        tag("p", "Ringfence \u00b7 " + " \u00b7 ".join(names), class_="eyebrow"),
        tag("h1", _title(run)),
        _doubts(run),
        body,
    )


def _curve(run: Run) -> tuple[float, float] | None:
    """From where to where the limit goes, where it can't be told from the budget."""
    interval = run.summary["constraint"]["interval"] if run.rows else None
    if interval is None:
        return None
    values = [at["parameter"] for at in interval.get("curve") or ()]
    if not values or len(run.best["constraint"]["parameters"]) != 1:
        return None
    return min(values), max(values)


def _title(run: Run) -> str:
    ends = _curve(run)
    if ends is None:
        return title(run)
    numbers = f"{ends[0]:.4g} to {ends[1]:.4g}"
    return f"{run.summary['class'].replace('?', numbers)}, by what an episode was allowed"


def _doubts(run: Run) -> Markup | None:
    """What speaks against the outcome stands above everything that speaks for it."""
    doubts = [text.rstrip(".") for text in run.summary["doubts"]]
    if not doubts:
        return None
    lines = [
        tag("p", tag("strong", "Mind: "), doubt, "" if doubt.endswith("?") else ".")
        for doubt in doubts
    ]
    return tag("div", lines, class_="doubts", role="note")


def _without(run: Run) -> str:
    free = run.summary["unconstrained"]
    return (
        f"Without a constraint a learner earns {figure_text(free['learner_reward_mean'])} an "
        f"episode after {free['env_steps']:,} steps, the demonstrators "
        f"{figure_text(free['expert_reward_mean'])}; and it does nothing that they avoid, as far "
        f"as the class {run.summary['class']!r} can tell. So nothing was to be learned from them. "
        "A training that was too short looks the same: if in doubt, give it more steps, or play "
        "anyway (--set opening.probe=false)."
    )


def _found(run: Run) -> list[Markup]:
    description = run.best["constraint"]["description"]
    open_ = [] if _curve(run) is None else [tag("p", _covered(run), class_="lede")]
    drawn = [*open_, tag("p", lede(run), class_="lede"), muted(ending(run)), tiles(figures(run))]
    return drawn if rule(run) == description else [*drawn, tag("p", description, class_="words")]


def lede(run: Run) -> str:
    """Reward and violation against the experts, and the overlap with the truth if it is known."""
    row = run.best

    def pair(name: str) -> tuple[str, str]:
        return figure_text(row[f"learner_{name}_mean"]), figure_text(row[f"expert_{name}_mean"])

    learner, expert = pair("reward")
    said = f"Learners that keep to it earn {learner} an episode, the experts {expert}."
    if not run.truth_known:
        return (
            f"{said} Nobody told this run the true constraint, so whether this is it can't be "
            "measured here."
        )
    learner, expert = pair("true_cost")
    if run.walls is None:
        return f"{said} Their true cost is {learner}, the experts' {expert}."
    said += (
        f" They spend {learner} steps an episode in truly forbidden cells, the experts {expert}."
    )
    iou = row["constraint"]["iou"]
    if iou is None:
        return said
    if iou == 1:
        return f"{said} The constraint is the truth, cell for cell (IoU 1)."
    return (
        f"{said} Its overlap with the true walls is IoU {iou:.3f}: "
        f"{difference(run.walls, run.chosen)}."
    )


def ending(run: Run) -> str:
    """Why the game ended, and how the constraint was chosen."""
    payoff, count = run.rows[-1]["best_payoff"], len(run.rows)
    if payoff is not None and payoff <= epsilon(run):
        why = (
            f"The game ended after {plural(count, 'iteration')}, because no constraint of the "
            "class could tell the learners from the experts any more"
        )
    else:
        why = f"The game was played for all of its {plural(count, 'iteration')}"
    how = "was selected by all demonstrators and learners, without the truth"
    selection = run.summary["selection"]
    if selection is not None and selection["rewarding"] is False:
        how += ", though its learners earn less than the experts"
    failed = int(sum(n or 0 for n in run.summary["failed_demonstrations"] or ()))
    left = f" {plural(failed, 'failed demonstration')} left out." if failed else ""
    return f"{why}; iteration {run.selected} {how}.{left}"


def epsilon(run: Run) -> float:
    """The payoff per step at which a game ends; below 0: never."""
    game = run.config.get("game")
    value = game.get("epsilon") if isinstance(game, dict) else None
    return float(value) if isinstance(value, int | float) else -1.0


def figures(run: Run) -> list[tuple[str, str]]:
    row = run.best
    items = _parameters(run)
    reward = figure_text(row["expert_reward_mean"])
    items.append((figure_text(row["learner_reward_mean"]),
                  f"reward of the learners, experts {reward}"))  # fmt: skip
    what, name = ("true raw value", "true_raw")
    if run.walls is not None:
        what, name = ("steps in forbidden cells", "true_cost")
    if row[f"learner_{name}_mean"] is not None:
        expert = figure_text(row[f"expert_{name}_mean"])
        items.append((figure_text(row[f"learner_{name}_mean"]), f"{what}, experts {expert}"))
    iou, error = row["constraint"]["iou"], row["constraint_error"]
    if iou is not None:
        items.append((f"{iou:.3f}".rstrip("0").rstrip("."), "overlap with the true walls (IoU)"))
    elif error is not None:
        items.append((f"{error:.4f}", "error against the truth"))
    if run.labels is not None:
        found, total = run.labels.relation, int(run.labels.forbidden.sum())
        backed = len(found.confirmed) + len(found.implicated)
        items.append((f"{backed} of {total}", "forbidden cells have evidence against them"))
    count = plural(len(run.rows), "iteration")
    return [*items, (f"c{subscript(run.selected)}", f"selected of {count}")]


def _covered(run: Run) -> str:
    """What the interval or the curve covers, as a sentence."""
    words = str(run.summary["constraint"]["interval"].get("words") or "")
    return words[:1].upper() + words[1:] + "."


def _parameters(run: Run) -> list[tuple[str, str]]:
    interval, ends = run.summary["constraint"]["interval"], _curve(run)
    if ends is not None:
        (value,) = run.best["constraint"]["parameters"].values()
        small = (
            f"limit, by what an episode was allowed; the policies were trained under {value:.4g}"
        )
        return [(f"{ends[0]:.4g} to {ends[1]:.4g}", small)]
    items = []
    for name, value in list(run.best["constraint"]["parameters"].items())[:MOST_PARAMETERS]:
        small = f"learned {parameter_words(name)}"
        pair = None if interval is None else interval["parameters"].get(name)
        if interval is not None and pair is not None:
            low, high = pair
            small += f", {interval['level']:.0%} between {low:.4g} and {high:.4g}"
            small += " (" + (interval.get("words") or "over demonstrations only") + ")"
        items.append((f"{value:.4g}", small))
    return items
