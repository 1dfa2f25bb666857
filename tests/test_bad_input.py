"""Wrong environments, features, data, configurations and constraint files, by category.

Each is refused with exit code 2 and a message that names the cause and what to do; none after a
training has begun, and none leaves a run behind.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import own_cart
import ringfence
from ringfence.cli.main import main
from ringfence.constraints.linear import LinearConstraint
from ringfence.objects import Feature
from ringfence.solvers.ppo import PPO


@pytest.fixture(autouse=True)
def no_training(monkeypatch, tmp_path):
    """A training that begins is a failure of its own; "module:function" see the test's folder."""

    def began(*_):
        raise AssertionError("a training began")

    monkeypatch.setattr(PPO, "train", began)
    monkeypatch.chdir(tmp_path)


def edited(*pairs: tuple[str, str]) -> str:
    text = own_cart.TOML
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


ENV = 'env = "own_cart:make_cart"'
FEATURES = 'features = [{ name = "speed", unit = "m/s" }]'

#: (edits of the file, words of the cause, words of the fix)
FILES = {
    "environment": [
        ([(ENV, 'env = "NoSuch-v0"')], "NoSuch", "can't make"),
        ([(ENV, 'env = "nowhere:make"')], "No module named 'nowhere'", "install its package"),
        ([(ENV, 'env = "own_cart:nothing"')], "no attribute 'nothing'", "module:function"),
        ([(ENV, 'env = "own_cart:LIMIT"')], "not a function", "float"),
        ([(ENV, 'env = "own_cart:arrays"')], "not a gymnasium.Env", "compatibility wrapper"),
        ([(ENV, ENV + "\nkwargs = { color = 1 }")], "unexpected keyword argument", "color"),
        ([(ENV, 'env = "own_cart:Buttons"')], "actions must be a flat Box", "put a wrapper"),
        ([("steps = 50", "")], "no registered episode length", "in a file: steps"),
        ([(ENV, "")], "my.toml: [world] env: missing", ""),
    ],
    "features": [
        ([(FEATURES, "")], "declare at least one", "full_state = true"),
        (
            [('name = "speed"', 'name = "height"'), ('"speed <= ?"', '"height <= ?"')],
            "no info key 'height'",
            "after a step it has speed",
        ),
        ([('unit = "m/s"', 'unit = "m/s", column = 7')], "column 7", "columns 0 to 0"),
        ([('unit = "m/s"', 'unit = "m/s", column = 0, info = "v"')], "info or column", "not both"),
        ([(FEATURES, FEATURES + '\nfeature_function = "own_cart:slowly"')], "shape", "(1, 1)"),
        ([(FEATURES, FEATURES + '\nfeature_function = "own_cart:none"')], "can't find", "module:"),
        ([('"speed <= ?"', '"height <= ?"')], "no feature 'height'", "features are speed"),
        ([('"speed <= ?"', '"speed <= 1"')], "nothing in it is to be learned", "put ?"),
    ],
    "configuration": [
        ([("[game]", "[games]")], "my.toml: 'games' is unknown", "there are schema, command, seed"),
        ([("[world]", "seed = -1\n[world]")], "my.toml: seed: -1", "at least 0"),
        ([("[world]", "seed = true\n[world]")], "my.toml: seed: True", "at least 0"),
        ([("[world]", "schema = 1\n[world]")], "schema 1, this version reads 2", "leave it out"),
        ([("iterations = 1", "iteration = 1")], "[game] iteration: unknown", "iterations"),
        ([("iterations = 1", "iterations = 0")], "my.toml: [game] iterations: 0", "at least 1"),
        ([("iterations = 1", 'iterations = "1"')], '[game] iterations: "1" is not', "an integer"),
        ([('kind = "payoff"', 'kind = "oracle"')], "[player] kind: 'oracle'", "payoff, regression"),
        ([("expert_budget = 0.5", "expert_budget = -1.0")], "at least 0", "-1"),
        ([('kind = "gym"', 'kind = "moon"')], "[world] kind: 'moon'", "grid, gym"),
        ([('kind = "gym"', "")], "my.toml: [world] kind is missing", "grid, gym"),
        ([("minibatches = 2", "minibatches = 3")], "does not divide", "3 minibatches"),
        ([("steps = 16", "steps = 0")], "steps must be at least 1", "got 0"),
        ([("hidden = [16]", 'hidden = "16"')], '[solver] hidden: "16"', "is not an array"),
        ([("[opening]", "[opening")], "my.toml: not valid TOML", "line"),
        ([('path = "logs.npz"', "heldout = 1.5")], "[demos] heldout: 1.5", "between 0 and 1"),
        ([("steps = 200", "steps = -1")], "[opening] steps: -1", 'at least 1, or kind = "none"'),
        ([("steps = 200", "batch = 0")], "[opening] batch: 0", "at least 1"),
        ([("steps = 200", "learning_rate = 0.0")], "[opening] learning_rate: 0.0", "above 0"),
        ([("steps = 200", "learning_rate = nan")], "[opening] learning_rate: nan", "give a number"),
        (
            [("hidden = [16]", "learning_rate = inf")],
            "[solver] learning_rate: inf",
            "give a number",
        ),
        ([("buffer = 0.0", "epsilon = -inf")], "[game] epsilon: -inf", "give a number"),
        ([(ENV, ENV + "\nkwargs = { push = nan }")], "[world] kwargs push: nan", "give a number"),
        ([("[world]", "analysis = 3\n[world]")], "[analysis] must be a table", "not 3"),
        ([("probe = false", 'kind = "none"\ninitial = "clone"')], "initial", 'else use "free"'),
        ([("buffer = 0.0", 'method = "best"')], '[game] method: "best"', "'mt-icl' or 'icl'"),
    ],
    "tasks": [
        (
            [(ENV, ENV + '\ntasks = [{ name = "a" }, { name = "b", kwargs = { push = 0.1 } }]')],
            "don't share their dynamics",
            "differ in reward, goal and start only",
        ),
        (
            [(ENV, ENV + '\ntasks = [{ name = "a" }, { name = "b" }]')],
            "task 'b' has no demonstrations",
            "paths",
        ),
        (
            [(ENV, ENV + '\ntasks = [{ name = "a", reward = "own_cart:slowly" }]')],
            "the reward is",
            "give the task the demonstrators' reward",
        ),
        (
            [(ENV, ENV + '\ntasks = [{ name = "a", wrapper = "own_cart:slowly" }]')],
            "own_cart:slowly failed: TypeError",
            "mend it",
        ),
    ],
}
GOOD = own_cart.arrays()
N, EPISODES = len(GOOD["actions"]), len(GOOD["lengths"])


