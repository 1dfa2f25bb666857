"""The picture of recorded flights: where they are in altitude and speed, the corner that was
learned, and the true rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ringfence.reproduce.study import Study

COLOURS = {"learned": "#c2410c", "true": "#111827", "flights": "Blues", "median": "#1d4ed8"}


def flights(study: Study, path: Path) -> None:
    """options.variant: whose results are drawn; options.truth: kt and ft."""
    from matplotlib.figure import Figure

    variant = next((v for v in study.variants if v.name == study.options["variant"]), None)
    summaries = study.summaries(variant) if variant is not None else {}
    if not summaries:
        return
    summary = next(iter(summaries.values()))
    figure = Figure(figsize=(8.4, 6.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    _density(ax, summary["density"])
    _rule(ax, summary["parts"][0], study.options["truth"], summary["density"])
    ax.set_xlabel("calibrated airspeed (kt)")
    ax.set_ylabel("pressure altitude (ft)")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    n, part = summary["flights"]["flights"], summary["parts"][0]
    ax.set_title(
        f"{n} flights around Paris: nobody told the learner of a speed limit\n"
        f"it found {part['speed_kt']:.0f} kt up to {part['altitude_ft']:,.0f} ft; "
        f"the rule is {study.options['truth'][0]:.0f} kt below "
        f"{study.options['truth'][1]:,.0f} ft",
        loc="left", fontsize=11,
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _density(ax: Any, density: dict[str, Any]) -> None:
    counts = np.array(density["departure"]) + np.array(density["arrival"])
    speeds, altitudes = np.array(density["speeds"]), np.array(density["altitudes"])
    shares = counts / counts.sum(axis=1, keepdims=True)
    edges = [_edges(values) for values in (speeds, altitudes)]
    mesh = ax.pcolormesh(
        *edges, np.ma.masked_equal(100 * shares, 0), cmap=COLOURS["flights"], vmin=0, vmax=40
    )
    ax.figure.colorbar(mesh, ax=ax, label="flights of this altitude (%)", shrink=0.6, pad=0.01)
    ax.plot(density["medians"], altitudes, color=COLOURS["median"], lw=1.4, label="median flight")
    ax.set_xlim(180, 335)


def _rule(ax: Any, part: dict[str, Any], truth: Any, density: dict[str, Any]) -> None:
    floor = _edges(np.array(density["altitudes"]))[0]
    right = ax.get_xlim()[1]
    speed, altitude = truth
    ax.plot([speed, speed, right], [floor, altitude, altitude], color=COLOURS["true"], lw=2,
            ls=(0, (4, 2)), label=f"the rule: {speed:.0f} kt below {altitude:,.0f} ft")  # fmt: skip
    v, h = part["speed_kt"], part["altitude_ft"]
    ax.plot([v, v, right], [floor, h, h], color=COLOURS["learned"], lw=2.4,
            label=f"learned: {v:.0f} kt up to {h:,.0f} ft, with 95% intervals")  # fmt: skip
    ax.fill_betweenx([floor, h], part["speed_low"], part["speed_high"], color=COLOURS["learned"],
                     alpha=0.15, lw=0)  # fmt: skip
    ax.fill_between([v, right], part["altitude_low"], part["altitude_high"],
                    color=COLOURS["learned"], alpha=0.15, lw=0)  # fmt: skip
    ax.text((v + right) / 2 + 8, (floor + h) / 2, "aircraft could fly here;\nhardly anybody does",
            ha="center", va="center", color=COLOURS["learned"], fontsize=11)  # fmt: skip
    ax.legend(loc="upper left", fontsize=9, framealpha=0.95)


def _edges(middles: Any) -> Any:
    half = (middles[1] - middles[0]) / 2
    return np.append(middles - half, middles[-1] + half)
