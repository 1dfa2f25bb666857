"""Who may import whom, as DESIGN has it, for every package; and what no module may do.

Nothing is exempt: a module that is not named below fails the test, so does a new arrow.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import ringfence

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src" / "ringfence"

#: What each module or package of the top level may import, beside itself. A name with a dot is a
#: module or package inside one: no other part of it may be imported.
MAY_IMPORT: dict[str, set[str]] = {
    # what passes between the parts, and tools without a part in the method
    "errors": set(),
    "compilation": set(),
    "objects": {"errors"},
    "disk": {"errors"},
    "consent": {"errors", "disk", "compilation"},
    "binomial": {"errors"},
    "atmosphere": set(),
    "attempts": {"objects"},
    "progress": set(),
    # the three that know objects, and not each other
    "worlds": {"errors", "objects", "atmosphere"},
    "demos": {"errors", "objects", "disk", "attempts", "atmosphere"},
    "constraints": {"errors", "objects"},
    # the two players, and the game that knows their forms, not their kinds
    "players": {"errors", "objects", "constraints"},
    "solvers": {"errors", "objects", "disk", "attempts", "worlds.finite", "worlds.sim"},
    "game": {"errors", "objects", "players.player"},
    "selection": {"objects", "game"},
    # what was played, how demonstrations are made, what is used afterwards
    "analysis": {
        *("errors", "objects", "attempts", "demos", "constraints", "players", "game", "selection"),
        "disk",
        *("solvers.soft", "worlds.world", "worlds.finite"),
    },
    "experts": {"errors", "objects", "constraints", "solvers", "worlds"},
    "deploy": {"errors", "objects", "disk", "binomial", "constraints", "worlds.sim"},
    # around all of these
    "runs": {
        *("errors", "objects", "disk", "binomial", "attempts", "compilation", "consent"),
        *("worlds", "demos", "constraints", "players", "solvers", "game", "selection"),
        *("analysis", "experts", "deploy"),
    },
    # it reads files: of what was computed it knows the formats and nothing that computes
    "report": {
        *("errors", "objects", "disk", "constraints", "demos.dataset", "analysis.evidence"),
        "worlds.sim.floor",
    },
    # on top
    "given": {"errors", "objects", "demos", "runs", "worlds"},
    "api": {
        *("errors", "objects", "disk", "constraints", "demos", "analysis.evidence", "deploy"),
        *("analysis.sufficiency", "runs", "worlds", "given", "report", "progress"),
    },
    "bench": {
        *("errors", "objects", "constraints", "players", "solvers", "game", "worlds", "experts"),
        "runs.config",
    },
    "reproduce": {
        *("errors", "objects", "disk", "binomial", "constraints", "demos", "players", "solvers"),
        *("game", "selection", "worlds", "analysis", "experts", "deploy", "runs", "report"),
        *("api", "attempts"),
    },
    "cli": {
        *("errors", "objects", "disk", "compilation", "constraints", "demos", "deploy", "solvers"),
        *("worlds", "runs", "report", "reproduce", "bench", "api", "given", "analysis.sufficiency"),
        "progress",
    },
}

#: Modules whose tests stand elsewhere, and why.
EVIDENCE = "evidence is one computation: test_evidence.py holds its results against brute force"
SECTION = "a page's sections are told from the same runs: tests/report/test_sections.py"
TESTED_ELSEWHERE = {
    "errors": "classes without a line of code",
    **dict.fromkeys(
        (f"analysis/evidence/{name}" for name in (
            *("conflicts", "groups", "labels", "moves", "relate", "result"),
            *("stretches", "suggest"),
        )),
        EVIDENCE,
    ),
    **dict.fromkeys(
        (f"report/sections/{name}" for name in (
            *("choices", "evidence", "explorer", "headline", "intervals", "iterations"),
            *("provenance", "undetermined", "use", "walks"),
        )),
        SECTION,
    ),
    "runs/problem": "what is asked for: tests/runs/test_solving.py asks for it",
    "runs/counting": "what is counted: tests/runs/test_solving.py counts",
    "report/draw/axes": "what figures are drawn on: tests/report/test_figures.py looks at them",
    "report/draw/canvas": "as axes",
    "reproduce/flight_rows": "of what a study played: tests/reproduce/test_flight_study.py",
    "reproduce/flight_pictures": "as flight_rows",
}  # fmt: skip


# The import graph --------------------------------------------------------------------------------


def module_name(path: Path) -> str:
    """Without "ringfence."; a package is its __init__."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sorted(SRC.rglob("*.py"))}


