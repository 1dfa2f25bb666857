from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from small_study import study_of

from ringfence.reproduce.experiment import Shown, Variant
from ringfence.reproduce.pages import fitting, write_page
from ringfence.reproduce.rows import Found
from ringfence.reproduce.study import Study

ROWS = [{"K": 1, "x": 0.5, "hidden": "a"}, {"K": 2, "x": 0.25, "hidden": "b"}]


def test_a_page_shows_some_rows_and_its_json_has_all(tmp_path: Path) -> None:
    shown = (
        Shown("iterates", "Some", "of {count}", (("K", "K"), ("x", "x", ".2f")), {"K": [2]}),
        Shown("iterates", "Others", "", (("K", "K"),), {"K": 1}),
        Shown("choices", "Nothing", "", (("K", "K"),)),
    )

    def rows_of(name: str) -> object:
        return lambda study: Found(ROWS, {"count": 2}) if name == "iterates" else Found([])

    study: Study = study_of(tmp_path, {})
    write_page(study, shown, tmp_path, ["Title", "Made by `x`, {count} rows."], rows_of)  # type: ignore[arg-type]
    text = (tmp_path / "table.md").read_text()
    assert text.startswith("# Title\n\nMade by `x`, 2 rows.\n\n## Some\n\nof 2\n\n| K | x |")
    assert "| 2 | 0.25 |" in text
    assert "Nothing" not in text
    assert json.loads((tmp_path / "table.json").read_text()) == [
        *({"table": "iterates", **row} for row in ROWS),
        {"table": "iterates", "facts": True, "count": 2},
    ]


def test_rows_fit_a_value_or_one_of_several() -> None:
    assert fitting(ROWS, {"hidden": "a"}) == ROWS[:1]
    assert fitting(ROWS, {"K": [1, 2], "hidden": ["b", "c"]}) == ROWS[1:]
    assert fitting(ROWS, {}) == ROWS


def test_a_table_of_a_kind_is_about_the_variants_of_that_kind(tmp_path: Path) -> None:
    study: Study = study_of(tmp_path, {})
    both = tuple(Variant(name, {}, 1, kind=name) for name in ("game", "training"))
    shown = (Shown("iterates", columns=(("name", "name"),), kind="training"),)

    def rows_of(name: str) -> object:
        return lambda study: Found([{"name": v.name} for v in study.variants])

    write_page(replace(study, variants=both), shown, tmp_path, ["Title"], rows_of)  # type: ignore[arg-type]
    rows = json.loads((tmp_path / "table.json").read_text())
    assert rows == [{"table": "iterates", "name": "training"}]
