"""Ringfence learns the safety constraint that several demonstrators share.

The public names are below. They are imported when first used, so that loading a saved
constraint (`ringfence.load`) needs nothing but numpy and safetensors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors
    from ringfence.api import Learned as Learned
    from ringfence.api import Solved as Solved
    from ringfence.api import check as check
    from ringfence.api import evaluate as evaluate
    from ringfence.api import learn as learn
    from ringfence.api import make_demonstrations as make_demonstrations
    from ringfence.api import plan as plan
    from ringfence.api import solve as solve
    from ringfence.api import transfer as transfer
    from ringfence.api import trust as trust
    from ringfence.constraints.classes import LinearClass as LinearClass
    from ringfence.constraints.classes import TableClass as TableClass
    from ringfence.constraints.linear import LinearConstraint as LinearConstraint
    from ringfence.constraints.mlp import MLPConstraint as MLPConstraint
    from ringfence.constraints.saved import SavedConstraint as SavedConstraint
    from ringfence.constraints.saved import load as load
    from ringfence.constraints.saved import save as save
    from ringfence.constraints.table import TableConstraint as TableConstraint
    from ringfence.deploy.cost import ConstraintCost as ConstraintCost
    from ringfence.deploy.cost import Monitor as Monitor
    from ringfence.deploy.cost import VectorConstraintCost as VectorConstraintCost
    from ringfence.deploy.cost import VectorMonitor as VectorMonitor
    from ringfence.deploy.policies import SavedPolicy as SavedPolicy
    from ringfence.deploy.policies import load_policy as load_policy
    from ringfence.deploy.violations import Violations as Violations
    from ringfence.experts.optimal import ExpertConfig as ExpertConfig
    from ringfence.game import Record as Record
    from ringfence.game import Rules as Rules
    from ringfence.game import play as play
    from ringfence.objects import Behaviour as Behaviour
    from ringfence.objects import Demonstrations as Demonstrations
    from ringfence.objects import Feature as Feature
    from ringfence.objects import J as J
    from ringfence.objects import Problem as Problem
    from ringfence.objects import Solution as Solution
    from ringfence.objects import TaskDemos as TaskDemos
    from ringfence.objects import Trajectory as Trajectory
    from ringfence.objects import behaviour_of as behaviour_of
    from ringfence.players.ftrl import FTRL as FTRL
    from ringfence.players.ftrl import ftrl as ftrl
    from ringfence.players.network import MLPRegression as MLPRegression
    from ringfence.players.regression import Regression as Regression
    from ringfence.selection import select as select
    from ringfence.solvers.lp import LPSolver as LPSolver
    from ringfence.solvers.soft import SoftSolver as SoftSolver
    from ringfence.worlds.grid import GridWorld as GridWorld
    from ringfence.worlds.grid import maze as maze
    from ringfence.worlds.grid import read_map as read_map
    from ringfence.worlds.tables import TableWorld as TableWorld
    from ringfence.worlds.tables import from_gymnasium as from_gymnasium
    from ringfence.worlds.tables import table_world as table_world

#: Where each name is at home.
_MODULES = {
    "api": "check evaluate learn Learned make_demonstrations plan solve Solved transfer trust",
    "constraints.classes": "LinearClass TableClass",
    "constraints.linear": "LinearConstraint",
    "constraints.mlp": "MLPConstraint",
    "constraints.saved": "load save SavedConstraint",
    "constraints.table": "TableConstraint",
    "deploy.cost": "ConstraintCost Monitor VectorConstraintCost VectorMonitor",
    "deploy.policies": "load_policy SavedPolicy",
    "deploy.violations": "Violations",
    "experts.optimal": "ExpertConfig",
    "game": "play Record Rules",
    "objects": "Behaviour Demonstrations Feature J Problem Solution TaskDemos Trajectory "
    "behaviour_of",
    "players.ftrl": "FTRL ftrl",
    "players.network": "MLPRegression",
    "players.regression": "Regression",
    "selection": "select",
    "solvers.lp": "LPSolver",
    "solvers.soft": "SoftSolver",
    "worlds.grid": "GridWorld maze read_map",
    "worlds.tables": "from_gymnasium table_world TableWorld",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ringfence' has no attribute {name!r}")
    return getattr(import_module(f"ringfence.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