def changed(name: str, at: tuple[int, ...], value: float) -> np.ndarray:
    array = GOOD[name].copy()
    array[at] = value
    return array


#: (arrays in the place of the good ones, words of the cause, words of the fix)
DATASETS = [
    ({"actions": None}, "no array 'actions'", "needs lengths"),
    ({"colour": np.zeros(N)}, "unknown array 'colour'", "has lengths, observations"),
    ({"lengths": np.zeros(0, int)}, "no episode in it", "logs.npz"),
    ({"lengths": np.full(EPISODES, 49)}, "lengths sum to 392 steps", "need 400 rows"),
    ({"lengths": np.zeros(EPISODES, int)}, "at least 1 step", "drop empty episodes"),
    ({"lengths": np.full(EPISODES, 50.0)}, "whole numbers", "float64"),
    ({"lengths": np.array([400]), "observations": GOOD["observations"][:401],
      "terminated": np.array([False]), "seeds": None}, "1 episodes", "at least 2"),
    ({"actions": np.array([object()] * N)}, "plain arrays (ValueError: ", "np.savez"),
    ({"actions": np.zeros((N, 2))}, "actions have shape (50, 2)", "(50, 1)"),
    ({"observations": np.zeros((N + EPISODES, 3))}, "observations have shape", "(51, 1)"),
    ({"rewards": changed("rewards", (60,), np.nan)}, "rewards are not finite", "(10,)"),
    ({"actions": changed("actions", (3, 0), 4.0)}, "outside its box", "that was applied"),
    ({"rewards": GOOD["rewards"] + 1}, "the reward is", "leave rewards out"),
    ({"features": np.zeros((N, 1)), "info/speed": GOOD["rewards"]}, "computed it is", "leave"),
    ({"info/speed": None, "seeds": None}, "no values for the feature 'speed'", "record it"),
    ({"rewards": None, "seeds": None}, "no rewards", "seeds of the resets"),
    ({"info/speed": np.full(N, 0.5), "seeds": None}, "0.5 in every step", "leave it out"),
    ({"info/speed": 3.6 * GOOD["info/speed"]}, "in a replay it is", "convert the log"),
    ({"features": 3.6 * GOOD["info/speed"][:, None], "info/speed": None}, "in a replay", "convert"),
    ({"info/speed": None, "seeds": np.arange(EPISODES) + 100},
     "its replay goes another way: observation 0 differs", "record it"),
]  # fmt: skip


