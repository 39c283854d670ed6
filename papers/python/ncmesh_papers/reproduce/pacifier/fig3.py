"""Figure 3: TREE against MORE."""

from __future__ import annotations

from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.comparison import (
    average_gain,
    change,
    extreme_gain,
    ratios,
    share_higher,
    source_redundancy,
)
from ncmesh_papers.reproduce.pacifier.setting import runs
from ncmesh_papers.reproduce.pacifier.tables import four_panels, per_topology

BOTH = ("MORE", "TREE")


def _findings(rows: Rows, _: Scale) -> Findings:
    gains = ratios(rows.average("TREE"), rows.average("MORE"))
    claims = [
        share_higher(rows, "TREE", "MORE", 0.8),
        average_gain(rows, "TREE", "MORE", 1.42),
        extreme_gain("largest gain of TREE over MORE", gains, 2.99, max(gains)),
        change(rows, "TREE", "MORE", "forwarders", "forwarders", 0.64),
        change(rows, "TREE", "MORE", "transmissions", "transmissions", 0.56),
        source_redundancy(rows, "MORE", 17.0),
        source_redundancy(rows, "TREE", 12.15),
    ]
    return Findings(claims, per_topology(rows, BOTH), four_panels(rows, BOTH))


EXPERIMENT = Experiment(
    name="pacifier-fig3",
    title="Tree-based opportunistic routing: TREE against MORE",
    reading=(
        "Gains and reductions are averages over topologies. TREE has the credits of knob 1: every "
        "child gets each packet. Forwarders are all nodes that were ever in a plan."
    ),
    runs=lambda scale: runs(BOTH, scale),
    findings=_findings,
)
