"""A cluster of Ray's that is started here is for whoever starts it, and for nobody else.

Ray runs what it is sent, and left alone it listens on all interfaces (seen with 2.60, also where it
is told another address). So a cluster of ours listens on loopback only; as others may have accounts
on the same machine, it asks for a token, too.
"""

from __future__ import annotations

import secrets
from pathlib import Path

#: Where it listens: a name for one machine alone, which Ray reads once, when it is imported. It
#: says "Windows or OSX", where it is the default; on Linux it does the same.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
#: It goes before the token's file, if it is set.
OTHER_TOKEN = "RAY_AUTH_TOKEN"


def for_us_alone(home: Path) -> dict[str, str]:
    """Variables for a process that starts a cluster, or joins it, before it imports Ray.

    home: a folder that lives as long as the cluster; a fresh token is written there, which only
    this user can read.
    """
    token = home / "token"
    token.touch(mode=0o600, exist_ok=False)
    token.write_text(secrets.token_hex(32))
    quiet = {"RAY_USAGE_STATS_ENABLED": "0"}
    return {**LOOPBACK, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), **quiet}
