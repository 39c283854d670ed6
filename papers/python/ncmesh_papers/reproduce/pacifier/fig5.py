"""Figure 5: round-robin batching."""

from __future__ import annotations

from statistics import fmean

from ncmesh_papers.reproduce.claims import GAIN, over_topologies, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.comparison import RATIO, average_gain, extreme_gain, ratios
from ncmesh_papers.reproduce.pacifier.setting import runs, with_knob
from ncmesh_papers.reproduce.pacifier.tables import per_topology, with_extremes

WHOLE = with_knob(0.0)
BOTH = ("TREE+RL", WHOLE)


def _findings(rows: Rows, _: Scale) -> Findings:
    best = ratios(rows.best(WHOLE), rows.average(WHOLE))
    worst = ratios(rows.worst(WHOLE), rows.worst("TREE+RL"))
    claims = [
        average_gain(rows, WHOLE, "TREE+RL", 1.47),
        within(
            "best receiver over the average of all receivers",
            GAIN,
            1.58,
            fmean(best),
            spread=over_topologies(best),
            relative=RATIO,
        ),
        extreme_gain("least change of the worst receiver", worst, 0.9, min(worst)),
        extreme_gain("largest gain of the worst receiver", worst, 2.46, max(worst)),
    ]
    return Findings(claims, per_topology(rows, BOTH), with_extremes(rows, BOTH))


EXPERIMENT = Experiment(
    name="pacifier-fig5",
    title="Round-robin batching: TREE+RL+RRB against TREE+RL",
    reading=(
        "Knob 0, which IV-B.4 evaluates according to IV-B.5. Error bars reach from the worst to "
        "the best receiver."
    ),
    runs=lambda scale: runs(BOTH, scale),
    findings=_findings,
)
