"""The README's picture, from a run on a map: what was learned, what is proven, and the curves.

ringfence quickstart --out RUN
python tools/quickstart_picture.py RUN docs/quickstart.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from ringfence.report.charts import charts_of
from ringfence.report.draw.axes import draw_map, outline
from ringfence.report.draw.canvas import FORBIDDEN, canvas, draw_curves, save
from ringfence.report.draw.run_figures import chart_curves, draw_run_map
from ringfence.report.facts import title
from ringfence.report.read import read_run


def picture(run: Path, path: Path) -> Path:
    """Drawing, evidence and curves side by side."""
    data = read_run(run)
    cells, labels, learned = data.cells, data.labels, data.chosen
    assert cells is not None, "not a map"
    assert labels is not None, "without evidence"
    with canvas(12.4, 4.9) as figure:
        figure.suptitle(title(data), x=0.01, ha="left", fontsize=13, fontweight="bold")
        grid = figure.add_gridspec(2, 3, width_ratios=(1.2, 1.2, 0.95))
        ax = figure.add_subplot(grid[:, 0])
        draw_run_map(ax, data, cells, cost=learned.cost * learned.forbidden)
        ax.set_title("Experts' paths and the learned constraint")
        truth = "" if data.walls is None else ", thick line: true walls"
        ax.set_xlabel(f"hatched: forbidden by the constraint{truth}", fontsize=8)
        ax = figure.add_subplot(grid[:, 1])
        draw_map(ax, cells.shape, labels=labels, places=cells.letters)
        outline(ax, labels.forbidden, FORBIDDEN, 1.8, "--")
        ax.set_title("What the demonstrations prove")
        ax.set_xlabel("dot allowed, P proven, figure: size of the conflict, ? unknown", fontsize=8)
        for place, chart in enumerate(charts_of(data.summary)[:2]):
            ax = figure.add_subplot(grid[place, 2])
            draw_curves(ax, chart_curves(chart, [data.summary]), "iteration", "")
            ax.set_title(chart.title)
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        return save(figure, path)


if __name__ == "__main__":
    print(picture(Path(sys.argv[1]), Path(sys.argv[2])))
