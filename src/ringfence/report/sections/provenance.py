"""How to make the same run again, and what it was made with."""

from __future__ import annotations

from ringfence.objects import NotHere
from ringfence.report.markup import Markup, folded, muted, tag, titled
from ringfence.report.read import Run
from ringfence.report.text import figure_text, versions_line

TITLE = "Reproduce this"


def section(run: Run) -> Markup | NotHere:
    took = "" if run.seconds is None else f" It took {_duration(run.seconds)}."
    return titled(
        TITLE,
        tag("p", f"The same command and versions give the same bytes.{took}"),
        tag("pre", run.summary["command"], class_="card"),
        muted(_learned_from(run)),
        folded("Configuration (config.toml)", tag("pre", run.config_text)),
        tag("footer", _footer(run)),
        name="reproduce",
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{figure_text(seconds)} s"
    return f"{figure_text(seconds / 60)} minutes"


def _learned_from(run: Run) -> str:
    demos = run.config.get("demos")
    if not run.rows:
        return "A learner without a constraint was compared with the training trajectories."
    if isinstance(demos, dict) and demos.get("experts") == "exact":
        return "The game learned from the experts' exact occupancies; the paths shown are samples."
    return "The game learned from the training trajectories, some of which are shown above."


def _footer(run: Run) -> str:
    s = run.summary
    simulated = f" {s['env_steps']:,} simulated steps." if s["env_steps"] else ""
    return (
        f"Written with {versions_line(s['versions'])}. "
        f"Demonstrations {s['demonstrations_sha256'][:12]}.{simulated}"
    )
