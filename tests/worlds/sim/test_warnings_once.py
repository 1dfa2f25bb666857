from __future__ import annotations

import subprocess
import sys


def test_a_simulators_warning_is_said_once() -> None:
    code = (
        "from ringfence.worlds.sim.warnings_once import warn_once; import mujoco; warn_once(); "
        "warn = mujoco.get_mju_user_warning(); [warn(x) for x in ('one', 'one', 'two')]"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stderr.splitlines() == ["MuJoCo: one", "MuJoCo: two"]
