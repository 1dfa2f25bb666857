"""The settings of PPO, one for all worlds, and the measurements behind values where there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.errors import InvalidInput

#: How far running units (of the critic, of advantages, of raw's usual move) follow each rollout.
UNITS_SHARE = 0.05
#: How fast the actor's rate answers to an update that moved the policy too far, or not.
RATE_STEP, MOST_RATE = 1.5, 3.0
#: Of the actor's rate, at first, where the policy is given: it grows while updates are small.
GIVEN_RATE = 0.1
#: The least noise, and the shares of a training between which it falls to nearly 0. With less a
#: policy moves too slowly to come back from where it was before a limit began to bind. (Limit 0:
#: 15% of a pendulum's episodes violate after 300,000 steps from 0.15 down at once, none from 0.25.)
LEAST_NOISE, NOISY_FROM, NOISY_UNTIL = 0.25, 0.35, 0.8
#: After this share of a training, while limits are kept or nearly, the least and the most noise
#: fall within such a share: to nearly 0, and from what it is at first to this. (The Ant, 0.75 m/s
#: within 20, a million steps: 1404 reward without, 1664 with it.)
QUIET_FROM, QUIET_FOR, LAST_NOISE = 0.4, 0.5, 0.05
#: Of the square of what mean actions are beyond their box.
BEYOND_WEIGHT = 1.0
#: Of a training's steps, that the tests of its policies may take at the end.
TESTED_SHARE = 0.25
#: Trainings of fewer steps make smaller rollouts and learn more from each, or there are too few
#: updates. (A point among obstacles, 300,000 steps, limit 0, two seeds: 42 and 8% of episodes
#: violate after 8 passes, 6 and 2% after 16.)
SHORT, SHORT_ROLLOUT, ROLLOUT, SHORT_PASSES, PASSES = 600_000, 2048, 4096, 16, 8


@dataclass(frozen=True)
class PPOConfig:
    """Simulated worlds: PPO against a multiplier per limit. One setting for all worlds."""

    env_steps: int = 1_000_000  # of a training
    learning_rate: float = 1e-3  # of Adam, at first; it falls linearly to 0
    kl: float = 0.02  # an update that moves the policy further lowers the actor's rate
    value_weight: float = 0.25  # of the critic's loss
    clip: float = 0.2  # of the ratio of probabilities
    gae: float = 0.95  # lambda of the generalised advantages
    discount: float = 0.99  # of rewards and costs
    hidden: tuple[int, ...] = (128, 128)  # units of each layer of actor and critic
    copies: int = 64  # environments that step together
    # A rollout is copies x steps. (The paper's 20,000 steps in 4 passes make 50 updates of a
    # million steps, after which an Ant still stands.)
    steps: int | None = None  # of each copy in a rollout of 4,096 (short trainings: 2,048) steps
    passes: int | None = None  # over a rollout: 8, in short trainings 16
    minibatches: int = 8  # of a pass
    gradient_clip: float = 0.5  # norm, per network (the paper's code: 0.02 for both)
    # At -0.7 the Ant has learned half as much after 100,000 steps, at -1.3 no pendulum swings up.
    initial_log_std: float = -1.0  # of actions, whose box is [-1, 1] to the policy
    last_layer_scale: float = 0.01  # of the actor, at first: means near 0
    entropy_weight: float = 0.0  # of the entropy bonus
    augment: bool = True  # the raw constraint value as the policy's last input
    fixed_lam: float | None = None  # a multiplier that nothing controls
    margin: float = 0.15  # the target is (1 - margin) * limit: it is reached from above
    stop_reward: float | None = None  # stop where a window earns so much within the limit
    window: int = 20  # rollouts that a candidate and stop_reward are judged by
    critic_first: int = 5  # updates of the critic alone, where the start is an actor without one
    start_share: float = 0.0  # of episodes that begin at a demonstration's state
    evaluation_episodes: int = 64  # that a training ends with
    test_episodes: int = 256  # at most, of each policy that may be handed out (0: no test)
    checkpoint_every: int = 50  # updates; a killed training goes on from there
    kind: Literal["ppo"] = "ppo"

    def __post_init__(self) -> None:
        counts = ("env_steps", "copies", "passes", "minibatches", "checkpoint_every", "window")
        least = dict.fromkeys(counts, 1) | {"evaluation_episodes": 2, "test_episodes": 0}
        for name, n in (least | {"steps": 1}).items():
            if (given := getattr(self, name)) is not None and given < n:
                raise InvalidInput(f"PPO: {name} must be at least {n}, got {given}")
        for name in ("learning_rate", "kl", "clip", "gradient_clip"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidInput(f"PPO: {name} must be above 0, got {getattr(self, name)}")
        for name in ("gae", "discount", "start_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"PPO: {name} must be in [0, 1], got {getattr(self, name)}")
        if not 0 <= self.margin < 1:
            raise InvalidInput(f"PPO: margin must be in [0, 1), got {self.margin}")
        if self.rollout % self.minibatches:
            raise InvalidInput(
                f"PPO: a rollout of {self.copies} copies x {self.rollout_steps} steps does not "
                f"divide into {self.minibatches} minibatches"
            )

    @property
    def short(self) -> bool:
        return self.env_steps < SHORT

    @property
    def rollout_steps(self) -> int:
        if self.steps is not None:
            return self.steps
        size = SHORT_ROLLOUT if self.short else ROLLOUT
        return max(1, size // self.copies)

    @property
    def rollout_passes(self) -> int:
        if self.passes is not None:
            return self.passes
        return SHORT_PASSES if self.short else PASSES

    @property
    def rollout(self) -> int:
        return self.copies * self.rollout_steps

    @property
    def updates(self) -> int:
        return max(1, self.env_steps // self.rollout)


def noise_bounds(
    progress: float, calm: float, initial_log_std: float
) -> tuple[np.float32, np.float32]:
    """The least and the most log of actions' standard deviation in a fresh training, after this
    share of it, of which its limits were kept for the share `calm`."""
    loud = min(np.interp(progress, (NOISY_FROM, NOISY_UNTIL), (1, 0)), 1 - calm / QUIET_FOR)
    least = np.log(LEAST_NOISE * max(0.01, loud))
    most = np.interp(calm, (0.0, QUIET_FOR), (initial_log_std, np.log(LAST_NOISE)))
    return np.float32(min(least, most)), np.float32(most)
