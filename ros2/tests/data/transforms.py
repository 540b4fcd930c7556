"""Makes transforms.csv, lookups.csv and covariances.csv: transforms over time, and what SciPy says of
them. Needs numpy and scipy (made with 2.4.6 and 1.17.1). `python3 transforms.py` rewrites the files; the
tests read the files only.

Between samples: the translation linearly, the rotation by scipy.spatial.transform.Slerp. Chains are
products of 4 x 4 matrices.
"""

import csv
import pathlib

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(20261121)
START = 1_780_141_325_000_000_000
NANOS = 1_000_000_000

# child: (parent, seconds between samples, how far it moves, how far it turns); None: static
TREE = {
    "odom": ("map", 1.0, 0.1, 0.05),
    "base_link": ("odom", 0.2, 0.3, 0.4),
    "arm": ("base_link", 0.25, 0.2, 2.5),
    "gripper": ("arm", 0.4, 0.05, 1.5),
    "camera": ("base_link", None, 0.5, 3.0),
    "beacon": ("map", None, 40.0, 3.0),
}


def samples(period, metres, radians):
    """Stamps in nanoseconds, positions, rotations: a random walk."""
    if period is None:
        return [0], RNG.normal(0, metres, (1, 3)), Rotation.from_rotvec(RNG.normal(0, radians, (1, 3)))
    count = int(8 / period) + 1
    jitter = RNG.integers(-NANOS // 50, NANOS // 50, count)
    stamps = [START + int(i * period * NANOS) + int(j) for i, j in enumerate(jitter)]
    positions = RNG.normal(0, metres, (count, 3)).cumsum(axis=0)
    turn, turns = Rotation.random(random_state=int(RNG.integers(1 << 31))), []
    for step in RNG.normal(0, radians / 2, (count, 3)):
        turn = turn * Rotation.from_rotvec(step)
        turns.append(turn)
    return stamps, positions, Rotation.concatenate(turns)


EDGES = {child: (edge[0], *samples(*edge[1:])) for child, edge in TREE.items()}


def matrix(position, rotation):
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = rotation.as_matrix(), position
    return found


def at(child, stamp):
    _, stamps, positions, rotations = EDGES[child]
    if len(stamps) == 1:
        return matrix(positions[0], rotations[0])
    times = (np.array(stamps) - START) / NANOS
    seconds = (stamp - START) / NANOS
    position = [np.interp(seconds, times, positions[:, axis]) for axis in range(3)]
    return matrix(position, Slerp(times, rotations)([seconds])[0])


def in_map(frame, stamp):
    if frame == "map":
        return np.eye(4)
    return in_map(EDGES[frame][0], stamp) @ at(frame, stamp)


def row(found):
    return [*found[:3, 3], *Rotation.from_matrix(found[:3, :3]).as_quat()]


def write(name, head, rows):
    with open(HERE / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([[x if isinstance(x, (str, int)) else repr(float(x)) for x in r] for r in rows])


POSE = ["x", "y", "z", "qx", "qy", "qz", "qw"]
write(
    "transforms.csv",
    ["parent", "child", "static", "nanos", *POSE],
    [
        [parent, child, int(len(stamps) == 1), stamp, *position, *rotation.as_quat()]
        for child, (parent, stamps, positions, rotations) in EDGES.items()
        for stamp, position, rotation in zip(stamps, positions, rotations)
    ],
)

asked = []
for _ in range(150):
    target, source = RNG.choice(["map", *TREE], 2, replace=False)
    stamp = START + int(RNG.integers(NANOS // 20, 75 * NANOS // 10))
    found = np.linalg.inv(in_map(target, stamp)) @ in_map(source, stamp)
    asked.append([str(target), str(source), stamp, *row(found)])
write("lookups.csv", ["target", "source", "nanos", *POSE], asked)

covariances = []
for _ in range(5):
    half = RNG.normal(0, 1, (6, 6))
    sigma = half @ half.T
    turn = Rotation.random(random_state=int(RNG.integers(1 << 31)))
    both = np.kron(np.eye(2), turn.as_matrix())
    covariances.append([*turn.as_quat(), *sigma.ravel(), *(both @ sigma @ both.T).ravel()])
names = [f"{when}{i}" for when in ("before", "after") for i in range(36)]
write("covariances.csv", ["qx", "qy", "qz", "qw", *names], covariances)
