"""Ringfence learns the safety constraint that several demonstrators share.

The public names are below. They are imported when first used, so that loading a saved
constraint (`ringfence.load`) needs nothing but numpy and safetensors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.api import (
        Learned,
        Solved,
        check,
        evaluate,
        learn,
        make_demonstrations,
        solve,
        transfer,
    )
    from ringfence.constraints.classes import LinearClass, TableClass
    from ringfence.constraints.linear import LinearConstraint
    from ringfence.constraints.mlp import MLPConstraint
    from ringfence.constraints.saved import SavedConstraint, load, save
    from ringfence.constraints.table import TableConstraint
    from ringfence.deploy.cost import ConstraintCost, Monitor, VectorConstraintCost, VectorMonitor
    from ringfence.deploy.policies import SavedPolicy, load_policy
    from ringfence.deploy.violations import Violations
    from ringfence.experts.optimal import ExpertConfig
    from ringfence.game import Record, Rules, play
    from ringfence.objects import (
        Behaviour,
        Demonstrations,
        Feature,
        J,
        Problem,
        Solution,
        TaskDemos,
        Trajectory,
        behaviour_of,
    )
    from ringfence.players.ftrl import FTRL, ftrl
    from ringfence.players.network import MLPRegression
    from ringfence.players.regression import Regression
    from ringfence.selection import select
    from ringfence.solvers.lp import LPSolver
    from ringfence.solvers.soft import SoftSolver
    from ringfence.worlds.grid import GridWorld, maze, read_map
    from ringfence.worlds.tables import TableWorld, from_gymnasium, table_world

_HOME = {
    "Learned": "api",
    "Solved": "api",
    "check": "api",
    "evaluate": "api",
    "learn": "api",
    "solve": "api",
    "transfer": "api",
    "trust": "api",
    "Demonstrations": "objects",
    "Feature": "objects",
    "TaskDemos": "objects",
    "Trajectory": "objects",
    "from_gymnasium": "worlds.tables",
    "table_world": "worlds.tables",
    "TableWorld": "worlds.tables",
    "FTRL": "players.ftrl",
    "Behaviour": "objects",
    "ConstraintCost": "deploy.cost",
    "ExpertConfig": "experts.optimal",
    "GridWorld": "worlds.grid",
    "J": "objects",
    "LPSolver": "solvers.lp",
    "LinearClass": "constraints.classes",
    "LinearConstraint": "constraints.linear",
    "MLPConstraint": "constraints.mlp",
    "MLPRegression": "players.network",
    "Monitor": "deploy.cost",
    "Problem": "objects",
    "Record": "game",
    "Regression": "players.regression",
    "Rules": "game",
    "SavedConstraint": "constraints.saved",
    "SavedPolicy": "deploy.policies",
    "SoftSolver": "solvers.soft",
    "Solution": "objects",
    "TableClass": "constraints.classes",
    "TableConstraint": "constraints.table",
    "VectorConstraintCost": "deploy.cost",
    "VectorMonitor": "deploy.cost",
    "Violations": "deploy.violations",
    "behaviour_of": "objects",
    "ftrl": "players.ftrl",
    "load": "constraints.saved",
    "load_policy": "deploy.policies",
    "make_demonstrations": "api",
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
    "Demonstrations",
    "ExpertConfig",
    "Feature",
    "GridWorld",
    "J",
    "LPSolver",
    "Learned",
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
    "Solved",
    "TableClass",
    "TableConstraint",
    "TableWorld",
    "TaskDemos",
    "Trajectory",
    "VectorConstraintCost",
    "VectorMonitor",
    "Violations",
    "behaviour_of",
    "check",
    "evaluate",
    "from_gymnasium",
    "ftrl",
    "learn",
    "load",
    "load_policy",
    "make_demonstrations",
    "maze",
    "play",
    "read_map",
    "save",
    "select",
    "solve",
    "table_world",
    "transfer",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ringfence' has no attribute {name!r}")
    return getattr(import_module(f"ringfence.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
