"""report.html of a run on a continuous world, and one page over several seeds of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ringfence.report import control_svg
from ringfence.report.charts import Series, line_chart
from ringfence.report.control_read import ControlRun, parameter_words, true_parameters
from ringfence.report.markup import Child, Markup, data_block, figure_text, number, tag
from ringfence.report.seeds import mean_se
from ringfence.report.shell import (
    document,
    folded,
    section,
    table,
    tiles,
    versions_line,
)

#: Moves the class `off` about as the slider says.
SCRIPT = """
(() => {
  "use strict";
  const all = (query) => [...document.querySelectorAll(query)];
  const slider = document.getElementById("iteration"), play = document.getElementById("play");
  const shown = document.getElementById("shown"), count = +slider.max;
  let timer = null;
  function show(i) {
    slider.value = i;
    shown.textContent = i + " of " + count;
    for (const part of all("[data-i]")) part.classList.toggle("off", +part.dataset.i !== i);
    for (const row of all("tr[data-row]")) row.classList.toggle("current", +row.dataset.row === i);
    for (const line of all(".guide")) {
      const x = line.dataset.x.split(" ")[i - 1];
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
  }
  function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (+slider.value >= count) show(1);
    play.textContent = "Pause";
    timer = setInterval(() => +slider.value >= count ? stop() : show(+slider.value + 1), 800);
  });
  slider.addEventListener("input", () => { stop(); show(+slider.value); });
  for (const hit of all("[data-goto]"))
    hit.addEventListener("click", () => { stop(); show(+hit.dataset.goto); });
})();
"""

#: Title of a column, where a row of the summary has it, and whether it needs the truth.
COLUMNS = (
    ("error", "constraint_error", True),
    ("learner reward", "learner_reward_mean", False),
    ("expert reward", "expert_reward_mean", False),
    ("learner cost", "learner_cost_mean", False),
    ("expert cost", "expert_cost_mean", False),
    ("limit", "delta_mean", False),
    ("learner true raw", "learner_true_raw_mean", True),
    ("expert true raw", "expert_true_raw_mean", True),
    ("learner true cost", "learner_true_cost_mean", True),
    ("multiplier", "lam_mean", False),
    ("length", "learner_length_mean", False),
    ("env steps", "env_steps", False),
)


def render(run: ControlRun) -> str:
    """The page of a finished run."""
    s = run.summary
    if s["outcome"] != "constraint":
        return document(f"{s['world']}: no constraint needed", [_nothing(run), _reproduce(run)])
    story = [_head(run), _explorer(run), _course(run), _open(run), _choices(run)]
    body = [*story, _use(run), _reproduce(run)]
    title = f"{s['world']}: {run.best['constraint']['description']}"
    return document(title, body, data_block("data", {"selected": s["selected"]}), SCRIPT)


def _eyebrow(run: ControlRun) -> Markup:
    s = run.summary
    words = [s["world"], s["method"], s["player"], f"seed {s['seed']}"]
    return tag("p", "Ringfence \u00b7 " + " \u00b7 ".join(words), class_="eyebrow")


def _nothing(run: ControlRun) -> Markup:
    free = run.summary["unconstrained"]
    lede = (
        f"Without a constraint a learner earns {figure_text(free['learner_reward_mean'])} an "
        f"episode after {free['env_steps']:,} steps, the demonstrators "
        f"{figure_text(free['expert_reward_mean'])}; and it does nothing that they avoid, as far "
        f"as the class {run.summary['class']!r} can tell. So nothing was to be learned from them. "
        "A training that was too short looks the same: if in doubt, give it more steps, or play "
        "anyway (probe = false, or --no-probe)."
    )
    return tag(
        "header", _eyebrow(run), tag("h1", "No constraint needed"), tag("p", lede, class_="lede")
    )


def _head(run: ControlRun) -> Markup:
    row, s = run.best, run.summary
    how = "chosen on held-out demonstrations"
    if not s["heldout"]["rewarding"]:
        how = "the one that earns most, because none earns what the experts do"
    lede = (
        f"Iteration {s['selected']} of {len(run.rows)}, {how}. Its "
        f"learner earns {figure_text(row['learner_reward_mean'])} an episode, the experts "
        f"{figure_text(row['expert_reward_mean'])}."
    )
    if failed := sum(s.get("failed_demonstrations") or ()):
        lede += f" {failed} failed demonstration(s) were left out."
    return tag(
        "header",
        _eyebrow(run),
        tag("h1", row["constraint"]["description"]),
        tag("p", lede, class_="lede"),
        *(tag("p", tag("strong", "Mind: "), doubt, ".") for doubt in s.get("doubts", ())),
        tiles(_figures(run)),
    )


def _figures(run: ControlRun) -> list[tuple[str, str]]:
    row, interval = run.best, run.summary["constraint"]["interval"]
    items = []
    for name, value in row["constraint"]["parameters"].items():
        small = f"learned {parameter_words(name)}"
        if interval is not None:
            low, high = interval["parameters"][name]
            level = f"{interval['level']:.0%}"
            small += f", {level} between {low:.4g} and {high:.4g} (bootstrap over demonstrations)"
        items.append((f"{value:.4g}", small))
    items = items[:4]
    reward = figure_text(row["expert_reward_mean"])
    items.append((figure_text(row["learner_reward_mean"]), f"learner's reward, experts {reward}"))
    if run.truth is not None:
        expert = figure_text(row["expert_true_raw_mean"])
        items.append(
            (figure_text(row["learner_true_raw_mean"]), f"its true raw value, experts {expert}")
        )
    if row["constraint_error"] is not None:
        items.append((f"{row['constraint_error']:.4f}", "error against the truth"))
    return items


# The iterations --------------------------------------------------------------------------------


def _explorer(run: ControlRun) -> Markup:
    drawing, words = _drawing(run)
    chosen, count = run.summary["selected"], len(run.rows)
    name = tag(
        "label",
        "Iteration ",
        tag("output", f"{chosen} of {count}", id="shown"),
        for_="iteration",
        class_="name",
    )
    play = tag("button", "Play", id="play", type="button", disabled=count == 1)
    slider = tag("input", id="iteration", type="range", min=1, max=count, step=1, value=chosen)
    says = [
        tag("div", [tag("p", line) for line in _says(row)], **control_svg.shown(n, run))
        for n, row in enumerate(run.rows)
    ]
    controls = tag(
        "div",
        tag("div", name, tag("div", play, slider, class_="slider")),
        tag("div", says, class_="says", aria_live="polite"),
        class_="controls",
    )
    stage = tag("div", drawing, class_="stage card")
    explorer = tag("div", stage, controls, id="explorer")
    return section(words[0], tag("p", words[1], class_="muted"), explorer, name="explorer-part")


def _drawing(run: ControlRun) -> tuple[Markup | None, tuple[str, str]]:
    used = run.summary["used"]
    key = "Experts orange, learners blue, the learned edge violet"
    key += "." if run.truth is None else ", the true one dotted."
    if len(used) == 1:
        column = run.column(used[0])
        assert column is not None
        return control_svg.distribution(run, column), (f"How {used[0]} is spread", key)
    if run.planar is not None:
        return control_svg.from_above(run, run.planar), ("From above", key)
    return None, ("The game", "This world has no plane to draw.")


def _says(row: dict[str, Any]) -> list[str]:
    lines = [
        f"c{row['i']}: {row['constraint']['description']}",
        f"The learner may cost {figure_text(row['delta_mean'])} an episode and costs "
        f"{figure_text(row['learner_cost_mean'])}; the experts cost "
        f"{figure_text(row['expert_cost_mean'])}.",
        f"It earns {figure_text(row['learner_reward_mean'])}, the experts "
        f"{figure_text(row['expert_reward_mean'])}.",
    ]
    if row.get("learner_failed_mean"):
        lines.append(
            f"{figure_text(sum(row['learner_failed']))} of its episodes failed; the constraint "
            "player did not see them."
        )
    if row["learner_true_cost_mean"] is not None:
        lines.append(
            f"True cost {figure_text(row['learner_true_cost_mean'])}, experts "
            f"{figure_text(row['expert_true_cost_mean'])}."
        )
    return lines


def _course(run: ControlRun) -> Markup:
    return section(
        "Iteration by iteration",
        tag("div", charts([run], run.summary["selected"]), class_="charts"),
        _table(run),
        name="iterations",
    )


def charts(runs: Sequence[ControlRun], now: int) -> list[Markup]:
    """Parameters, reward, true raw value and cost; means over runs with their errors."""
    first = runs[0]
    drawn = []
    names = list(first.rows[0]["constraint"]["parameters"])
    for name in names if len(names) <= 3 else []:
        lines = [[r["constraint"]["parameters"][name] for r in run.rows] for run in runs]
        series = [_series("learned", "bound", lines)]
        true = true_parameters(first.summary).get(name)
        if true is not None:
            count = max(map(len, lines))
            series.append(Series("truth", "plain", [true] * count, "diamond", dashed=True))
        caption = "What the constraint player chose before each iteration."
        title = f"Learned {parameter_words(name)}"
        drawn.append(line_chart(title, caption, series, now, zero=False))
    wanted = [("Reward per episode", "reward", "Of the stochastic policy.")]
    if first.truth is not None:
        wanted.append(("True raw value per episode", "true_raw", "For reporting only."))
    wanted.append(("Cost under the learned constraint", "cost", "Of the same iteration."))
    for title, column, caption in wanted:
        pair = [
            _series(
                f"{who}s",
                who,
                [[r[f"{who}_{column}_mean"] for r in run.rows] for run in runs],
                who == "expert",
            )
            for who in ("learner", "expert")
        ]
        drawn.append(line_chart(title, caption, pair, now, zero=column != "reward"))
    return drawn


def _series(
    name: str, kind: str, lines: Sequence[Sequence[float | None]], dashed: bool = False
) -> Series:
    """The mean over runs, with a band where there are several; a shorter run keeps its last."""
    longest = max(map(len, lines))
    padded = [[*line, *[line[-1]] * (longest - len(line))] for line in lines]
    pairs = [mean_se(list(values)) for values in zip(*padded, strict=True)]
    return Series(
        name,
        kind,
        [mean for mean, _ in pairs],
        "square" if dashed else "circle",
        dashed,
        padded if len(lines) > 1 else (),
        [se for _, se in pairs] if len(lines) > 1 else (),
    )


def _table(run: ControlRun) -> Markup:
    known = run.truth is not None
    columns = [(title, name) for title, name, truth in COLUMNS if known or not truth]
    rows: list[list[Child]] = []
    attributes = []
    for row in run.rows:
        chosen = row["i"] == run.summary["selected"]
        name: list[Child] = [row["i"], tag("span", "selected", class_="pick") if chosen else None]
        rows.append(
            [name, row["constraint"]["description"], *(number(row[c], 4) for _, c in columns)]
        )
        attributes.append({"data_row": row["i"], "class_": "current" if chosen else None})
    return table(["iteration", "constraint", *(t for t, _ in columns)], rows, attributes, text=(1,))


# What is open ----------------------------------------------------------------------------------


def _open(run: ControlRun) -> Markup | None:
    if not run.summary["budget_curve"]:
        return None
    words = (
        "Demonstrators who were allowed some cost per episode, and used it up, look the same "
        "under a stricter constraint with a larger budget and under a looser one with a smaller. "
        "Every pair on this curve agrees with the demonstrations; only a known budget picks one. "
        "The violet line is what was learned"
    )
    words += "." if run.truth is None else ", the dotted one the truth."
    return section(
        "What the demonstrations leave open",
        tag("p", words),
        tag("figure", control_svg.budgets(run), class_="card", style="max-width:660px"),
        name="open",
    )


def _choices(run: ControlRun) -> Markup:
    named = (
        ("selected", "on held-out demonstrations"),
        ("last", "the last iterate"),
        ("random", "a random iterate, on average"),
        ("truth", "the best by the truth"),
    )
    found = run.summary["choices"]
    rows: list[list[Child]] = [
        [
            words,
            "\u2013" if found[key]["i"] is None else found[key]["i"],
            number(found[key]["constraint_error"], 4),
            number(found[key]["learner_reward_mean"], 4),
            number(found[key]["learner_true_raw_mean"], 4),
            number(found[key]["learner_true_cost_mean"], 4),
        ]
        for key, words in named
        if found[key] is not None
    ]
    head = ["choice", "iteration", "error", "reward", "true raw", "true cost"]
    note = "The first row is what the run hands out; it was chosen without the truth."
    return section("Which iterate", tag("p", note, class_="muted"), table(head, rows),
                   name="choices")  # fmt: skip


#: What a reader can paste; RUN is the run's folder.
USE = """\
import ringfence as rf

