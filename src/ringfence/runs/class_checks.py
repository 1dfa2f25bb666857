"""What demonstrations say to the class of constraints, before and after a game."""

from __future__ import annotations

import numpy as np

from ringfence.analysis.saturation import CONVENTION, coverage, saturation, standing_apart
from ringfence.constraints.family import Family
from ringfence.constraints.template import Template
from ringfence.constraints.written import ConjunctionForm
from ringfence.demos import checks
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Finding
from ringfence.runs.config import Config
from ringfence.runs.demonstrated import Demonstrated
from ringfence.worlds.continuous import is_continuous

#: Of the warnings about demonstrations, that stand among a run's doubts; the rest are counted.
MOST = 5


def of_the_class(
    config: Config, family: Family, shown: Demonstrated, demos: Demonstrations
) -> list[Finding]:
    """Coverage, outliers, saturation. demos: what was given, with its provenance."""
    features, every = family.features, shown.demos
    columns = [n for n, f in enumerate(features) if f.name in family.used]
    points = np.concatenate([t.features for d in every for t in d.train])
    found = coverage(points[:, columns], [features[n] for n in columns])
    templates = one_unknown(family)
    if not templates:
        word = "not checked: the criterion is for limits with one unknown, such as 'speed <= ?'"
        return [*found, Finding("note", "saturation", word)]
    budget, costs = stated_budget(config, shown, demos), demos.provenance.get("true_cost")
    labelled = [(f"{d.task}, {n}", t) for d in every for n, t in enumerate(d.train)]
    for template in templates:
        try:
            found += standing_apart(template, labelled, budget)
            for d in every:
                cost = costs.get(d.task) if isinstance(costs, dict) else None
                true_cost = cost if isinstance(cost, int | float) else None
                found.append(saturation(template, d.task, d.train, budget, true_cost))
        except InvalidInput as problem:
            found.append(Finding("note", "saturation", f"not checked: {problem}"))
    return found


def one_unknown(family: Family) -> list[Template]:
    """The limits of the class that have one unknown: itself, or those of several at once."""
    form = family.form
    parts = form.parts if isinstance(form, ConjunctionForm) else (form,)
    return [part for part in parts if isinstance(part, Template) and len(part.names) == 1]


def stated_budget(config: Config, shown: Demonstrated, demos: Demonstrations) -> float:
    """What an episode may cost: as the game is told, else as the demonstrators' makers recorded,
    else by convention."""
    stated = getattr(config.player, "expert_budget", None)
    recorded = demos.provenance.get("delta")
    if stated is not None:
        return float(stated)
    if isinstance(recorded, int | float):
        return float(recorded)
    return CONVENTION * (shown.tasks[0].horizon or 1)


def warnings(
    config: Config, family: Family, shown: Demonstrated, demos: Demonstrations
) -> list[str]:
    """All that speaks against the demonstrations, for a run's doubts."""
    found = checks.check(demos)
    if is_continuous(shown.tasks[0]):
        found += of_the_class(config, family, shown, demos)
    texts = [f"{f.where}: {f.message}" for f in found if f.severity == "warning"]
    if left_out := sum(shown.failed):
        texts.append(f"{left_out} demonstration(s) failed at their task and were left out")
    rest = len(texts) - MOST
    more = f"{rest} more warnings about the demonstrations: 'ringfence demos check' lists them"
    return texts if rest <= 0 else [*texts[:MOST], more]
