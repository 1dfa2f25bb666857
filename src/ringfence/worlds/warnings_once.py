"""MuJoCo's warnings, each one once.

Of itself MuJoCo repeats a model's warnings for every copy of an environment (HalfCheetah: 64 times
per solve) and writes them to MUJOCO_LOG.TXT in the working directory.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def warn_once() -> None:
    if find_spec("mujoco") is None:
        return
    import mujoco

    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            print(f"MuJoCo: {text}", file=sys.stderr)

    mujoco.set_mju_user_warning(once)
