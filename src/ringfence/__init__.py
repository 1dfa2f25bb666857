"""Ringfence learns the safety constraint that several demonstrators share.

The public names are below. They are imported when first used, so that loading a saved
constraint (`ringfence.load`) needs nothing but numpy and safetensors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.constraints.classes import LinearClass, TableClass
    from ringfence.constraints.linear import LinearConstraint
    from ringfence.constraints.mlp import MLPConstraint
    from ringfence.constraints.mlp_player import MLPRegression
    from ringfence.constraints.player import FTRL, Regression, ftrl
    from ringfence.constraints.saved import SavedConstraint, load, save
    from ringfence.constraints.table import TableConstraint
    from ringfence.experts import ExpertConfig, make_demonstrations
    from ringfence.game import Record, Rules, play
    from ringfence.objects import Behaviour, J, Problem, Solution, behaviour_of
    from ringfence.own import check_file, learn_file
    from ringfence.policies import SavedPolicy, load_policy
    from ringfence.selection import select
    from ringfence.solvers.lp import LPSolver
    from ringfence.solvers.soft import SoftSolver
    from ringfence.use import ConstraintCost, Monitor, VectorConstraintCost, VectorMonitor
    from ringfence.violations import Violations
    from ringfence.worlds.grid import GridWorld, maze, read_map

_HOME = {
    "FTRL": "constraints.player",
    "Behaviour": "objects",
    "ConstraintCost": "use",
    "ExpertConfig": "experts",
    "GridWorld": "worlds.grid",
    "J": "objects",
    "LPSolver": "solvers.lp",
    "LinearClass": "constraints.classes",
    "LinearConstraint": "constraints.linear",
    "MLPConstraint": "constraints.mlp",
    "MLPRegression": "constraints.mlp_player",
    "Monitor": "use",
    "Problem": "objects",
    "Record": "game",
    "Regression": "constraints.player",
    "Rules": "game",
    "SavedConstraint": "constraints.saved",
    "SavedPolicy": "policies",
    "SoftSolver": "solvers.soft",
    "Solution": "objects",
    "TableClass": "constraints.classes",
    "TableConstraint": "constraints.table",
    "VectorConstraintCost": "use",
    "VectorMonitor": "use",
    "Violations": "violations",
    "behaviour_of": "objects",
    "check_file": "own",
    "ftrl": "constraints.player",
    "learn_file": "own",
    "load": "constraints.saved",
    "load_policy": "policies",
    "make_demonstrations": "experts",
    "maze": "worlds.grid",
    "play": "game",
    "read_map": "worlds.grid",
    "save": "constraints.saved",
    "select": "selection",
}

__all__ = [
    "FTRL",
    "Behaviour",
    "ConstraintCost",
    "ExpertConfig",
    "GridWorld",
    "J",
    "LPSolver",
    "LinearClass",
    "LinearConstraint",
    "MLPConstraint",
    "MLPRegression",
    "Monitor",
    "Problem",
    "Record",
    "Regression",
    "Rules",
    "SavedConstraint",
    "SavedPolicy",
    "SoftSolver",
    "Solution",
    "TableClass",
    "TableConstraint",
    "VectorConstraintCost",
    "VectorMonitor",
    "Violations",
    "behaviour_of",
    "check_file",
    "ftrl",
    "learn_file",
    "load",
    "load_policy",
    "make_demonstrations",
    "maze",
    "play",
    "read_map",
    "save",
    "select",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ringfence' has no attribute {name!r}")
    return getattr(import_module(f"ringfence.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
