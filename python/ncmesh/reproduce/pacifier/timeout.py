"""Not a figure of the paper: how much of source rate limiting is the time-out of III-B."""

from __future__ import annotations

from ncmesh.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh.reproduce.pacifier.comparison import average_gain, change, source_redundancy
from ncmesh.reproduce.pacifier.setting import runs
from ncmesh.reproduce.pacifier.tables import four_panels, per_topology

SHORT = ("TREE+RL, short", "Pacifier, short")
ALL = ("MORE", "TREE", *SHORT)


def _findings(rows: Rows, _: Scale) -> Findings:
    limited, whole = SHORT
    claims = [
        average_gain(rows, limited, "TREE", 1.2),
        source_redundancy(rows, limited, 5.84),
        change(rows, limited, "TREE", "transmissions", "transmissions", 0.72),
        average_gain(rows, whole, limited, 1.6),
        average_gain(rows, whole, "TREE", 1.9),
        average_gain(rows, whole, "MORE", 2.71),
    ]
    return Findings(claims, per_topology(rows, ALL), four_panels(rows, ALL))


EXPERIMENT = Experiment(
    name="pacifier-timeout",
    title="Rate limiting with a time-out of an eighth",
    reading="As figures 4 and 7, but the source waits for a child 1 instead of 8 packet times for each "
    "packet that its children owe (III-B).",
    runs=lambda scale: runs(ALL, scale),
    findings=_findings,
)
