"""Only seeds of one experiment are averaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringfence.errors import InvalidInput
from ringfence.report import page
from ringfence.report.alike import require_alike

MAP = """schema = 1
command = "ringfence learn --seed {seed}"
seed = {seed}

[world]
name = "maze"
{world}

[demos]
content_hash = "of seed {seed}"

[game]
iterations = 5
"""


def run(folder: Path, seed: int = 0, world: str = "", **summary: object) -> Path:
    """A finished run, as far as its kind is concerned."""
    folder.mkdir()
    (folder / "config.toml").write_text(MAP.format(seed=seed, world=world))
    (folder / "summary.json").write_text(json.dumps({"tasks": ["a"], **summary}))
    return folder


def refused(runs: list[Path], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        require_alike(runs)


def test_seeds_may_differ_in_command_and_demonstrations(tmp_path: Path) -> None:
    require_alike([run(tmp_path / "a"), run(tmp_path / "b", seed=1)])


def test_a_seed_counts_once(tmp_path: Path) -> None:
    a, b, c = run(tmp_path / "a"), run(tmp_path / "b", seed=1), run(tmp_path / "c")
    refused([a, b, c], "/a and .*/c have the same seed, 0")
    refused([a, a], "/a and .*/a have the same seed, 0")


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    a = run(tmp_path / "a")
    slipping = run(tmp_path / "b", seed=1, world="slip = 0.1")
    refused([a, slipping], r"/a and .*/b are not of one experiment: \[world\] slip differs")
    refused([slipping, a], r"not of one experiment: \[world\] slip differs")
    refused([a, run(tmp_path / "c", seed=1, tasks=["b"])], "one experiment: tasks differs")


def test_a_map_and_a_continuous_world_are_two_experiments(tmp_path: Path) -> None:
    a = run(tmp_path / "a")
    b = run(tmp_path / "b", world='kind = "gym"', outcome="constraint")
    refused([a, b], r"not of one experiment: \[world\] kind differs")


def test_a_run_without_a_constraint_is_not_averaged_with_one_that_has(tmp_path: Path) -> None:
    a = run(tmp_path / "a", outcome="constraint")
    b = run(tmp_path / "b", seed=1, outcome="no constraint needed")
    refused([a, b], "/a ended with 'constraint', .*/b with 'no constraint needed'")


@pytest.mark.parametrize("world", ["", 'kind = "gym"'])
def test_an_unfinished_run_is_called_so(tmp_path: Path, world: str) -> None:
    a, b = run(tmp_path / "a"), run(tmp_path / "b", seed=1, world=world)
    (b / "summary.json").unlink()
    refused([a, b], "/b: unfinished; go on with 'ringfence resume .*/b'")
    with pytest.raises(InvalidInput, match="/b: unfinished; go on with 'ringfence resume"):
        page.render(b)
