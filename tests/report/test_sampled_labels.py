"""evidence.json of a continuous world on the page: labels, witnesses that walk; altered, it is
refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest
from parsed_pages import Page

import crossing_world
from ringfence.errors import InvalidInput
from ringfence.report import page
from ringfence.report.read import read_run
from ringfence.report.sampled_labels import make_sampled
from ringfence.report.sections import evidence, undetermined


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("crossing") / "run"
    crossing_world.play(place, analysis={"slack": 0.01, "episodes": 8})
    return place


def test_the_page_shows_labels_witnesses_and_what_they_rest_on(run: Path) -> None:
    read = read_run(run)
    assert read.sampled is not None
    found = read.sampled.evidence
    text = str(evidence.section(read))
    for kind, count in found.counts().items():
        assert f"{count} {kind}" in text
    shown = min(len(found.conflicts), evidence.WITNESSES)
    assert shown > 0
    assert text.count('class="ant"') == shown
    assert text.count('<svg id="witness-') == shown
    for sentence in (*read.sampled.relation, *read.sampled.wishes):
        assert escape(sentence) in text
    assert "implicated" in str(undetermined.section(read))
    Page(page.render(run))  # well formed


def broken(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["evidence"][name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        broken("features", [["speed", "m/s"], ["y", "m"]]),
        broken("schema", 99),
        lambda d: d["evidence"]["conflicts"][0].update(cells=[10**7]),
        lambda d: d["evidence"]["conflicts"][0].update(path=[]),
        lambda d: d.pop("relation"),
        lambda d: d.update(next=[{}]),
    ],
)
def test_an_altered_file_is_refused_in_words(
    run: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    document = json.loads((run / "evidence.json").read_text())
    make_sampled(document, crossing_world.FEATURES)
    change(document)
    with pytest.raises(InvalidInput, match="resume"):
        make_sampled(document, crossing_world.FEATURES)
