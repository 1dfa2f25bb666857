"""Numbers and lists for reading."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.report.text import (
    cell_names,
    figure_text,
    parameter_words,
    plural,
    plus_minus,
    some,
    subscript,
    versions_line,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\u2013"),
        (0, "0"),
        (-0.0, "0"),
        (1e-12, "0"),
        (10.8123, "10.8"),
        (-148, "\u2212148"),
        (1e-6, "1e\u22126"),
        (-12345.6, "\u221212,346"),
        (999.9, "1,000"),
        (100.0, "100"),
    ],
)
def test_figures_are_short(value: float | None, text: str) -> None:
    assert figure_text(value) == text


def test_errors_stand_beside_means_where_they_are_known() -> None:
    assert plus_minus(2.0, 0.123) == "2 \u00b1 0.12"
    assert plus_minus(2.0, None) == "2"
    assert plus_minus(None, None) == "\u2013"


def test_many_names_are_counted() -> None:
    assert some(["a"]) == "a"
    assert some(["a", "b", "c"]) == "a, b and c"
    assert some(list("abcd"), 2) == "a, b and 2 more"
    assert plural(1, "cell"), plural(2, "cell") == ("1 cell", "2 cells")


def test_cells_and_parameters_have_names() -> None:
    assert cell_names(np.array([[True, False], [False, True]])) == "(0,0) and (1,1)"
    assert parameter_words("limit") == "limit"
    assert parameter_words("x") == "coefficient of x"
    assert subscript(10) == "\u2081\u2080"
    assert versions_line({"a": 1, "b": 2}) == "a 1, b 2"
