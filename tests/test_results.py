"""The committed results have their layout, and their tables are those of their summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringfence.reproduce.analyses import rows_of
from ringfence.reproduce.experiment import names, read
from ringfence.reproduce.study import Study, found_variants

RESULTS = Path(__file__).parent.parent / "results"
EXPERIMENTS = sorted(p.name for p in RESULTS.iterdir() if p.is_dir())


#: Played with what is no longer there: its table stays as it was.
ENDED = {"multipliers"}


def test_every_other_experiment_with_results_can_be_read() -> None:
    assert set(EXPERIMENTS) - ENDED <= set(names())
    assert not ENDED & set(names())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_variant_has_its_manifest_and_every_table_its_rows(name: str) -> None:
    for page in (RESULTS / name).rglob("table.md"):
        rows = json.loads(page.with_name("table.json").read_text())
        assert rows
        assert all(not isinstance(v, dict | list) for row in rows for v in row.values())
    for path in (RESULTS / name).glob("*/seed-*.json"):
        assert json.loads(path.read_text())["schema"] == 2
        manifest = json.loads(path.with_name("manifest.json").read_text())
        assert int(path.stem.removeprefix("seed-")) in manifest["seeds"]
        assert (manifest["experiment"], manifest["variant"]) == (name, path.parent.name)
    assert json.loads((RESULTS / name / "manifest.json").read_text())["experiment"] == name


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("velocity", "iterates"),
        ("position", "iterates"),
        ("noisy", "iterates"),
        ("experts", "policies"),
        ("resets", "policies"),
        ("cheetah", "checked"),
        ("baselines", "methods"),
        ("selection", "chosen_iterates"),
        ("few", "few_estimates"),
    ],
)
def test_a_table_is_made_from_its_summaries(name: str, rows: str) -> None:
    experiment = read(name)
    variants = tuple(found_variants(experiment, RESULTS / name, []))
    (options, *_) = [shown.options for shown in experiment.tables if shown.rows == rows]
    made = rows_of(rows)(Study(experiment, variants, RESULTS / name, options=options)).rows
    found = json.loads((RESULTS / name / "table.json").read_text())
    kept = [r for r in found if r["table"] == rows and "facts" not in r]
    made = [{"table": rows, **row} for row in json.loads(json.dumps(made))]
    assert sorted(map(plain, kept)) == sorted(map(plain, made))


def plain(row: dict) -> str:
    """A row as text; the order of variants and the breaks of lines are the file's."""
    return json.dumps({k: " ".join(v.split()) if isinstance(v, str) else v for k, v in row.items()},
                      sort_keys=True)  # fmt: skip
