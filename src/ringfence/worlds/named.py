"""The user's own code by name, "module:function", from the working directory or installed packages.

Nothing else is ever imported: no file of a run, a dataset or a constraint names code by a path.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ringfence.errors import InvalidInput, RingfenceError
from ringfence.worlds.patience import waiting_for

#: Where our own code is: an error that it raises is nobody's line.
PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Named:
    """A function that is known by its name, the same in every process."""

    name: str

    def __call__(self, *given: Any, **named: Any) -> Any:
        function = find(self.name)
        try:
            with waiting_for(self.name):
                return function(*given, **named)
        except RingfenceError:
            raise
        except (Exception, SystemExit) as problem:  # the user's code may raise anything
            raise InvalidInput(f"{self.name} failed: {blame(problem)}; mend it") from problem


def find(name: str) -> Callable[..., Any]:
    """The function behind "module:function"."""
    module, _, function = name.partition(":")
    if not module or not function or not all(part.isidentifier() for part in module.split(".")):
        raise InvalidInput(f'{name!r} is not "module:function", such as "my_env:reward"')
    try:
        with waiting_for(f"the import of {module}"):
            found = getattr(import_module(module), function)
    except (Exception, SystemExit) as problem:  # a module runs when it is imported
        raise InvalidInput(
            f"can't find the function {name!r} (module:function): {blame(problem)}; run ringfence "
            "where the module's file is, or install its package"
        ) from problem
    if not callable(found):
        raise InvalidInput(f"{name!r} is not a function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def from_working_directory() -> None:
    """Let "module:function" find modules in the working directory (a script's path lacks it)."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def blame(problem: BaseException) -> str:
    """An error in one line, with the place in the user's code that raised it."""
    last = traceback.extract_tb(problem.__traceback__)[-1:]
    mine = [f for f in last if not f.filename.startswith((PACKAGE, "<"))]
    place = f" ({Path(mine[0].filename).name}, line {mine[0].lineno})" if mine else ""
    return f"{type(problem).__name__}: {problem}{place}"