c = rf.load("RUN")  # {description}; the demonstrations cost {delta:.4g} an episode
env = rf.ConstraintCost(env, c)  # info["cost"] and info["cost_raw"], from {features}
policy = rf.load_policy("RUN"{task})

observation, info = env.reset()
action = policy.act(observation, info.get("cost_raw", 0.0))  # and so on after each step"""


def _use(run: ControlRun) -> Markup:
    s, best = run.summary, run.best
    tasks, names = s["tasks"], [f.name for f in run.features]
    code = USE.format(
        description=best["constraint"]["description"],
        delta=max(best["expert_cost"]),
        features=", ".join(names) if len(names) < 5 else f"{len(names)} features",
        task=f", {json.dumps(tasks[0])}" if len(tasks) > 1 else "",
    )
    words = (
        "The constraint works in any Gymnasium environment that has its features (in info, unless "
        "you say where), the selected policy in the one it was trained in. RUN is the run's folder."
    )
    return section("Use it", tag("p", words), tag("pre", code, class_="card"), name="use")


def _reproduce(run: ControlRun) -> Markup:
    took = "" if run.seconds is None else f" It took {run.seconds / 60:.1f} minutes."
    steps = f"{run.summary['env_steps']:,} simulated steps."
    return section(
        "Reproduce this",
        tag("p", f"The same command and versions give the same bytes.{took}"),
        tag("pre", run.summary["command"], class_="card"),
        folded("Configuration (config.toml)", tag("pre", run.config_text)),
        tag("footer", f"Written with {versions_line(run.summary['versions'])}. {steps}"),
        name="reproduce",
    )
