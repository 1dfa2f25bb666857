from __future__ import annotations

import pytest

from ringfence.reproduce.rows import (
    MEAN,
    NOT_RUN,
    Column,
    cell,
    flat,
    markdown,
    mean_of,
    with_means,
)


def test_a_cell_is_a_figure_with_its_error_or_what_is_known_of_it() -> None:
    row = {"a": 1.234, "a_se": 0.1, "unknown": None, "yes": True, "low": 1.0, "high": 2.0}
    assert cell(row, Column("a", "", ".2f")) == "1.23 ± 0.10"
    assert cell(row, Column("unknown", "", ".2f")) == "-"
    assert cell(row, Column("yes", "")) == "yes"
    assert cell(row, Column("nothing", "")) == ""
    assert cell(row, Column("{low:.1f} to {high:.1f}", "")) == "1.0 to 2.0"
    assert cell(row, Column("{unknown:.1f}", "")) == "-"
    assert cell({"status": NOT_RUN}, Column("a", "", ".2f")) == NOT_RUN
    assert cell({"status": NOT_RUN}, Column("{a:.1f}", "")) == NOT_RUN


def test_means_are_over_what_was_run() -> None:
    rows = [
        {"name": "a", "seed": 0, "x": 1.0, "good": True, "y": None},
        {"name": "a", "seed": 1, "x": 3.0, "good": False, "y": 1.0},
        {"name": "a", "seed": 2, "status": NOT_RUN},
        {"name": "b", "seed": 0, "status": NOT_RUN},
    ]
    mean, none = [row for row in with_means(rows, ["name"]) if row["seed"] == MEAN]
    assert mean == {
        "name": "a", "seed": MEAN, "not_run": 1, "x": 2.0, "x_se": 1.0, "good": "1 of 2", "y": None,
    }  # fmt: skip
    assert none == {"name": "b", "seed": MEAN, "not_run": 1, "status": NOT_RUN}


def test_one_seed_has_no_error() -> None:
    assert mean_of([{"x": 2.0}]) == {"x": 2.0}


def test_a_bar_in_a_cell_is_no_border() -> None:
    assert markdown([Column("c", "c")], [{"c": "|x| <= 1"}]).endswith("| \\|x\\| <= 1 |")


def test_the_first_cell_of_a_mean_is_bold() -> None:
    columns = [Column("name", "what"), Column("seed", "seed"), Column("x", "x", ".1f")]
    text = markdown(columns, with_means([{"name": "a", "seed": 0, "x": 1.0}], ["name"]))
    assert text.splitlines() == [
        "| what | seed | x |", "| --- | --- | --- |", "| a | 0 | 1.0 |", "| **a** | mean | 1.0 |",
    ]  # fmt: skip


def test_nested_objects_become_flat() -> None:
    assert flat({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a_b": 1, "a_c_d": 2, "e": 3}
    assert flat({"a": {"b": 1}}, mark=".") == {"a.b": 1}


def test_a_template_of_another_type_is_a_mistake_that_shows() -> None:
    with pytest.raises(ValueError, match="format code"):
        cell({"a": "text"}, Column("{a:.1f}", ""))
