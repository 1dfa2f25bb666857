"""The functions that an experiment's file names: what plays a seed, makes rows, draws a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ringfence.errors import InvalidInput

#: Name in a file -> module of this package and function. Each is imported when it is asked for.
PLAYS = {
    "game": "games:play",
    "training": "solves:play",
    "chou": "baselines:play",
    "point": "without_planner:play",
    "limit": "kept_limits:play",
    "shared-point": "shared_point:play",
    "shared-robots": "shared_robots:play",
    "few": "few_demonstrations:play",
    "flights": "flight_study:play",
    "levels": "cruise_levels:play",
}
ROWS = {
    "iterates": "iterates:iterates",
    "parameters": "iterates:parameters",
    "choices": "iterates:choices",
    "played": "iterates:seeds_played",
    "clearances": "clearance:clearances",
    "policies": "trainings:policies",
    "judged": "trainings:judged",
    "reasons": "trainings:reasons",
    "methods": "baselines:methods",
    "checked": "checked:checked",
    "chosen_iterates": "which_iterate:chosen_iterates",
    "exact_games": "exact_maze:exact_games",
    "path_curve": "exact_maze:path_curve",
    "one_task_alone": "exact_maze:one_task_alone",
    "entropy": "exact_maze:entropy",
    "left_out": "exact_maze:left_out",
    "asking": "exact_maze:asking",
    "maze_course": "ant_walks:maze_course",
    "walks_of_one_task": "ant_walks:walks_of_one_task",
    "walks_never_seen": "ant_walks:walks_never_seen",
    "point_course": "without_planner:point_course",
    "limits": "kept_limits:limits",
    "shared_point": "shared_point:shared_point",
    "shared_robots": "shared_robots:shared_robots",
    "few_estimates": "few_demonstrations:few_estimates",
    "few_resampled": "few_demonstrations:few_resampled",
    "shared_labels": "shared_labels:shared_labels",
    "unseen_outcomes": "unseen:outcome_rows",
    "unseen_maps": "unseen:map_rows",
    "unseen_theory": "unseen:theory_rows",
    "saturation_kinds": "verdicts:saturation_kinds",
    "interval_coverage": "verdicts:interval_coverage",
    "flight_rules": "flight_rows:rules",
    "flight_sensitivity": "flight_rows:sensitivity",
    "flight_budgets": "flight_rows:budgets",
    "flight_sizes": "flight_rows:sizes",
    "flight_evidence": "flight_rows:evidence",
    "flight_games": "flight_rows:games",
    "flight_crossed": "flight_rows:crossed",
    "flight_breaches": "flight_rows:breaches",
    "flight_cleaning": "flight_rows:cleaning",
    "cruise_levels": "cruise_levels:levels",
}
FIGURES = {
    "curves": "pictures:curves",
    "paths": "pictures:paths",
    "trainings": "pictures:trainings",
    "compared_trainings": "pictures:compared_trainings",
    "maze_panels": "pictures:maze_panels",
    "path_curve": "pictures:path_curve",
    "floor_panels": "pictures:floor_panels",
    "evidence": "pictures:evidence",
    "maze_curves": "pictures:maze_curves",
    "point_panels": "pictures:point_panels",
    "unseen": "pictures:unseen",
    "flights": "flight_pictures:flights",
}


def play_of(kind: str) -> Callable[..., Any]:
    return _function("kind", kind, PLAYS)


def rows_of(name: str) -> Callable[..., Any]:
    return _function("rows", name, ROWS)


def figure_of(name: str) -> Callable[..., Any]:
    return _function("draw", name, FIGURES)


def _function(key: str, name: str, known: Mapping[str, str]) -> Callable[..., Any]:
    if name not in known:
        raise InvalidInput(f"{key} = {name!r} is not known; it can be: {', '.join(known)}")
    module, _, function = known[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(f"ringfence.reproduce.{module}"), function)
    return found
