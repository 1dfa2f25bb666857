"""Demonstrators who wander: within the truth, and within what they may lose."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.constraints.written import parse_constraint
from ringfence.reproduce import experiment
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.point_demonstrators import (
    demonstrations,
    free_places,
    index_of,
    planned,
)
from ringfence.runs.config import make_world


def test_who_wanders_keeps_to_the_truth_and_loses_nearly_all_that_it_may_and_no_more() -> None:
    file = experiment.read("multitask")
    variant = file.variants["table-1"]
    world: Any = make_world(configuration(file, variant, 0).world)
    truth = parse_constraint(variant.get("training")["constraint"], world.features)
    (task,) = world.tasks
    plan = planned(task.kwargs["goal"], free_places(truth), task.horizon)
    shown = demonstrations(world, truth, 0, 0.3, below=0.1).tasks[0]
    best, earned = [], []
    for _, t in shown.labelled:
        assert truth.cost(t.features).max() == 0
        best.append(float(plan.worth[0][index_of(t.observations[0][:2])]))
        earned.append(float(t.rewards.sum()))
    lost = np.subtract(best, earned)
    assert (lost <= 0.1 * np.abs(best) + 1e-9).all()
    assert 0.09 < lost.sum() / np.abs(best).sum() <= 0.1
