from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from ringfence.constraints.written import nothing_forbidden, parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Problem, TaskDemos
from ringfence.runs.config import make_world, tagged
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds import flights
from ringfence.worlds.flights import FEATURES, Config, FlightEnv, FlightTask, fastest

UP = FlightTask("up", "departure", 1.0, 10.0, 5.0, 300.0, (180.0, 220.0), (180.0, 300.0))
DOWN = FlightTask("down", "arrival", 2.0, 5.0, 20.0, 300.0, (240.0, 300.0), (180.0, 240.0))
BAND = Config(tasks=(UP, DOWN), bottom=4000.0, top=12000.0, height=500.0)
WORLD = flights.make(BAND)
RULE = parse_constraint("speed <= 250 while altitude <= 10000", FEATURES)


def visited(task: int, c: object = None) -> np.ndarray:
    """The best flight's speed in each row of the band, lowest first."""
    constraint = nothing_forbidden(FEATURES) if c is None else c
    solved = SoftSolver(0.0)(Problem(WORLD.tasks[task], constraint, 0.0, None, (0,)))  # type: ignore[arg-type]
    points = solved.behaviour.features
    inside = (points[:, 0] > BAND.bottom) & (points[:, 0] < BAND.top)
    return points[inside][np.argsort(points[inside][:, 0])]


@pytest.mark.parametrize("task", [0, 1])
def test_the_exact_solver_flies_as_the_closed_form_says(task: int) -> None:
    for limit, until in ((np.inf, np.inf), (250.0, 10000.0)):
        c = None if limit == np.inf else RULE
        speed = visited(task, c)[:, 1]
        best = fastest(BAND, BAND.tasks[task], limit, until)
        assert len(speed) == BAND.rows
        # Cells of 5 kt: their middles are within one cell of the real number, after roundings.
        assert np.abs(speed - best).max() <= 1.5 * BAND.width


def test_the_fastest_flight_keeps_rates_bounds_and_the_rule() -> None:
    for task in BAND.tasks:
        speed = fastest(BAND, task, 250.0, 10000.0)
        changes = np.diff(speed if task.kind == "departure" else speed[::-1])
        assert changes.max() <= task.gain + 1e-9
        assert changes.min() >= -task.loss - 1e-9
        assert (speed[BAND.altitudes[1:-1] <= 10000] <= 250).all()
        assert speed.max() > 250


def test_less_time_is_more_reward() -> None:
    slow, fast = (
        WORLD.trajectory("up", np.arange(BAND.rows), np.full(BAND.rows, v)) for v in (200.0, 250.0)
    )
    assert slow.rewards.sum() < fast.rewards.sum() < 0
    # 1 nm at 202.5 kt (the cell's middle) takes 60 / TAS minutes.
    row = WORLD.minutes(UP, np.array([[4250.0, 202.5]]))[0]
    assert slow.rewards[1] == pytest.approx(-row)
    assert slow.rewards[0] == 0


def test_an_arrival_that_is_too_fast_at_the_bottom_goes_around() -> None:
    bottom = WORLD.tasks[1].mdp.reward[WORLD.shape[1] + BAND.cell([230.0, 260.0]), 0]
    assert bottom[1] < -flights.GO_AROUND < bottom[0]


def test_who_was_seen_to_leave_faster_did_not_go_around() -> None:
    flown = WORLD.trajectory("down", np.arange(BAND.rows), np.full(BAND.rows, 262.5))
    assert flown.rewards[-1] == -WORLD.minutes(DOWN, np.array([[4250.0, 262.5]]))[0]
    assert WORLD.left_too_fast("down", flown)


def test_a_flight_that_is_heard_late_passes_no_gate() -> None:
    whole = WORLD.trajectory("down", np.arange(BAND.rows), np.full(BAND.rows, 240.0))
    late = WORLD.trajectory("down", np.arange(10), np.full(10, 240.0))
    assert len(whole) == BAND.rows + 1
    assert len(late) == 10
    assert late.features[0].tolist() == [8750.0, 240.0]
    assert WORLD.check(Demonstrations((TaskDemos("down", (whole, late), ()),), FEATURES, {})) == []


def test_demonstrations_of_other_cells_or_tasks_are_refused() -> None:
    good = WORLD.trajectory("up", np.arange(BAND.rows), np.full(BAND.rows, 240.0))
    bad = replace(good, features=good.features + np.array([0.0, 20.0]))
    given = Demonstrations(
        (TaskDemos("up", (bad,), ()), TaskDemos("side", (good,), ())), FEATURES, {}
    )
    assert [f.severity for f in WORLD.check(given)] == ["error", "error"]


def test_the_world_is_made_again_from_its_settings() -> None:
    again = make_world(tagged("test", "world", asdict(BAND)))
    assert again.tasks[1].mdp.reward.tolist() == WORLD.tasks[1].mdp.reward.tolist()
    with pytest.raises(InvalidInput, match="needs tasks"):
        flights.make(Config())
    with pytest.raises(InvalidInput, match="bottom < top"):
        Config(bottom=5.0, top=5.0)


def test_a_new_task_is_another_flight() -> None:
    task = WORLD.new_task({k: v for k, v in asdict(UP).items() if k != "name"} | {"miles": 3.0})
    inside = slice(WORLD.shape[1], 2 * WORLD.shape[1])  # the band's first row
    assert task.mdp.reward[inside] == pytest.approx(3 * WORLD.tasks[0].mdp.reward[inside])
    with pytest.raises(InvalidInput, match="a new task of flights"):
        WORLD.new_task({"miles": 3.0})


@pytest.mark.parametrize("task", [UP, DOWN])
def test_the_environment_can_fly_the_best_flight_for_the_same_reward(task: FlightTask) -> None:
    best = fastest(BAND, task)
    wanted = best if task.kind == "departure" else best[::-1]
    env = FlightEnv(BAND, task)
    env.reset(seed=0)
    low, high = task.entry
    earned, before, flown, done = 0.0, None, [], False
    for speed in wanted:
        assert not done
        if before is None:
            action = 2 * (speed - low) / (high - low) - 1
        else:
            action = (speed - before) / (task.gain if speed > before else task.loss)
        _, reward, done, _, info = env.step(np.array([action]))
        earned, before = earned + reward, speed
        flown.append(info["speed"])
    assert done
    assert flown == pytest.approx(wanted.tolist())
    points = np.stack([BAND.altitudes[1:-1], best], axis=1)
    assert earned == pytest.approx(-WORLD.minutes(task, points).sum())


def test_the_continuous_form_is_a_world_of_kind_gym() -> None:
    world = make_world(tagged("test", "world", flights.as_environments(BAND)))
    assert [t.name for t in world.tasks] == ["up", "down"]
    assert [f.name for f in world.features] == ["altitude", "speed"]
    assert world.tasks[0].horizon == BAND.rows
