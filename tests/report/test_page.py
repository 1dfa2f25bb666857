"""The page of any run, checked without a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from parsed_pages import Page
from written_runs import write_unneeded

from ringfence.errors import InvalidInput
from ringfence.report import page, seeds
from ringfence.report.read import Run, read_run
from ringfence.report.validate import check_summary

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
RUNS = ("finished", "without_truth", "linear", "speed", "floor")


@pytest.fixture(params=RUNS)
def any_run(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A run to damage, without a page of its own."""
    leave = shutil.ignore_patterns("report.html")
    return Path(shutil.copytree(finished, tmp_path / "copy", ignore=leave))


def test_page_is_written_whole_beside_the_run(any_run: Path) -> None:
    path = page.write(any_run)
    assert path == any_run / "report.html"
    assert path.read_text() == page.render(any_run)
    assert not list(any_run.glob(".*.partial"))


def test_page_loads_nothing_from_elsewhere(any_run: Path) -> None:
    text = page.render(any_run)
    parsed = Page(text)
    assert not re.search(r"https?:|@import|//\w+\.\w", text)
    for name, attrs, _ in parsed.elements:
        assert name not in ("link", "iframe", "img", "object", "embed", "base")
        assert not {"src", "xlink:href", "action"} & set(attrs)
        assert (attrs.get("href") or "#").startswith("#")
        for value in attrs.values():
            assert all(u.startswith("#") for u in re.findall(r"url\(([^)]*)", value or ""))
    policy = parsed.find("meta", http_equiv="Content-Security-Policy")
    assert "default-src 'none'" in (parsed.elements[policy[0]][1]["content"] or "")


def test_page_names_no_folder_of_this_machine(any_run: Path) -> None:
    text = page.render(any_run)
    assert str(any_run.parent) not in text
    assert str(Path.home()) not in text


