from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import own_cart
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.worlds.gym import GymTask
from ringfence.worlds.named import Named, find


def test_a_named_function_is_called_and_described_by_its_name() -> None:
    assert find("own_cart:slowly") is own_cart.slowly
    assert repr(Named("own_cart:slowly")) == "Named(name='own_cart:slowly')"


@pytest.mark.parametrize("name", ["own_cart", ":f", "own_cart:", "../evil:f", "/x:f", "a-b:f"])
def test_only_modules_are_imported(name: str) -> None:
    with pytest.raises(InvalidInput, match='not "module:function"'):
        find(name)


def test_an_error_in_the_users_code_names_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"own_cart:slowly failed: .*own_cart.py, line"):
        Named("own_cart:slowly")(0, 0, [1])


def test_a_task_is_described_the_same_in_every_process() -> None:
    task = GymTask(
        "own_cart:make_cart",
        (Feature("speed", "m/s"),),
        steps=5,
        reward=Named("own_cart:slowly"),
        wrapper=Named("own_cart:half"),
    )
    code = (
        "from ringfence.worlds.gym import GymTask; from ringfence.worlds.named import Named; "
        "from ringfence.objects import Feature; "
        "print(GymTask('own_cart:make_cart', (Feature('speed', 'm/s'),), steps=5, "
        "reward=Named('own_cart:slowly'), wrapper=Named('own_cart:half')))"
    )
    here = Path(own_cart.__file__).parent
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=here, check=True
    )
    assert other.stdout.strip() == repr(task)
