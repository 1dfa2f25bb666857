"""What a cluster of ours is started with. (That it works: test_ray_engine.py, on clusters.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.runs.ray_local import for_us_alone


def test_each_cluster_has_a_token_of_its_own_that_only_this_user_can_read(tmp_path: Path) -> None:
    tokens = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        variables = for_us_alone(tmp_path / name)
        path = Path(variables["RAY_AUTH_TOKEN_PATH"])
        assert variables["RAY_AUTH_MODE"] == "token"
        assert path.stat().st_mode & 0o777 == 0o600
        tokens.append(path.read_text())
    assert len(set(tokens)) == 2
    assert all(len(token) == 64 for token in tokens)


def test_a_token_that_is_there_already_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("known")
    with pytest.raises(FileExistsError):
        for_us_alone(tmp_path)