def imports(path: Path) -> set[str]:
    """The ringfence modules that a file imports anywhere, inside functions and for types, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            home, _, base = (node.module or "").partition(".")
            for alias in node.names if home == "ringfence" else ():
                inner = f"{base}.{alias.name}".lstrip(".")
                found.add(inner if inner in modules() else base)
        elif isinstance(node, ast.Import):
            names = [alias.name.partition(".") for alias in node.names]
            found |= {rest for home, _, rest in names if home == "ringfence"}
    return found


def unit_of(module: str) -> str:
    return module.partition(".")[0]


def within(name: str, allowed: str) -> bool:
    return name == allowed or name.startswith(f"{allowed}.")


UNITS = sorted({unit_of(name) for name in modules()} - {""})


@pytest.mark.parametrize("unit", UNITS)
def test_imports_go_one_way(unit: str) -> None:
    assert unit in MAY_IMPORT, f"{unit}: say above what it may import"
    allowed = {unit, *MAY_IMPORT[unit]}
    for name, path in modules().items():
        if unit_of(name) == unit:
            wrong = [i for i in imports(path) if not any(within(i, a) for a in allowed)]
            assert not wrong, f"{name} imports {', '.join(sorted(wrong))}"
            absent = imports(path) - set(modules())
            assert not absent, f"{name} imports {', '.join(sorted(absent))}, which isn't there"


def test_every_arrow_is_used_and_every_unit_is_there() -> None:
    """An arrow that nobody uses any more is taken out, so that the map stays true."""
    assert sorted(MAY_IMPORT) == UNITS
    used = defaultdict(set)
    for name, path in modules().items():
        used[unit_of(name)] |= imports(path)
    for unit, allowed in MAY_IMPORT.items():
        idle = {a for a in allowed if not any(within(i, a) for i in used[unit])}
        assert not idle, f"{unit} no longer imports {', '.join(sorted(idle))}"


def test_no_unit_and_no_module_is_in_a_cycle() -> None:
    between = {name: imports(path) - {name} for name, path in modules().items()}
    assert not cycle_in(between)
    units = {unit: {unit_of(a) for a in allowed} - {unit} for unit, allowed in MAY_IMPORT.items()}
    assert not cycle_in(units)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Some cycle of the graph, or nothing."""
    done: set[str] = set()
    way: list[str] = []

    def follow(name: str) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        way.append(name)
        found = next(filter(None, map(follow, sorted(graph.get(name, ())))), [])
        way.pop()
        done.add(name)
        return found

    return next(filter(None, map(follow, graph)), [])


def test_a_cycle_would_be_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert not cycle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_only_what_is_on_top_imports_reports() -> None:
    for name, path in modules().items():
        if unit_of(name) not in ("report", "api", "cli", "reproduce"):
            assert not any(within(i, "report") for i in imports(path)), name


# What learns knows no truth ----------------------------------------------------------------------

#: For reading only: rows that the driver has completed, and theorems about a truth that is given.
AFTER_LEARNING = ("analysis.choices", "analysis.theory")


def names_in(path: Path) -> set[str]:
    """Every name and attribute in the code."""
    return {
        getattr(node, "attr", getattr(node, "id", getattr(node, "arg", None))) or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Name | ast.arg)
    }


