"""A Minari folder is looked through before Minari and HDF5 open it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

from ringfence.demos import dataset, logs
from ringfence.demos.minari_files import ABOUT, DATA, require_plain_data
from ringfence.disk import MOST_ARRAYS
from ringfence.errors import InvalidInput
from small_worlds import demos_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minari") / "demos"
    dataset.save(demos_of("gym"), folder)
    return folder / "task-00-v0"


def edited(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def harm(data: Path) -> None:
        with h5py.File(data / DATA, "a") as file:
            change(file)

    return harm


def about(**entries: Any) -> Callable[[Path], None]:
    """With these entries; None drops one."""

    def harm(data: Path) -> None:
        document = {**json.loads((data / ABOUT).read_text()), **entries}
        kept = {name: value for name, value in document.items() if value is not None}
        (data / ABOUT).write_text(json.dumps(kept))

    return harm


def external(file: Any) -> None:
    file["x"] = h5py.ExternalLink("/etc/passwd", "/")


def elsewhere(file: Any) -> None:
    file.create_dataset("x", (10,), "u1", external=[("/etc/passwd", 0, 10)])


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (10,))
    file.create_virtual_dataset("x", layout)


def linked(data: Path) -> None:
    (data / DATA).rename(data / "other")
    (data / DATA).symlink_to(data / "other")


def pipe(data: Path) -> None:
    (data / DATA).unlink()
    os.mkfifo(data / DATA)


SPEC = json.dumps({"id": "X-v0", "entry_point": "os:system", "kwargs": {"command": "touch pwned"}})
HARM = {
    "an external link": (edited(external), "is a link elsewhere"),
    "a soft link": (edited(lambda f: f.__setitem__("x", h5py.SoftLink("/y"))), "link elsewhere"),
    "external storage": (edited(elsewhere), "lies in another file"),
    "a virtual array": (edited(virtual), "lies in another file"),
    "a loop": (edited(lambda f: f["episode_0"].__setitem__("x", f["/episode_0"])), "there twice"),
    "a huge shape": (
        edited(lambda f: f.create_dataset("x", (MOST_ARRAYS,), "f8", chunks=(1024,))),
        "are declared in it",
    ),
    "code for spaces": (about(observation_space=None, env_spec=SPEC), "no observation_space.*code"),
    "another format": (about(data_format="arrow"), "only hdf5 is read"),
    "no JSON": (lambda data: (data / ABOUT).write_text("{"), "not valid JSON"),
    "a link": (linked, "a link"),
    "a pipe": (pipe, "not a regular file"),
    "no data": (lambda data: (data / DATA).unlink(), "no main_data.hdf5"),
}


@pytest.mark.parametrize("name", HARM)
def test_what_does_more_than_hold_arrays_is_refused(
    name: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    harm, words = HARM[name]
    folder = Path(shutil.copytree(whole, tmp_path / "one"))
    require_plain_data(folder / "data")
    assert len(logs.read("one", tmp_path)) == 6
    harm(folder / "data")
    with pytest.raises(InvalidInput, match=words):
        logs.read("one", tmp_path)
    assert not (tmp_path / "pwned").exists()
