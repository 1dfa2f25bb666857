"""What a stranger's configuration names runs after the user has agreed, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence import consent
from ringfence.errors import InvalidInput
from small_worlds import GYM

STRANGE: dict[str, Any] = {"world": {**GYM, "env": "evil:make"}, "solver": {"kind": "ppo"}}


@pytest.fixture(autouse=True)
def nobody_agreed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(consent, "_agreed", set())
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"world": {"kind": "grid", "map": ["S.0"]}, "solver": {"kind": "soft"}}, []),
        ({"world": {"kind": "tables", "make": "a.b:c"}}, ["[world] make = 'a.b:c'"]),
        ({"world": {"kind": "os:system"}}, ["[world] kind = 'os:system'"]),
        ({"solver": {"kind": "x:"}}, ["[solver] kind = 'x:'"]),
        ({"player": {"kind": "é:y z"}}, ["[player] kind = 'é:y z'"]),
        ({"task": {"spec": {"reward": "m:f"}}}, ["[task] spec reward = 'm:f'"]),
        ({"world": {"kind": "gym", "env": "Ant-v5"}}, ["[world] env = 'Ant-v5'"]),
        (
            {
                "world": {
                    "kind": "gym",
                    "env": "A",
                    "tasks": [{"wrapper": "w:f", "kwargs": {"x": 1}}],
                }
            },
            ["[world] tasks wrapper = 'w:f'", "[world] env = 'A'", "[world] kwargs = {'x': 1}"],
        ),
        (
            {
                "world": {"kind": "python", "description": "functions that make: a"},
                "game": {"x": "m:f"},
            },
            [],
        ),
        ({"world": "m:f"}, ["[world] = 'm:f'"]),
        (
            {"world": {"kind": "gym", "env": "A", "tasks": [{"name": "t", "env": "B"}]}},
            ["[world] env = 'A'", "[world] tasks env = 'B'"],
        ),
    ],
)
def test_code_is_found_wherever_it_is_named(document: dict[str, Any], names: list[str]) -> None:
    assert consent.code_names(document) == names


def test_what_is_strange_is_refused_until_it_is_agreed_to_and_then_known_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidInput, match=r"run: it names code .*'evil:make'.* --trust"):
        consent.require(STRANGE, Path("run"))
    consent.ask(STRANGE, Path("run"), trust=True, question=None)
    monkeypatch.setattr(consent, "_agreed", set())  # another process
    consent.require(STRANGE, Path("run"))
    other = {**STRANGE, "world": {**STRANGE["world"], "kwargs": {"x": 1}}}
    with pytest.raises(InvalidInput, match="kwargs"):
        consent.require(other, Path("run"))


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y", True), (" YES ", True), ("", False), ("no", False)]
)
def test_on_a_terminal_it_is_asked_once(answer: str, agreed: bool) -> None:
    asked: list[str] = []

    def question(text: str) -> str:
        asked.append(text)
        return answer

    for _ in range(2):
        try:
            consent.ask(STRANGE, Path("run"), trust=False, question=question)
        except InvalidInput:
            assert not agreed
    assert len(asked) == (1 if agreed else 2)
    assert "[world] env = 'evil:make'" in asked[0]


def test_marks_are_of_this_key_and_the_key_is_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent.grant(STRANGE)
    cache = tmp_path / "cache"
    assert (cache / "consent.key").stat().st_mode & 0o777 == 0o600
    assert len(list((cache / "trusted").iterdir())) == 1
    monkeypatch.setattr(consent, "_agreed", set())
    (cache / "consent.key").write_bytes(bytes(32))  # a mark that came with a stranger's cache
    assert not consent.is_granted(STRANGE)


@pytest.mark.parametrize("cache", ["", "/dev/null/x"])
def test_without_a_cache_agreement_lasts_for_the_process(
    cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGFENCE_CACHE", cache)
    consent.grant(STRANGE)
    consent.require(STRANGE, Path("run"))
    monkeypatch.setattr(consent, "_agreed", set())
    assert not consent.is_granted(STRANGE)


def test_what_was_agreed_to_elsewhere_holds_for_this_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(consent, "_agreed", set())
    document = {"world": {"kind": "gym", "env": "theirs:make"}}
    with pytest.raises(InvalidInput, match="theirs:make"):
        consent.require(document, tmp_path)
    consent.carry(document)
    consent.require(document, tmp_path)
    monkeypatch.setattr(consent, "_agreed", set())  # another process
    assert not consent.is_granted(document)
