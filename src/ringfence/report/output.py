"""Pages and pictures are there whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from ringfence.disk import sync, writing


def write_file(path: Path, content: bytes) -> Path:
    """Write to a temporary name beside `path`, sync, rename."""
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        try:
            partial.write_bytes(content)
            sync(partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return path
