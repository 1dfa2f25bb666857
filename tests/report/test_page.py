"""The page, checked without a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints import files as constraint_files
from ringfence.errors import InvalidInput
from ringfence.report import course, page, seeds
from ringfence.report.labels import read_labels
from ringfence.report.markup import VOID, figure_text
from ringfence.report.read import check_summary, read_run

ROWS, COLS = 4, 6
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Page(HTMLParser):
    """A parsed page: its elements with their attributes, each within its ancestors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], tuple[int, ...]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open, "elements were left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        for n in self._open:
            self.texts[n] = self.texts.get(n, "") + data

    def find(self, tag: str = "", within: int | None = None, **attributes: str) -> list[int]:
        """Elements of a kind; attribute names are Python's, a class needs only be among them."""
        found = []
        for n, (name, attrs, above) in enumerate(self.elements):
            if tag not in ("", name) or (within is not None and within not in above):
                continue
            if all(
                value in (attrs.get(key.rstrip("_").replace("_", "-")) or "").split()
                if key == "class_"
                else attrs.get(key.rstrip("_").replace("_", "-")) == value
                for key, value in attributes.items()
            ):
                found.append(n)
        return found

    def values(self, row: int) -> dict[str, float | None]:
        """The exact figures of a table's row by column, None where a cell has a dash."""
        table = next(n for n in reversed(self.elements[row][2]) if self.elements[n][0] == "table")
        titles = [self.texts[n] for n in self.find("th", within=table)]
        found = [self.find("data", within=cell) for cell in self.find("td", within=row)]
        exact = [float(self.elements[n[0]][1]["value"] or "") if n else None for n in found]
        return dict(zip(titles, exact, strict=True))


