"""Figure 4: source rate limiting."""

from __future__ import annotations

from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.comparison import (
    average_gain,
    change,
    extreme_gain,
    ratios,
    source_redundancy,
)
from ncmesh_papers.reproduce.pacifier.setting import runs
from ncmesh_papers.reproduce.pacifier.tables import four_panels, per_topology

BOTH = ("TREE", "TREE+RL")


def _findings(rows: Rows, _: Scale) -> Findings:
    gains = ratios(rows.average("TREE+RL"), rows.average("TREE"))
    claims = [
        average_gain(rows, "TREE+RL", "TREE", 1.2),
        extreme_gain("least gain of TREE+RL over TREE", gains, 1.05, min(gains)),
        extreme_gain("largest gain of TREE+RL over TREE", gains, 1.94, max(gains)),
        source_redundancy(rows, "TREE+RL", 5.84),
        change(rows, "TREE+RL", "TREE", "source_redundancy", "source redundancy", 0.48),
        change(rows, "TREE+RL", "TREE", "transmissions", "transmissions", 0.72),
    ]
    return Findings(claims, per_topology(rows, BOTH), four_panels(rows, BOTH))


EXPERIMENT = Experiment(
    name="pacifier-fig4",
    title="Source rate limiting: TREE+RL against TREE",
    reading="Gains and reductions are averages over topologies.",
    runs=lambda scale: runs(BOTH, scale),
    findings=_findings,
)
