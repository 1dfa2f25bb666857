"""Who may import whom, as DESIGN has it; and that nothing on the learning side can see a truth."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ringfence

SRC = Path(__file__).parent.parent / "src" / "ringfence"

# A module (or package) may import these; more is a new arrow and needs a reason.
MAY_IMPORT = {
    "errors": set(),
    "disk": {"errors"},
    "compilation": set(),
    "objects": {"errors"},
    "worlds": {"errors", "objects", "worlds"},
    "constraints": {"errors", "objects", "constraints"},
    "demos": {"disk", "errors", "objects"},
    "attempts": {"objects"},
    "demo_checks": {"attempts", "errors", "objects", "demos"},
    "logs": {"errors", "objects"},
    "options": {"errors"},
    "saturation": {"errors", "objects", "attempts", "constraints", "demo_checks"},
    "solvers": {
        *("disk", "errors", "objects", "solvers"),
        *("worlds.finite", "worlds.rollouts", "worlds.rollout_checks", "worlds.floor"),
        *("worlds.ant_walk", "worlds.point_maze"),
    },
    "game": {"errors", "objects", "constraints.player"},
    "selection": {"errors", "objects", "game"},
    "baselines": {"errors", "objects", "constraints", "baselines"},
    "evidence": {"errors", "objects", "worlds.finite", "solvers.soft", "evidence"},
    "theory": {"errors", "objects", "constraints", "game"},
    "identifiability": {"errors", "objects"},
    "intervals": {"errors"},
    "violations": {"errors", "intervals"},
    "policies": {"disk", "errors", "objects", "worlds.rollouts"},
    "use": {"errors", "objects", "constraints.saved", "violations", "worlds.sources"},
}


def imports(path: Path) -> set[str]:
    """The ringfence modules that a file imports anywhere, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ringfence":
            base = (node.module or "").removeprefix("ringfence").lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                is_module = (SRC / (inner.replace(".", "/") + ".py")).is_file()
                is_package = (SRC / inner.replace(".", "/")).is_dir()
                found.add(inner if is_module or is_package else base)
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("ringfence.")
                for alias in node.names
                if alias.name.startswith("ringfence.")
            }
    return found


def files(unit: str) -> list[Path]:
    package = SRC / unit
    return sorted(package.glob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


@pytest.mark.parametrize("unit", MAY_IMPORT)
def test_imports_go_one_way(unit: str) -> None:
    for path in files(unit):
        for name in imports(path):
            allowed = any(name == a or name.startswith(a + ".") for a in MAY_IMPORT[unit])
            assert allowed, f"{path.name} imports ringfence.{name}"


@pytest.mark.parametrize("unit", ["game", "selection", "constraints", "evidence"])
def test_learning_and_selection_never_name_the_truth(unit: str) -> None:
    for path in files(unit):
        names = {
            getattr(node, "attr", getattr(node, "id", ""))
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute | ast.Name)
        }
        assert not names & {"truth", "GridTruth", "walls", "true_cost", "true_raw"}, path.name


def test_report_reads_files_only() -> None:
    for path in files("report"):
        for name in imports(path):
            assert name not in {"game", "selection", "runs.learn", "runs.backends"}, path.name


def test_every_package_is_checked_or_stands_above() -> None:
    above = {
        "cli",
        "commands",
        "commands_reproduce",
        "commands_train",
        "control_commands",
        "own",
        "progress",
        "bench",
        "bench_crl",
        "bench_maze",
        "commands_maze",
        "studies",
        "experts",
        "runs",
        "report",
    }
    units = {p.stem for p in SRC.glob("*.py")} | {p.parent.name for p in SRC.glob("*/__init__.py")}
    assert units - {"__init__"} == set(MAY_IMPORT) | above


def test_the_package_lists_its_public_names() -> None:
    assert dir(ringfence) == sorted(ringfence.__all__)
    assert all(hasattr(ringfence, name) for name in dir(ringfence))


def test_nothing_can_unpickle() -> None:
    for path in SRC.rglob("*.py"):
        text = path.read_text()
        assert "pickle" not in text, path.name
