"""Figure 2: what MORE's pruning threshold does."""

from __future__ import annotations

from statistics import fmean

import ncmesh
from ncmesh.reproduce.claims import NUMBER, SHARE, over_topologies, within
from ncmesh.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh.reproduce.pacifier.comparison import RATIO, SOME_OF_TEN
from ncmesh.reproduce.pacifier.setting import MIN_DELIVERY, mesh, runs
from ncmesh.reproduce.plots import bars, kbit, panels

BOTH = ("MORE_orig", "MORE")


def thresholds(scale: Scale) -> list[float]:
    """Of each topology the largest threshold up to 0.1 by which nobody is cut off."""
    found = []
    for k in scale.indices:
        table = mesh(k, scale).table
        loss = ncmesh.loss_matrix(table, k)
        loss[loss > 1 - MIN_DELIVERY] = 1.0
        traffic = table["traffic"]
        source, *receivers = (int(name[1:]) - 1 for name in (traffic["from"], *traffic["to"]))
        found.append(min(0.1, ncmesh.more.largest_threshold(loss, source, receivers)))
    return found


def _findings(rows: Rows, scale: Scale) -> Findings:
    forwarders = {name: rows.of(name, "forwarders") for name in BOTH}
    worst = rows.worst("MORE_orig")
    best = thresholds(scale)
    claims = [
        within(
            "forwarders at a threshold of 0.1",
            NUMBER,
            11.2,
            fmean(forwarders["MORE_orig"]),
            spread=over_topologies(forwarders["MORE_orig"]),
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
    table = [
        {
            "topology": k,
            "forwarders_orig": forwarders["MORE_orig"][place],
            "forwarders_new": forwarders["MORE"][place],
            "threshold_new": best[place],
            "average_bps_orig": rows.average("MORE_orig")[place],
            "worst_bps_orig": worst[place],
            "average_bps_new": rows.average("MORE")[place],
        }
        for place, k in enumerate(rows.topologies)
    ]
    figure, (left, right) = panels(2)
    named = {"MORE_orig": "MORE_orig", "MORE": "MORE_new"}
    bars(left, rows.topologies, {named[n]: forwarders[n] for n in BOTH}, "forwarders")
    for place, threshold in enumerate(best):
        left.annotate(f"{threshold:.2f}", (place + 0.2, forwarders["MORE"][place]), ha="center")
    # A batch that one receiver never gets holds up all.
    pairs = zip(rows.average("MORE_orig"), worst, strict=True)
    throughput = {"MORE_orig": [average if least else 0.0 for average, least in pairs]}
    throughput["MORE_new"] = rows.average("MORE")
    bars(right, rows.topologies, {n: kbit(v) for n, v in throughput.items()}, "kbit/s")
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="pacifier-fig2",
    title="MORE's pruning threshold: forwarders and throughput",
    reading=(
        "A receiver is cut off if it has not got the file when a run is ended for taking too long. The "
        "best threshold is the largest, up to 0.1, by which no receiver's belt is cut; the paper lowers "
        "it in steps of 0.01, we compute it."
    ),
    runs=lambda scale: runs(BOTH, scale),
    findings=_findings,
)
