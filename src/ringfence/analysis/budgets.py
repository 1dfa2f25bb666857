"""The curve over budgets: which limit demonstrations testify to depends on what they may cost."""

from __future__ import annotations

from typing import Any

from ringfence.analysis.played import Played
from ringfence.objects import NotHere
from ringfence.players.search import budget_curve


def curve(played: Played) -> list[dict[str, Any]] | NotHere:
    """The tightest parameter under which the experts stay within a budget, for many budgets."""
    template = played.family.template
    if template is None or len(template.names) != 1:
        return NotHere("a curve over budgets is for classes with one unknown, such as 'speed <= ?'")
    pairs = budget_curve(template, played.experts)
    return [{"parameter": theta, "budget": budget} for theta, budget in pairs]
