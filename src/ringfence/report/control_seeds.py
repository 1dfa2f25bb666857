"""One page over several seeds of the same experiment on a continuous world."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.errors import InvalidInput
from ringfence.report.control_page import charts
from ringfence.report.control_read import ControlRun
from ringfence.report.markup import Child, Markup, number, tag
from ringfence.report.seeds import mean_se
from ringfence.report.shell import document, plus_minus, section, table, tiles, versions_line
from ringfence.report.words import plural


def render(runs: Sequence[ControlRun]) -> str:
    """One page over several seeds of the same experiment."""
    if not runs[0].rows:
        raise InvalidInput("none of these runs learned a constraint: there is nothing to compare")
    first = runs[0].summary
    title = f"{first['world']}: {first['class']} over {plural(len(runs), 'seed')}"
    words = [first["world"], first["method"], first["player"], plural(len(runs), "seed")]
    head = tag(
        "header",
        tag("p", "Ringfence \u00b7 " + " \u00b7 ".join(words), class_="eyebrow"),
        tag("h1", f"{first['class']} over {plural(len(runs), 'seed')}"),
        tiles(_many_figures(runs)),
    )
    now = max(len(run.rows) for run in runs)
    note = "Lines are means over seeds, bands one standard error, thin lines single seeds."
    course = section(
        "Iteration by iteration",
        tag("p", note, class_="muted"),
        tag("div", charts(runs, now), class_="charts"),
        name="iterations",
    )
    footer = tag("footer", f"Written with {versions_line(first['versions'])}.")
    return document(title, [head, course, _seed_table(runs), footer])


def _many_figures(runs: Sequence[ControlRun]) -> list[tuple[str, str]]:
    def over(name: str) -> str:
        return plus_minus(*mean_se([run.best[name] for run in runs]))

    items = [
        (over("learner_reward_mean"), f"learners' reward, experts {over('expert_reward_mean')}")
    ]
    if runs[0].truth is not None:
        items.append((over("learner_true_raw_mean"),
                      f"true raw value, experts {over('expert_true_raw_mean')}"))  # fmt: skip
    if runs[0].best["constraint_error"] is not None:
        items.append((over("constraint_error"), "error against the truth"))
    return items


def _seed_table(runs: Sequence[ControlRun]) -> Markup:
    columns = (
        *("constraint_error", "learner_reward_mean", "expert_reward_mean"),
        *("learner_true_raw_mean", "expert_true_raw_mean", "learner_true_cost_mean"),
    )
    rows: list[list[Child]] = []
    for run in runs:
        row = run.best
        rows.append(
            [run.summary["seed"], row["constraint"]["description"], row["i"],
             *(number(row[c], 4) for c in columns)]
        )  # fmt: skip
    head = ["seed", "selected constraint", "iteration", "error", "reward", "experts'"]
    head += ["true raw", "experts'", "true cost"]
    return section("Seed by seed", table(head, rows, text=(1,)), name="seeds")
