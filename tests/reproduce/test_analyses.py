from __future__ import annotations

import pytest

from ringfence.errors import InvalidInput
from ringfence.reproduce.analyses import FIGURES, PLAYS, ROWS, figure_of, play_of, rows_of


def test_everything_that_a_file_can_name_is_there() -> None:
    for names, find in ((PLAYS, play_of), (ROWS, rows_of), (FIGURES, figure_of)):
        for name in names:
            assert callable(find(name))


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"rows = 'os:system' is not known; it can be: iterates"):
        rows_of("os:system")
