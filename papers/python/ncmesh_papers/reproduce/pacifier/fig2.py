"""Figure 2: the effect of MORE's pruning threshold."""

from __future__ import annotations

from statistics import fmean

from matplotlib.figure import Figure

from ncmesh_papers.reproduce.claims import NUMBER, SHARE, Claim, over_topologies, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.comparison import RATIO, SOME_OF_TEN
from ncmesh_papers.reproduce.pacifier.setting import runs, threshold
from ncmesh_papers.reproduce.pacifier.tables import per_topology
from ncmesh_papers.reproduce.plots import bars, kbit, panels

# The variants and their names in this figure.
LABELS = {"MORE_orig": "MORE_orig", "MORE": "MORE_new"}


def _claims(rows: Rows, best: list[float]) -> list[Claim]:
    forwarders = rows.of("MORE_orig", "forwarders")
    worst = rows.worst("MORE_orig")
    return [
        within(
            "forwarders at a threshold of 0.1",
            NUMBER,
            11.2,
            fmean(forwarders),
            spread=over_topologies(forwarders),
            relative=RATIO,
        ),
        within(
            "topologies in which a threshold of 0.1 cuts a receiver off",
            SHARE,
            0.8,
            sum(bps == 0 for bps in worst) / len(worst),
            absolute=SOME_OF_TEN,
        ),
        within("largest of the best thresholds", NUMBER, 0.1, max(best), absolute=0.01),
        within(
            "least of the best thresholds",
            NUMBER,
            0.03,
            min(best),
            spread=over_topologies(best),
            absolute=0.02,
        ),
    ]


def _figure(rows: Rows, best: list[float]) -> Figure:
    figure, (left, right) = panels(2)
    forwarders = {label: rows.of(name, "forwarders") for name, label in LABELS.items()}
    bars(left, rows.topologies, forwarders, "forwarders")
    for place, used in enumerate(best):
        left.annotate(f"{used:.2f}", (place + 0.2, forwarders["MORE_new"][place]), ha="center")
    averages = {label: kbit(rows.average(name)) for name, label in LABELS.items()}
    # A batch that one receiver never gets holds up all receivers.
    pairs = zip(averages["MORE_orig"], rows.worst("MORE_orig"), strict=True)
    averages["MORE_orig"] = [average if worst else 0.0 for average, worst in pairs]
    bars(right, rows.topologies, averages, "average throughput, kbit/s")
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    best = [threshold(k, scale) for k in scale.indices]
    table = per_topology(rows, list(LABELS))
    for row, used in zip(table, [0.1] * len(best) + best, strict=True):
        row["threshold"] = used
    return Findings(_claims(rows, best), table, _figure(rows, best))


EXPERIMENT = Experiment(
    name="pacifier-fig2",
    title="MORE's pruning threshold: forwarders and throughput",
    reading=(
        "A receiver is cut off if it does not have the file at the time limit. The best threshold "
        "is the largest, in steps of 0.01 down from 0.1, that cuts no receiver off."
    ),
    runs=lambda scale: runs(LABELS, scale),
    findings=_findings,
)