def refused(capsys, tmp_path, cause: str, fix: str) -> None:
    for command in (["demos", "check", "my.toml"], ["learn", "my.toml", "--out", "run"]):
        assert main(command) == 2
        said = capsys.readouterr()
        assert cause in said.out + said.err
        assert fix in said.out + said.err
        assert "Traceback" not in said.err
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("edits", "cause", "fix"),
    [case for cases in FILES.values() for case in cases],
    ids=[f"{kind}: {c[1]}" for kind, cases in FILES.items() for c in cases],
)
def test_wrong_files_are_refused_before_any_training(edits, cause, fix, tmp_path, capsys):
    own_cart.write(tmp_path, edited(*edits))
    refused(capsys, tmp_path, cause, fix)


@pytest.mark.parametrize(("arrays", "cause", "fix"), DATASETS, ids=[c[1] for c in DATASETS])
def test_wrong_datasets_are_refused_before_any_training(arrays, cause, fix, tmp_path, capsys):
    own_cart.write(tmp_path, **arrays)
    refused(capsys, tmp_path, cause, fix)


@pytest.mark.parametrize(
    ("path", "cause"),
    [("nothing.npz", "no such file"), ("my.toml", "not this"), ("empty", "Minari dataset")],
)
def test_demonstrations_that_are_not_there_are_refused(path, cause, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    own_cart.write(tmp_path, edited(('path = "logs.npz"', f'path = "{path}"')))
    refused(capsys, tmp_path, cause, "")


# Constraint files --------------------------------------------------------------------------------


def altered(folder, change) -> None:
    path = folder / "constraint.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


CONSTRAINTS = [
    (lambda f: (f / "constraint.json").unlink(), "no such file", "a folder with"),
    (lambda f: (f / "weights.safetensors").write_bytes(b"x"), "SHA-256 differs", "restore both"),
    (lambda f: altered(f, lambda d: d.update(delta=9.0)), "changed after", "save the constraint"),
    (lambda f: altered(f, lambda d: d.update(schema=2)), "schema 2", "update ringfence"),
    (lambda f: (f / "constraint.json").write_text("{"), "not valid JSON", "save the constraint"),
]


@pytest.mark.parametrize(("harm", "cause", "fix"), CONSTRAINTS, ids=[c[1] for c in CONSTRAINTS])
def test_wrong_constraint_files_are_refused_before_any_training(harm, cause, fix, tmp_path, capsys):
    own_cart.write(tmp_path)
    speed = LinearConstraint((Feature("speed", "m/s"),), np.ones(1), 0.7)
    ringfence.save(speed, tmp_path / "c", delta=0.5, provenance={})
    harm(tmp_path / "c")
    assert main(["transfer", "c", "--task", "my.toml", "--out", "out"]) == 2
    said = capsys.readouterr().err
    assert cause in said
    assert fix in said
    assert not (tmp_path / "out").exists()


def test_a_constraint_on_other_features_is_refused(tmp_path, capsys):
    own_cart.write(tmp_path)
    height = LinearConstraint((Feature("height", "m"),), np.ones(1), 0.7)
    ringfence.save(height, tmp_path / "c", delta=0.5, provenance={})
    assert main(["transfer", "c", "--task", "my.toml", "--out", "out"]) == 2
    assert "c: a constraint on height, this world has speed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_constraint_in_another_unit_is_refused(tmp_path, capsys):
    own_cart.write(tmp_path)
    fast = LinearConstraint((Feature("speed", "km/h"),), np.ones(1), 2.7)
    ringfence.save(fast, tmp_path / "c", delta=0.5, provenance={})
    assert main(["transfer", "c", "--task", "my.toml", "--out", "out"]) == 2
    said = capsys.readouterr().err
    assert "c: it has 'speed' in km/h, this world in m/s; bring both to one unit" in said
    assert not (tmp_path / "out").exists()
