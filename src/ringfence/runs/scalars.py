"""A training's scalars for TensorBoard, where a writer of its event files is installed.

No result depends on them: curves.csv has the same numbers.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

#: Modules with a class that writes event files; the first that is installed is used.
WRITERS = (("tensorboardX", "SummaryWriter"), ("tensorboard.summary", "Writer"))
NOT_SHOWN = ("update", "updates", "env_steps")


class Scalars(AbstractContextManager["Scalars"]):
    """Called with records: folder/tensorboard is written anew, if it can be.

    A resumed training reports its earlier updates again, so each session writes all of them.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run / "tensorboard"
        self._make = find_writer()
        self._writer: Any = None

    def __call__(self, record: Mapping[str, Any]) -> None:
        if self._make is None:
            return
        if self._writer is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._writer = self._make(str(self._folder))
        for name, value in record.items():
            if name not in NOT_SHOWN and value is not None:
                self._writer.add_scalar(name, value, record["env_steps"])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()


def find_writer() -> Any | None:
    """A class that is called with a folder and has add_scalar(name, value, step) and close()."""
    for module, name in WRITERS:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return None
