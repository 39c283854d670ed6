"""Figure 3's network, and the size of the slotted experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncmesh_papers.reproduce.experiment import Rows, Scale

# As in III-E.
V = 25
D_MAX = 5

# Link indices of Figure 3.
A_TO_B, B_TO_C, B_TO_D, B_TO_E = 2, 3, 4, 5


def figure_3(
    x: float, stream: Mapping[str, Any], changes: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """Return Figure 3's network with capacity `x` on (b, d) and (b, e), and two Poisson streams."""
    ends = [
        ("1", "a", 1.0),
        ("2", "a", 1.0),
        ("a", "b", 1.0),
        ("b", "c", 1.0),
        ("b", "d", x),
        ("b", "e", x),
    ]
    session = {"arrivals": "poisson", **stream}
    return {
        "links": [{"from": a, "to": b, "capacity": capacity} for a, b, capacity in ends],
        "sessions": [
            {"source": "1", "receivers": ["b", "c"], "tree": [0, A_TO_B, B_TO_C], **session},
            {
                "source": "2",
                "receivers": ["b", "d", "e"],
                "tree": [1, A_TO_B, B_TO_D, B_TO_E],
                **session,
            },
        ],
        "changes": list(changes),
    }


def over_seeds(rows: Rows, *name: object) -> list[Any]:
    """Return the results of the pieces with this name and any seed, by seed."""
    every = rows.computed.items()
    return [found for of, found in every if isinstance(of, tuple) and of[:-1] == name]


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiments, for the page."""
    return {
        "scale": f"{scale.name}: {scale.topologies} seeds or trees, runs of up to {scale.slots} "
        "slots",
        "seeds": f"1 to {scale.topologies}: number k is the seed of all arrivals, and of the tree",
    }
