"""MuJoCo's warnings, each one once.

Of itself MuJoCo repeats a model's warnings for every copy of an environment (HalfCheetah: 64 times
per solve) and writes them to MUJOCO_LOG.TXT in the working directory.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

_said: set[str] = set()


def warn_once() -> None:
    if find_spec("mujoco") is None:
        return
    import mujoco

    mujoco.set_mju_user_warning(_once)


def _once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        print(f"MuJoCo: {text}", file=sys.stderr)
