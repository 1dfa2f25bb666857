"""A strip of frames: one episode as it looked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.report.figures import canvas, picture_bytes


def strip(frames: NDArray[np.uint8], titles: Sequence[str]) -> bytes:
    """A PNG of frames [n, h, w, 3] side by side, each with its title."""
    n, height, width, _ = frames.shape
    with canvas(2.4 * n, 2.4 * height / width + 0.3) as figure:
        for ax, frame, title in zip(figure.subplots(1, n, squeeze=False)[0], frames, titles,
                                    strict=True):  # fmt: skip
            ax.imshow(frame)
            ax.set_axis_off()
            ax.set_title(title, fontsize=8)
        return picture_bytes(figure, ".png")
