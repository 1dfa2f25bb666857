"""Sections of the page: each says what the run's files say, or why it is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parsed_pages import Page

from ringfence.analysis.evidence import LABELS
from ringfence.objects import NotHere
from ringfence.report import page
from ringfence.report.cell_labels import Labels
from ringfence.report.read import Run, read_run
from ringfence.report.sections import (
    choices,
    evidence,
    explorer,
    headline,
    intervals,
    iterations,
    provenance,
    undetermined,
    use,
    walks,
)
from ringfence.report.text import figure_text

ROWS, COLS = 4, 6


@pytest.fixture
def run(finished: Path) -> Run:
    return read_run(finished)


@pytest.fixture
def labels(run: Run) -> Labels:
    assert run.labels is not None
    return run.labels


def reason(part: object) -> str:
    assert isinstance(part, NotHere)
    return part.reason


def with_row(run: Run, n: int, **entries: Any) -> Run:
    rows = [dict(row) for row in run.rows]
    rows[n] |= entries
    return replace(run, summary={**run.summary, "iterations": rows})


# The headline ------------------------------------------------------------------------------------


def test_headline_has_the_result_in_words(run: Run, parsed: Page) -> None:
    assert f"{run.chosen.forbidden.sum()} of {ROWS * COLS} cells" in parsed.text("h1")
    assert parsed.text("p", class_="words") == run.best["constraint"]["description"]
    lede = parsed.text("p", class_="lede")
    assert "the experts" in lede
    assert "IoU" in lede


def with_interval(run: Run, **entries: Any) -> Run:
    constraint = run.summary["constraint"]
    interval = {**constraint["interval"], **entries}
    return replace(run, summary={**run.summary, "constraint": {**constraint, "interval": interval}})


def test_where_limit_and_budget_cannot_be_told_apart_the_headline_is_the_curve(speed: Path) -> None:
    points = [
        {"budget": b, "parameter": p, "low": p - 0.01, "high": p + 0.01}
        for b, p in ((5.0, 0.79), (20.0, 0.75), (80.0, 0.71))
    ]
    run = with_interval(read_run(speed), curve=points, words="the limit depends on the budget")
    drawn = str(headline.section(run))
    assert "<h1>speed &lt;= 0.71 to 0.79, by what an episode was allowed</h1>" in drawn
    assert "The limit depends on the budget." in drawn
    value, small = headline.figures(run)[0]
    assert value == "0.71 to 0.79"
    assert small.endswith("the policies were trained under 0.7")


def test_tiles_have_parameters_with_their_intervals(speed: Path) -> None:
    (value, words), *others = headline.figures(read_run(speed))
    limit = "learned limit, 95% between 0.6 and 0.8"
    assert (value, words) == ("0.7", f"{limit} (over demonstrations only)")
    covered = with_interval(read_run(speed), words="covers other learners")
    assert headline.figures(covered)[0][1] == f"{limit} (covers other learners)"
    said = " ".join(words for _, words in others)
    for part in ("reward of the learners", "true raw value", "error against the truth", "of 3"):
        assert part in said


def test_evidence_has_a_tile(run: Run, labels: Labels) -> None:
    tiles = {words: value for value, words in headline.figures(run)}
    backed, total = tiles["forbidden cells have evidence against them"].split(" of ")
    assert int(backed) == len(labels.relation.confirmed) + len(labels.relation.implicated)
    assert int(total) == labels.forbidden.sum()


def test_why_a_game_ended_and_how_it_was_chosen_is_said(run: Run) -> None:
    assert "could tell the learners from the experts any more" in headline.ending(run)
    played = with_row(run, -1, best_payoff=0.5)
    assert "for all of its" in headline.ending(played)
    poor = replace(run, summary={**run.summary, "selection": {"rewarding": False}})
    assert "its learners earn less than the experts" in headline.ending(poor)
    left = replace(run, summary={**run.summary, "failed_demonstrations": [1, None, 2]})
    assert "3 failed demonstrations left out" in headline.ending(left)


def test_a_run_without_a_truth_says_so(without_truth: Path) -> None:
    assert "can't be measured" in headline.lede(read_run(without_truth))
    assert "In truth" not in page.render(without_truth)


# The explorer ------------------------------------------------------------------------------------


def test_map_has_one_element_per_cell_and_iteration(run: Run, parsed: Page) -> None:
    assert len(parsed.find("rect", class_="cell")) == ROWS * COLS
    for n, learned in enumerate(run.maps):
        (layer,) = parsed.find("g", data_layer="constraint", data_i=str(n + 1))
        assert len(parsed.find("rect", within=layer)) == ROWS * COLS
        hatched = parsed.find("rect", within=layer, class_="forbidden")
        assert len(hatched) == learned.forbidden.sum()
        hidden = "off" in (parsed.elements[layer][1]["class"] or "").split()
        assert hidden == (n + 1 != run.selected)


def test_every_task_has_paths_and_visits(run: Run, parsed: Page) -> None:
    for k in range(len(run.tasks)):
        (layer,) = parsed.find("g", data_layer="paths", data_task=str(k))
        assert parsed.find("path", within=layer)
        for i in range(1, len(run.rows) + 1):
            assert parsed.find("g", data_layer="visits", data_i=str(i), data_only=str(k))
    assert len(parsed.find("option")) == len(run.tasks) + 1


def test_every_cell_says_what_is_known(run: Run, parsed: Page) -> None:
    assert run.walls is not None
    for n in parsed.find("rect", class_="cell"):
        row, col = map(int, (parsed.elements[n][1]["data-cell"] or "").split(","))
        said = parsed.texts[n]
        assert f"Row {row}, column {col}" in said
        assert ("In truth it is forbidden." in said) == bool(run.walls[row, col])
        assert "expert" in said.lower()
        assert "Evidence" in said


def test_layers_are_offered_where_they_are(without_truth: Path, speed: Path, parsed: Page) -> None:
    def offered(got: Page) -> set[str | None]:
        return {got.elements[n][1]["value"] for n in got.find("input", type="checkbox")}

    assert offered(parsed) == {"constraint", "truth", "paths", "visits", "evidence"}
    blind = Page(page.render(without_truth))
    assert offered(blind) == {"constraint", "paths", "visits", "evidence"}
    assert not blind.find("", data_layer="truth")
    assert offered(Page(page.render(speed))) == {"constraint", "truth", "paths", "visits"}


def test_a_continuous_world_has_slider_tasks_and_all_its_views(speed: Path) -> None:
    got, run = Page(page.render(speed)), read_run(speed)
    assert len(got.find("svg", class_="plane")) == 3  # line, plane, budgets
    assert len(got.find("option")) == 3
    (slider,) = got.find("input", id="iteration")
    assert got.elements[slider][1]["max"] == str(len(run.rows))
    layers = [got.elements[n][1] for n in got.find("g", data_layer="constraint")]
    assert [a["data-i"] for a in layers] == ["1", "2", "3"] * 2
    assert {a["data-i"] for a in layers if a.get("class") != "off"} == {str(run.selected)}


def test_a_world_without_views_says_so(run: Run) -> None:
    assert "no map, plane or line" in reason(explorer.section(replace(run, views=())))


def test_page_works_for_a_linear_constraint_on_a_map(linear: Path) -> None:
    run, got = read_run(linear), Page(page.render(linear))
    assert "<=" in run.best["constraint"]["description"]
    assert run.best["constraint"]["description"] in got.text("h1")
    (layer,) = got.find("g", data_layer="constraint", data_i=str(len(run.rows)))
    hatched = got.find("rect", within=layer, class_="forbidden")
    assert len(hatched) == run.maps[-1].forbidden.sum()
    assert not got.find("option")  # one task: nothing to choose


# Walks -------------------------------------------------------------------------------------------


def test_walks_are_on_floors_only(run: Run, floor: Path) -> None:
    assert "floor" in reason(walks.section(run))
    data = read_run(floor)
    got = Page(str(walks.section(data)))
    assert len(got.find("figure")) == 2
    assert len(got.find("circle", class_="ant")) == 2 * 2  # two starts in each of two iterations
    empty = replace(data, learners=((None,),) * 2)
    assert "keeps no episodes" in reason(walks.section(empty))


# The iterations ----------------------------------------------------------------------------------


def test_table_has_the_summary_s_numbers(finished: Path, parsed: Page) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    for row in summary["iterations"]:
        (at,) = parsed.find("tr", data_row=str(row["i"]))
        shown = parsed.values(at)
        assert shown["forbidden"] == row["constraint"]["forbidden"]
        assert shown["IoU"] == row["constraint"]["iou"]
        for title, name in iterations.COLUMNS:
            if name in row and title in shown:
                assert shown[title] == row[name], title
        assert shown["learner true cost"] == row["learner_true_cost_mean"]


def test_columns_in_which_nothing_is_known_are_left_out(
    without_truth: Path, speed: Path, finished: Path
) -> None:
    def titles(folder: Path) -> set[str]:
        return {title for title, _ in iterations.columns(read_run(folder))}

    assert not {"IoU", "learner true cost", "expert true cost", "mean gap"} & titles(without_truth)
    assert {"error", "learner true raw", "failed"} <= titles(speed)
    assert not {"forbidden", "IoU", "bound", "mean gap", "arrived"} & titles(speed)
    assert "learner true raw" not in titles(finished)  # on a map it is the cost
    assert "error" not in titles(finished)  # 1 - IoU


def test_measured_gap_is_below_the_bound_in_the_table(run: Run, parsed: Page) -> None:
    for row in run.rows:
        (at,) = parsed.find("tr", data_row=str(row["i"]))
        shown = parsed.values(at)
        assert shown["mean gap"] is not None
        assert shown["bound"] is not None
        assert shown["mean gap"] <= shown["bound"] + 1e-7


def test_charts_say_their_numbers(run: Run, parsed: Page) -> None:
    labels = [parsed.elements[n][1].get("aria-label") or "" for n in parsed.find("svg")]
    reward = next(label for label in labels if label.startswith("Reward per episode"))
    for row in run.rows:
        assert figure_text(row["learner_reward_mean"]) in reward


# Evidence ----------------------------------------------------------------------------------------


def test_counts_on_the_page_are_the_summary_s(finished: Path, run: Run) -> None:
    text = page.render(finished)
    for kind in LABELS:
        assert f"<b>{run.summary['evidence'][kind]} {kind}</b>" in text


def changed(run: Run, forbids: bool) -> Labels:
    """The labels against a constraint that forbids everything, or nothing."""
    from ringfence.analysis.evidence import relate

    assert run.labels is not None
    forbidden = np.full(run.labels.forbidden.shape, forbids)
    relation = relate(run.labels.evidence, forbidden)
    return replace(run.labels, forbidden=forbidden, relation=relation)


def test_the_run_s_own_remark_is_among_them(labels: Labels) -> None:
    assert "could be beaten" in evidence.relation_words(labels)[-1]


def test_contradictions_and_choices_are_listed(run: Run) -> None:
    assert "A contradiction" in " ".join(evidence.relation_words(changed(run, True)))
    assert "forbids no cell" in evidence.relation_words(changed(run, False))[0]


def test_slow_experts_are_named_with_their_reason(labels: Labels) -> None:
    assert "No expert looks suboptimal" in evidence.standing_words(labels)[0]
    slow = replace(labels.evidence.standings[0], testifies=False, reason="too slow", gap=3.0)
    found = replace(labels.evidence, standings=(slow, *labels.evidence.standings[1:]))
    said = " ".join(evidence.standing_words(replace(labels, evidence=found)))
    assert "too slow (by 3)" in said
    assert slow.task in said


def test_what_to_ask_for_depends_on_what_is_unknown(labels: Labels) -> None:
    assert evidence.wish_words(labels) == ["None: no cell is unknown."]
    unknown = np.full(len(labels.evidence.labels), LABELS.index("unknown"), dtype=np.int8)
    found = replace(labels, evidence=replace(labels.evidence, labels=unknown))
    assert evidence.wish_words(replace(found, wishes=("ask",))) == ["ask"]
    assert "None of the world's tasks" in evidence.wish_words(replace(found, wishes=()))[0]
    assert "did not look" in evidence.wish_words(replace(found, wishes=None))[0]


def test_what_is_open_is_said(run: Run, labels: Labels) -> None:
    said = " ".join(undetermined.open_words(run, labels))
    if labels.count("implicated"):
        assert "They do not say which" in said
    assert "Here the truth is known" in said
    assert run.cells is not None
    blind = replace(run, cells=replace(run.cells, walls=None))
    assert "truth" not in " ".join(undetermined.open_words(blind, labels))


def test_no_evidence_has_the_run_s_reason(speed: Path) -> None:
    for one in (evidence, undetermined):
        assert reason(one.section(read_run(speed))) == "the world is not finite"


# Intervals, choices, use, provenance -------------------------------------------------------------


def test_intervals_and_budgets_are_shown_or_not_here(speed: Path, run: Run) -> None:
    got = Page(str(intervals.section(read_run(speed))))
    row = got.values(got.find("tr")[1])
    assert row == {"parameter": None, "learned": 0.7, "from": 0.6, "to": 0.8, "truth": 0.75}
    assert got.find("svg", id="budgets")
    assert "no parameters" in reason(intervals.section(run))
    data = read_run(speed)
    only = replace(data, summary={**data.summary, "budget_curve": None})
    assert "No curve of budgets" in str(intervals.section(only))


def test_choices_have_their_rows(speed: Path) -> None:
    run = read_run(speed)
    got = Page(str(choices.section(run)))
    assert len(got.find("tr")) == 1 + 3  # the truth's choice is not known here
    nothing = replace(run, summary={**run.summary, "choices": None})
    assert isinstance(choices.section(nothing), NotHere)


def test_code_to_paste_fits_the_run(speed: Path, run: Run) -> None:
    said = Page(str(use.section(read_run(speed)))).text("pre")
    assert 'rf.load_policy("RUN", "a")' in said
    assert "speed <= 0.7 m/s; the demonstrations cost" in said
    assert "x, y and speed" in said
    compile(said, "pasted", "exec")
    on_map = Page(str(use.section(run))).text("pre")
    assert "load_policy" not in on_map  # a finite world's run keeps none
    compile(on_map, "pasted", "exec")


def test_command_configuration_and_versions_are_there(finished: Path, parsed: Page) -> None:
    texts = [parsed.texts.get(n, "") for n in parsed.find("pre")]
    assert "ringfence learn --world small.txt --seed 0" in texts
    assert (finished / "config.toml").read_text() in texts
    assert "numpy" in parsed.text("footer")


def test_the_time_it_took_is_in_seconds_or_minutes(speed: Path) -> None:
    run = read_run(speed)
    assert "It took 5 minutes." in str(provenance.section(run))
    assert "It took 12.3 s." in str(provenance.section(replace(run, seconds=12.34)))
    assert "took" not in str(provenance.section(replace(run, seconds=None)))