@pytest.fixture(scope="session")
def parsed(finished: Path) -> Page:
    return Page(page.render(finished))


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A run to damage, without a page of its own."""
    leave = shutil.ignore_patterns("report.html")
    return Path(shutil.copytree(finished, tmp_path / "copy", ignore=leave))


def test_page_is_written_whole_beside_the_run(finished: Path) -> None:
    path = page.write(finished)
    assert path == finished / "report.html"
    assert path.read_text() == page.render(finished)
    assert not list(finished.glob(".*.partial"))


def test_page_loads_nothing_from_elsewhere(finished: Path, parsed: Page) -> None:
    text = page.render(finished)
    assert not re.search(r"https?:|@import|//\w+\.\w", text)
    for name, attrs, _ in parsed.elements:
        assert name not in ("link", "iframe", "img", "object", "embed", "base")
        assert not {"src", "href", "xlink:href", "action"} & set(attrs)
        for value in attrs.values():
            assert all(u.startswith("#") for u in re.findall(r"url\(([^)]*)", value or ""))
    policy = parsed.find("meta", http_equiv="Content-Security-Policy")
    assert "default-src 'none'" in (parsed.elements[policy[0]][1]["content"] or "")


def test_page_names_no_folder_of_this_machine(finished: Path) -> None:
    text = page.render(finished)
    assert str(finished.parent) not in text
    assert str(Path.home()) not in text


def test_ids_are_unique_and_labels_point_to_them(parsed: Page) -> None:
    ids = [attrs["id"] for _, attrs, _ in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for n in parsed.find("label"):
        target = parsed.elements[n][1].get("for")
        assert target in ids or parsed.find("input", within=n)


def test_map_has_one_element_per_cell_and_iteration(finished: Path, parsed: Page) -> None:
    run = read_run(finished)
    assert len(parsed.find("rect", class_="cell")) == ROWS * COLS
    for n, learned in enumerate(run.learned):
        (layer,) = parsed.find("g", data_layer="constraint", data_i=str(n + 1))
        assert len(parsed.find("rect", within=layer)) == ROWS * COLS
        hatched = parsed.find("rect", within=layer, class_="forbidden")
        assert len(hatched) == learned.forbidden.sum()
        hidden = "off" in (parsed.elements[layer][1]["class"] or "").split()
        assert hidden == (n + 1 != run.summary["selected"])


def test_layers_are_those_of_the_saved_constraints(finished: Path) -> None:
    run = read_run(finished)
    for n, learned in enumerate(run.learned):
        c = constraint_files.load(finished / f"constraints/c_{n:03d}")
        assert (learned.cost == c.values).all()  # type: ignore[attr-defined]
    assert run.selected.words == run.best["constraint"]["description"]


def test_every_task_has_paths_and_visits(finished: Path, parsed: Page) -> None:
    run = read_run(finished)
    for k in range(len(run.tasks)):
        (layer,) = parsed.find("g", data_layer="paths", data_task=str(k))
        assert parsed.find("path", within=layer)
        for i in range(1, len(run.rows) + 1):
            assert parsed.find("g", data_layer="visits", data_i=str(i), data_only=str(k))
    assert len(parsed.find("option")) == len(run.tasks) + 1


def test_table_has_the_summary_s_numbers(finished: Path, parsed: Page) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    for row in summary["iterations"]:
        (at,) = parsed.find("tr", data_row=str(row["i"]))
        shown = parsed.values(at)
        assert shown["forbidden"] == row["constraint"]["forbidden"]
        assert shown["IoU"] == row["constraint"]["iou"]
        for title, name, _ in course.COLUMNS:
            if name != "gap":
                assert shown[title] == row[name], title


def test_measured_gap_is_below_the_bound_in_the_table(finished: Path, parsed: Page) -> None:
    for row in read_run(finished).rows:
        (at,) = parsed.find("tr", data_row=str(row["i"]))
        shown = parsed.values(at)
        assert shown["mean gap"] is not None
        assert shown["bound"] is not None
        assert shown["mean gap"] <= shown["bound"] + 1e-7


def test_charts_say_their_numbers(finished: Path, parsed: Page) -> None:
    run = read_run(finished)
    labels = [parsed.elements[n][1].get("aria-label") or "" for n in parsed.find("svg")]
    reward = next(label for label in labels if label.startswith("Reward per episode"))
    for row in run.rows:
        assert figure_text(row["learner_reward_mean"]) in reward
    assert len(parsed.find("figure", class_="chart")) == 5


def test_headline_has_the_result_in_words(finished: Path, parsed: Page) -> None:
    run = read_run(finished)
    (h1,), (words,) = parsed.find("h1"), parsed.find("p", class_="words")
    assert f"{run.selected.forbidden.sum()} of {ROWS * COLS} cells" in parsed.texts[h1]
    assert parsed.texts[words] == run.best["constraint"]["description"]
    (lede,) = parsed.find("p", class_="lede")
    assert "the experts" in parsed.texts[lede]
    assert "IoU" in parsed.texts[lede]


def test_every_cell_says_what_is_known(finished: Path, parsed: Page) -> None:
    run = read_run(finished)
    for n in parsed.find("rect", class_="cell"):
        row, col = map(int, (parsed.elements[n][1]["data-cell"] or "").split(","))
        said = parsed.texts[n]
        assert f"Row {row}, column {col}" in said
        assert ("In truth it is forbidden." in said) == bool(run.walls[row, col])
        assert "expert" in said.lower()
        assert "Evidence" in said


def test_command_configuration_and_versions_are_there(finished: Path, parsed: Page) -> None:
    texts = [parsed.texts.get(n, "") for n in parsed.find("pre")]
    assert "ringfence learn --world small.txt --seed 0" in texts
    assert (finished / "config.toml").read_text() in texts
    (footer,) = parsed.find("footer")
    assert "numpy" in parsed.texts[footer]


def test_page_works_without_a_truth(without_truth: Path) -> None:
    got = Page(page.render(without_truth))
    assert not got.find("", data_layer="truth")
    assert not got.find("input", value="truth")
    (row,) = got.find("tr", data_row="1")
    assert not {"IoU", "learner violation", "mean gap"} & set(got.values(row))
    (lede,) = got.find("p", class_="lede")
    assert "can't be measured" in got.texts[lede]
    assert len(got.find("figure", class_="chart")) == 3
    assert "In truth" not in page.render(without_truth)


def test_page_works_for_a_linear_constraint(linear: Path) -> None:
    run, got = read_run(linear), Page(page.render(linear))
    assert "<=" in run.selected.words
    (h1,) = got.find("h1")
    assert run.selected.words in got.texts[h1]
    (layer,) = got.find("g", data_layer="constraint", data_i=str(len(run.rows)))
    hatched = got.find("rect", within=layer, class_="forbidden")
    assert len(hatched) == run.learned[-1].forbidden.sum()


def test_page_works_without_ledger_evidence_and_timing(copy: Path) -> None:
    shutil.rmtree(copy / "ledger")
    (copy / "evidence.json").unlink()
    (copy / "timing.json").unlink()
    got = Page(page.render(copy))
    assert not got.find("input", value="visits")
    assert not got.find("input", value="evidence")


def test_hostile_names_are_shown_not_run(finished: Path) -> None:
    run = read_run(finished)
    summary = {
        **run.summary,
        "world": EVIL,
        "method": EVIL,
        "tasks": [f"{EVIL}{k}" for k in range(len(run.tasks))],
        "versions": {EVIL: EVIL},
    }
    config = replace(run.config, command=EVIL)
    learned = tuple(replace(c, words=EVIL) for c in run.learned)
    evil = replace(
        run,
        summary=summary,
        config=config,
        config_text=EVIL,
        learned=learned,
        selected=replace(run.selected, words=EVIL),
    )
    for text in (page.render_data(evil, read_labels(run)), seeds.render([evil, evil])):
        got = Page(text)
        assert not got.find("img")
        assert len(got.find("script")) == (2 if got.find(id="explorer") else 0)
        assert any(EVIL in shown for shown in got.texts.values())
        assert not any("onerror" in attrs for _, attrs, _ in got.elements)


def test_same_run_gives_the_same_page(finished: Path) -> None:
    assert page.render(finished) == page.render(finished)


def cut(run: Path) -> None:
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(text[: len(text) // 2])


def change(**entries: object) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        document = json.loads((run / "summary.json").read_text())
        document.update(entries)
        (run / "summary.json").write_text(json.dumps(document))

    return damage


def drop_column(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    del document["iterations"][0]["learner_reward"]
    (run / "summary.json").write_text(json.dumps(document))


def text_for_number(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    document["iterations"][0]["bound"] = EVIL
    (run / "summary.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "cause", "fix"),
    [
        (lambda run: (run / "summary.json").unlink(), "unfinished", "resume"),
        (cut, "not valid JSON", "resume"),
        (change(schema=99), "schema 99", "version"),
        (change(iterations=[]), "iterations", "resume"),
        (change(tasks="all"), "tasks", "resume"),
        (change(selected=77), "selected is 77", "resume"),
        (drop_column, "learner_reward", "resume"),
        (text_for_number, "not a number", "resume"),
        (lambda run: (run / "config.toml").unlink(), "no config.toml", "learn"),
        (lambda run: shutil.rmtree(run / "constraint"), "constraint.json", "constraint"),
        (lambda run: (run / "evidence.json").write_text("{"), "evidence.json", "resume"),
    ],
)
def test_damaged_run_is_named_with_a_fix(
    copy: Path, damage: Callable[[Path], object], cause: str, fix: str
) -> None:
    damage(copy)
    with pytest.raises(InvalidInput) as caught:
        page.write(copy)
    assert cause in str(caught.value)
    assert fix in str(caught.value)
    assert not (copy / "report.html").exists()


WRONG = (None, True, -1, 1e400, EVIL, [], [[]], {}, {"description": 1})


def places(summary: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """Every entry of a summary and of its first iteration."""
    top = [(name,) for name in summary]
    first = summary["iterations"][0]
    return [*top, ("iterations", 0), *(("iterations", 0, name) for name in first)]


def test_any_wrong_entry_is_an_error_or_a_page(finished: Path) -> None:
    run = read_run(finished)
    labels = read_labels(run)
    refused = 0
    for place in places(dict(run.summary)):
        for wrong in WRONG:
            summary = json.loads(json.dumps(run.summary))
            *above, last = place
            holder = summary
            for step in above:
                holder = holder[step]
            holder[last] = wrong
            try:
                check_summary(summary)
            except (KeyError, TypeError, ValueError):
                refused += 1
                continue
            Page(page.render_data(replace(run, summary=summary), labels))
    assert refused > 100


def test_several_seeds_are_averaged(several: list[Path], tmp_path: Path) -> None:
    out = page.write_many(several, tmp_path / "seeds.html")
    got, runs = Page(out.read_text()), [read_run(run) for run in several]
    rewards = np.array([run.best["learner_reward_mean"] for run in runs])
    mean, se = rewards.mean(), rewards.std(ddof=1) / np.sqrt(len(rewards))
    (section,) = got.find("section", id="seeds")
    rows = got.find("tr", within=section)[1:]
    assert len(rows) == len(runs) + 1
    for row, run in zip(rows, runs, strict=False):
        assert got.values(row)["learner reward"] == run.best["learner_reward_mean"]
    assert f"{figure_text(mean)} \u00b1 {figure_text(se, 2)}" in got.texts[rows[-1]]
    assert not got.find("script")


def test_a_run_that_ended_early_keeps_its_last_value(finished: Path) -> None:
    run = read_run(finished)
    shorter = replace(run, summary={**run.summary, "iterations": run.rows[:1], "selected": 1})
    values = seeds.over_seeds([run, shorter], lambda r: [row["bound"] for row in r.rows])
    assert len(values) == len(run.rows)
    assert {pair[1] for pair in values} == {run.rows[0]["bound"]}


def test_standard_error_needs_all_values() -> None:
    assert seeds.mean_se([1.0, 3.0]) == (2.0, pytest.approx(1.0))
    assert seeds.mean_se([1.0]) == (1.0, None)
    assert seeds.mean_se([1.0, None]) == (None, None)


def test_runs_of_different_experiments_are_refused(
    finished: Path, without_truth: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"\[world\] map differs"):
        page.write_many([finished, without_truth], tmp_path / "out.html")
    with pytest.raises(InvalidInput, match="at least one run"):
        page.write_many([], tmp_path / "out.html")
    assert not list(tmp_path.iterdir())
