"""The Ant's symmetries: one policy that walks along +x walks along any direction.

The floor looks the same from every side, so the world may be turned under the Ant by any angle;
and the Ant's body has four equal legs, so that after a quarter turn only the names of its legs
have changed. Both are symmetries of the dynamics: what the +x policy does in the turned and
renamed view is right in the real one.

Observations [n, 27] are Ant-v5's: z, quaternion (4), joints (8), linear velocity in the world (3),
angular velocity in the body (3), joint velocities (8). Actions [n, 8] are torques.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array

#: Renamed by one quarter turn, the joint j is the old joint JOINTS[j], with this sign (two of the
#: ankles bend the other way). Torques have the same order of legs; there the hips come first.
JOINTS = np.array([2, 3, 4, 5, 6, 7, 0, 1])
JOINT_SIGNS = np.array([1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
TORQUE_SIGNS = np.array([1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0])

QUATERNION, ANGLES = slice(1, 5), slice(5, 13)
VELOCITY, SPIN, RATES = slice(13, 15), slice(16, 18), slice(19, 27)


def _powers(order: NDArray[np.intp], signs: Array) -> Array:
    """The signed permutation's matrix M with M @ v = signs * v[order], and its powers 0..3."""
    once = signs[:, None] * np.eye(len(order))[order]
    return np.stack([np.linalg.matrix_power(once, k) for k in range(4)])


JOINT_TURNS = _powers(JOINTS, JOINT_SIGNS)
TORQUE_TURNS = _powers(JOINTS, TORQUE_SIGNS)


def view(observations: Array, direction: Array, quarters: NDArray[np.intp]) -> Array:
    """What an Ant sees if `direction` (radians, [n]) is called +x and its legs are renamed.

    quarters [n] in 0..3: by how many quarter turns the legs are renamed.
    """
    seen, renamed = observations.copy(), np.asarray(0.5 * np.pi * quarters, np.float64)
    turned = product(_about_z(-direction), observations[:, QUATERNION])
    q = product(turned, _about_z(renamed))
    # q and -q are one rotation; the policy knows those near (1, 0, 0, 0).
    seen[:, QUATERNION] = np.where(q[:, :1] < 0, -q, q)
    seen[:, VELOCITY] = _turn(observations[:, VELOCITY], -direction)
    seen[:, SPIN] = _turn(observations[:, SPIN], -renamed)
    for part in (ANGLES, RATES):
        seen[:, part] = np.einsum("nij,nj->ni", JOINT_TURNS[quarters], observations[:, part])
    return seen


def torques(actions: NDArray[np.floating], quarters: NDArray[np.intp]) -> Array:
    """The real torques [n, 8] for actions chosen in the view with renamed legs."""
    return np.asarray(np.einsum("nji,nj->ni", TORQUE_TURNS[quarters], actions), np.float64)


def yaw(observations: Array) -> Array:
    """The heading of the torso [n], in radians from +x."""
    w, x, y, z = observations[:, QUATERNION].T
    return np.asarray(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def upright(observations: Array) -> Array:
    """The cosine of the torso's tilt [n]: below 0 the Ant lies on its back."""
    _, x, y, _ = observations[:, QUATERNION].T
    return np.asarray(1 - 2 * (x * x + y * y))


def nearest_quarters(observations: Array, direction: Array) -> NDArray[np.intp]:
    """The renaming after which the torso's heading is nearest to `direction`, [n]."""
    return np.asarray(np.rint((direction - yaw(observations)) / (0.5 * np.pi)) % 4, np.intp)


def product(p: Array, q: Array) -> Array:
    """Quaternions p q, [n, 4] each."""
    a, b, c, d = p.T
    w, x, y, z = q.T
    return np.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ],
        axis=1,
    )


def _about_z(angle: Array) -> Array:
    half = 0.5 * angle
    zero = np.zeros_like(half)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], axis=1)


def _turn(vectors: Array, angle: Array) -> Array:
    """Vectors [n, 2] turned by angle [n]."""
    cos, sin = np.cos(angle), np.sin(angle)
    x, y = vectors.T
    return np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)