def test_ids_are_unique_and_what_points_to_them_finds_them(any_run: Path) -> None:
    parsed = Page(page.render(any_run))
    ids = [attrs["id"] for _, attrs, _ in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for n in parsed.find("label"):
        target = parsed.elements[n][1].get("for")
        assert target in ids or parsed.find("input", within=n)
    for _, attrs, _ in parsed.elements:
        named = re.findall(r"url\(#([^)]*)", " ".join(v or "" for v in attrs.values()))
        assert {*named, (attrs.get("href") or "#data")[1:]} <= set(ids) | {"data"}


def test_every_section_is_there_or_says_why_not(any_run: Path) -> None:
    run, parsed = read_run(any_run), Page(page.render(any_run))
    missing = [part for _, section in page.SECTIONS if not isinstance(part := section(run), str)]
    found = parsed.find("section", id="absent")
    assert bool(found) == bool(missing)
    for part in missing:
        assert part.reason.rstrip(".") in parsed.texts[found[0]]  # type: ignore[union-attr]


def test_an_analysis_that_is_not_here_has_its_reason_on_the_page(speed: Path) -> None:
    assert "the world is not finite" in Page(page.render(speed)).text("section", id="absent")


def test_doubts_stand_before_everything_else_about_the_result(speed: Path) -> None:
    text = page.render(speed)
    assert "Mind: </strong>the learner earns more than the experts." in text
    assert text.index("Mind: ") < text.index('class="lede"') < text.index('class="tiles"')


def test_a_game_that_was_not_needed_has_a_page(tmp_path: Path) -> None:
    parsed = Page(page.render(write_unneeded(tmp_path / "run")))
    assert parsed.text("h1") == "No constraint needed"
    assert "earns 3 an episode after 1,000 steps" in parsed.text("p", class_="lede")
    assert not parsed.find("script")
    assert "no game was played" in parsed.text("section", id="absent")


def test_same_run_gives_the_same_page(any_run: Path) -> None:
    assert page.render(any_run) == page.render(any_run)


def test_page_works_without_ledger_evidence_and_timing(copy: Path) -> None:
    shutil.rmtree(copy / "ledger")
    (copy / "evidence.json").unlink()
    (copy / "timing.json").unlink()
    got = Page(page.render(copy))
    assert not got.find("input", value="visits")
    assert not got.find("input", value="evidence")


def hostile(run: Run) -> Run:
    """The run with a script in the place of every word."""
    rows = [{**row, "constraint": {**row["constraint"], "description": EVIL}} for row in run.rows]
    names = [f"{EVIL}{k}" for k in range(len(run.tasks))]
    words = dict.fromkeys(("world", "method", "player", "class", "command"), EVIL)
    more = {"tasks": names, "versions": {EVIL: EVIL}, "iterations": rows, "doubts": [EVIL]}
    summary = {**run.summary, **words, **more, "not_here": dict.fromkeys(("evidence",), EVIL)}
    features = tuple(replace(f, name=EVIL, unit=EVIL) for f in run.features)
    return replace(run, summary=summary, config_text=EVIL, features=features)


def test_hostile_words_are_shown_not_run(any_run: Path) -> None:
    evil = hostile(read_run(any_run))
    for text in (page.render_run(evil), seeds.render([evil, evil])):
        got = Page(text)
        assert not got.find("img")
        assert len(got.find("script")) == (2 if got.find(id="explorer") else 0)
        assert any(EVIL in shown for shown in got.texts.values())
        assert not any("onerror" in attrs for _, attrs, _ in got.elements)


# Damage ------------------------------------------------------------------------------------------


def cut(run: Path) -> None:
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(text[: len(text) // 2])


def change(*place: str | int, to: object) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        document = json.loads((run / "summary.json").read_text())
        *above, last = place
        holder = document
        for step in above:
            holder = holder[step]
        holder[last] = to
        unsealed(run, document)

    return damage


def unsealed(run: Path, document: dict[str, Any]) -> None:
    """As who changes it on purpose writes it."""
    document.pop("sha256", None)
    (run / "summary.json").write_text(json.dumps(document))


def drop_column(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    del document["iterations"][0]["learner_reward"]
    unsealed(run, document)


def cut_solve(run: Path) -> None:
    path = next((run / "ledger").glob("*/arrays.safetensors"))
    path.write_bytes(path.read_bytes()[:100])


def other_map(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    document["views"][0] |= {"shape": [6, 4], "walls": None, "starts": [], "goals": []}
    unsealed(run, document)


@pytest.mark.parametrize(
    ("damage", "cause", "fix"),
    [
        (lambda run: (run / "summary.json").unlink(), "unfinished", "resume"),
        (cut, "summary.json: it can't be read", "resume"),
        (change("schema", to=99), "schema 99", "version"),
        (change("schema", to=1), f"schema 1 of ringfence {version('ringfence')}", "wrote it"),
        (change("iterations", to=[]), "0 iterations", "resume"),
        (change("tasks", to="all"), "tasks", "resume"),
        (change("selected", to=77), "selected is 77", "resume"),
        (drop_column, "learner_reward", "resume"),
        (change("iterations", 0, "bound", to=EVIL), "bound: Input should be a valid number", ""),
        (change("views", 0, "columns", to=[0, 7]), "columns [0, 7]", "resume"),
        (change("views", 0, "starts", to=[[9, 9]]), "outside the map", "resume"),
        (other_map, "cells, the map has (6, 4)", ""),
        (lambda run: (run / "config.toml").unlink(), "no config.toml", "learn"),
        (lambda run: (run / "config.toml").write_text("["), "not valid TOML", ""),
        (lambda run: (run / "solve.toml").write_text(""), "not a game", "summary.json"),
        (lambda run: shutil.rmtree(run / "constraint"), "constraint.json", "constraint"),
        (lambda run: (run / "evidence.json").write_text("{"), "evidence.json", "resume"),
        (cut_solve, "/ledger/", "delete it and resume"),
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


WRONG = (None, True, -1, 1e400, EVIL, [[]], {"description": 1})


def places(summary: dict[str, Any]) -> Sequence[tuple[str | int, ...]]:
    """Every entry of a summary, of its first iteration, view and choice."""
    found: list[tuple[str | int, ...]] = [(name,) for name in summary]
    for holder in (("iterations", 0), ("views", 0), ("choices", "selected"), ("constraint",)):
        inside: Any = summary
        for step in holder:
            inside = inside[step]
        found += [holder, *((*holder, name) for name in inside)]
    return found


@pytest.mark.parametrize("name", ["finished", "speed"])
def test_any_wrong_entry_is_an_error_or_a_page(name: str, request: pytest.FixtureRequest) -> None:
    run = read_run(request.getfixturevalue(name))
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
            Page(page.render_run(replace(run, summary=summary)))
    assert refused > 150
