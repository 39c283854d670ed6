#!/usr/bin/env python3
"""
Makes the movement of the scenarios `walkers`, `cars` and `patrol`.

Usage: movement.py [DIRECTORY]

Each file has another format: BonnMotion's movements, SUMO's floating car data, ns-2's movement
files. They are written here, from a seed; nothing in them is measured.

- `walkers.movements`: eight people in a park of 300 m by 200 m. Each walks at 1.4 m/s to a random
  place, rests up to 20 s, and goes on (random waypoint, Johnson and Maltz, 1996). Two stand.
- `cars.fcd.xml`: six cars on a straight road, one behind the other; the first is the slowest, so
  that the others come nearer.
- `patrol.tcl`: four posts in a row, and one who walks along them and back.
"""

import math
import random
import sys
from pathlib import Path

SECONDS = 120


def walkers() -> str:
    """Return the paths of the people in the park, each in a line."""
    draw = random.Random(7)
    lines = ["# Made by movement.py. A line for each node: time (s), x, y (m), and so on."]
    for person in range(8):
        # The first two stand at the ends of the park, so that there is somebody to send to.
        x, y = (20.0 + 260 * person, 100.0) if person < 2 else (draw.uniform(0, 300), 100.0)
        time, points = 0.0, [(0.0, x, y)]
        while person >= 2 and time < SECONDS:
            to = draw.uniform(0, 300), draw.uniform(0, 200)
            time += math.dist((x, y), to) / 1.4
            x, y = to
            points.append((time, x, y))
            time += draw.uniform(1, 20)
            points.append((time, x, y))
        lines.append(" ".join(f"{number:.2f}" for point in points for number in point))
    return "\n".join(lines) + "\n"


def cars() -> str:
    """Return the positions of the cars every five seconds."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<!-- Made by movement.py. -->"]
    lines.append("<fcd-export>")
    for time in range(0, SECONDS + 1, 5):
        lines.append(f'  <timestep time="{time:.2f}">')
        for car in range(6):
            speed = 8 + 0.5 * car
            x = 150 * (5 - car) + speed * time
            lines.append(
                f'    <vehicle id="car{car}" x="{x:.2f}" y="{-4.8 - 3.2 * (car % 2):.2f}" '
                f'speed="{speed:.2f}"/>'
            )
        lines.append("  </timestep>")
    lines.append("</fcd-export>")
    return "\n".join(lines) + "\n"


def patrol() -> str:
    """Return the posts, and the orders of the one who walks."""
    lines = ["# Made by movement.py."]
    for node in range(5):
        x = 150 * node if node < 4 else 30
        lines += [f"$node_({node}) set X_ {x:.1f}", f"$node_({node}) set Y_ 0.0"]
        lines.append(f"$node_({node}) set Z_ 0.0")
    lines.append('$ns_ at 5.0 "$node_(4) setdest 450.0 40.0 8.0"')
    lines.append('$ns_ at 70.0 "$node_(4) setdest 30.0 40.0 8.0"')
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the three files."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    (directory / "walkers.movements").write_text(walkers())
    (directory / "cars.fcd.xml").write_text(cars())
    (directory / "patrol.tcl").write_text(patrol())


if __name__ == "__main__":
    main()