@pytest.mark.parametrize(
    "unit", ["game", "selection", "players", "constraints", "solvers", "demos", "analysis"]
)
def test_learning_and_selection_never_name_the_truth(unit: str) -> None:
    forbidden = {"truth", "GridTruth", "MazeTruth", "TableTruth", "walls", "true_cost", "true_raw"}
    for name, path in modules().items():
        if within(name, unit) and name not in AFTER_LEARNING:
            assert not names_in(path) & forbidden, name


def test_nothing_can_unpickle() -> None:
    for name, path in modules().items():
        assert "pickle" not in path.read_text(), name


# Names -------------------------------------------------------------------------------------------


def test_no_two_modules_share_a_name() -> None:
    """But a page's section and its analysis."""
    by_stem = defaultdict(list)
    for name, path in modules().items():
        if path.stem not in ("__init__", "__main__"):
            by_stem[path.stem].append(name)
    for stem, names in by_stem.items():
        analyses = {f"analysis.{stem}", f"report.sections.{stem}"}
        assert len(names) == 1 or set(names) == analyses, names


def test_names_tell_a_newcomer_the_modules_job() -> None:
    bad = re.compile(r"(^|_)(control|own|single|sides|alike|course|words)(_|$)")
    for name, path in modules().items():
        assert not bad.search(path.stem), name


def test_the_package_lists_its_public_names() -> None:
    assert dir(ringfence) == sorted(ringfence.__all__)
    assert all(hasattr(ringfence, name) for name in dir(ringfence))
    told = ast.walk(ast.parse((SRC / "__init__.py").read_text()))
    typed = {a.name: n.module for n in told if isinstance(n, ast.ImportFrom) for a in n.names}
    homes = {name: f"ringfence.{module}" for name, module in ringfence._HOME.items()}
    assert typed.items() >= homes.items()


# Tests and reading -------------------------------------------------------------------------------


def test_files(path: Path) -> list[Path]:
    """Where a module's tests may be: in the folder that mirrors its own, or in its package's, by
    its name; with its package's before it, where other packages have such a module, too."""
    parts = path.relative_to(SRC).parent.parts
    folders = [TESTS.joinpath(*parts[:n]) for n in range(min(1, len(parts)), len(parts) + 1)]
    package = path.parent.name.removesuffix("s")
    names = (f"test_{path.stem}.py", f"test_{package}_{path.stem}.py")
    return [folder / name for folder in folders for name in names]


test_files.__test__ = False  # type: ignore[attr-defined]


def test_every_module_has_a_test_file_of_its_name_or_a_reason() -> None:
    missing = []
    for path in modules().values():
        name = str(path.relative_to(SRC).with_suffix(""))
        tested = any(file.is_file() for file in test_files(path))
        if path.stem.startswith("__") or tested:
            assert name not in TESTED_ELSEWHERE, f"{name} has a test file, so it needs no reason"
        elif name not in TESTED_ELSEWHERE:
            missing.append(name)
    assert not missing, f"without a test file: {', '.join(missing)}"
    assert all(SRC.joinpath(f"{name}.py").is_file() for name in TESTED_ELSEWHERE)


def test_no_two_places_have_more_than_12_lines_in_common() -> None:
    """Lines of code, without imports, blank lines and white space."""
    most, seen = 12, dict[tuple[str, ...], str]()
    for name, path in modules().items():
        code = [line.strip() for line in path.read_text().splitlines() if line.strip()]
        code = [line for line in code if not line.startswith(("#", "from ", "import "))]
        for n in range(len(code) - most):
            block = tuple(code[n : n + most + 1])
            assert block not in seen, f"{name} and {seen[block]}: {block[0]}"
            seen[block] = name


def test_the_method_is_read_in_three_files_of_900_lines() -> None:
    """The game, the paper's constraint player, and the paper's policy player: ICL on the Ant."""
    files = ("game", "players/regression", "solvers/ppo")
    assert sum(len((SRC / f"{f}.py").read_text().splitlines()) for f in files) <= 900
