"""What a reader can paste to use the constraint."""

from __future__ import annotations

import json

from ringfence.objects import NotHere
from ringfence.report.facts import rule
from ringfence.report.markup import Markup, tag, titled
from ringfence.report.read import Run
from ringfence.report.text import some

TITLE = "Use it"
FEW = 4  # features that are named
CONSTRAINT = """\
import ringfence as rf

c = rf.load("RUN")  # {description}{delta}
env = rf.ConstraintCost(env, c)  # info["cost"] and info["cost_raw"], from {features}"""
POLICY = """
policy = rf.load_policy("RUN"{task})

observation, info = env.reset()
action = policy.act(observation, info.get("cost_raw", 0.0))  # and so on after each step"""


def section(run: Run) -> Markup | NotHere:
    if not run.rows:
        return NotHere(run.reason("constraint"))
    names, costs = [f.name for f in run.features], run.best["expert_cost"]
    known = [cost for cost in costs or () if cost is not None]
    code = CONSTRAINT.format(
        description=" ".join(rule(run).split()),
        delta=f"; the demonstrations cost {max(known):.4g} an episode" if known else "",
        features=some(names) if len(names) <= FEW else f"{len(names)} features",
    )
    words = (
        "The constraint works in any Gymnasium environment that has its features (in info, unless "
        "you say where)"
    )
    if run.has_policy:
        code += POLICY.format(task=f", {json.dumps(run.tasks[0])}" if len(run.tasks) > 1 else "")
        words += ", the selected policy in the one it was trained in"
    words += ". RUN is the run's folder."
    return titled(TITLE, tag("p", words), tag("pre", code, class_="card"), name="use")
