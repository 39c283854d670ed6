"""Figure 8: an unplanned mesh, one flow over two to five hops."""

from __future__ import annotations

from itertools import pairwise

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import GAIN, Claim, holds, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.tcp.drawing import against_hold_time
from ncmesh_papers.reproduce.tcp.fig6 import LAB_HELD, RATIO, in_lab_too, lab_table, lab_too
from ncmesh_papers.reproduce.tcp.metrics import PERCENT, Effect, effect, table_row
from ncmesh_papers.reproduce.tcp.setting import (
    ADAPTIVE,
    BASELINE,
    HOLD_TIMES_MS,
    held,
    one_of,
    only_held,
    parts,
    runs,
    size,
)

HOPS = (2, 3, 4, 5)
NETWORKS = {f"{n} hops": [one_of(n, k) for k in range(1, len(parts(n)) + 1)] for n in HOPS}
TREATMENTS = (
    BASELINE,
    *(held(ms) for ms in HOLD_TIMES_MS),
    *(only_held(ms) for ms in HOLD_TIMES_MS),
    ADAPTIVE,
)
LAB_TREATMENTS = (BASELINE, LAB_HELD)
# The text: "the maximum throughput gain ranges from 40% to 85% with respect to path length".
SOME = (1.4, 1.85)


def _claims(effects: dict[str, list[Effect]]) -> list[Claim]:
    claims = []
    for network, of in effects.items():
        best = max(of, key=lambda e: e.gain)
        text = f"best gain, {network}"
        claims.append(within(text, GAIN, SOME, best.speedup, spread=best.spread, relative=RATIO))
    for network, of in effects.items():
        best_ms = HOLD_TIMES_MS[max(range(len(of)), key=lambda i: of[i].gain)]
        inside = HOLD_TIMES_MS[0] < best_ms < HOLD_TIMES_MS[-1]
        claims.append(
            holds(f"a hold time between is best, {network}", f"{best_ms:g} ms is", inside)
        )
        falls = all(a.loss_reduction <= b.loss_reduction for a, b in pairwise(of))
        ours = ", ".join(PERCENT.write(e.loss_reduction) for e in of)
        claims.append(holds(f"loss falls with the hold time, {network}", ours, falls))
        rises = all(a.rtt_increase <= b.rtt_increase for a, b in pairwise(of))
        ours = ", ".join(PERCENT.write(e.rtt_increase) for e in of)
        claims.append(holds(f"round-trip time rises with the hold time, {network}", ours, rises))
    return claims


def _runs(scale: Scale) -> dict[Case, Run]:
    return runs(NETWORKS, TREATMENTS, scale) | lab_too(NETWORKS, LAB_TREATMENTS, scale)


def _findings(rows: Rows, scale: Scale) -> Findings:
    def by_hold_time(network: str, coded: bool) -> list[Effect]:
        treatment = held if coded else only_held
        return [effect(rows, network, treatment(ms).name) for ms in HOLD_TIMES_MS]

    effects = {network: by_hold_time(network, True) for network in NETWORKS}
    waiting = {network: by_hold_time(network, False) for network in NETWORKS}
    table = [table_row(rows, network, t.name) for network in NETWORKS for t in TREATMENTS]
    claims = _claims(effects)
    if scale.lab:
        claims += in_lab_too(rows, dict.fromkeys(NETWORKS, SOME))
        table += lab_table(rows, NETWORKS, LAB_TREATMENTS)
    return Findings(claims, table, against_hold_time(HOLD_TIMES_MS, effects, waiting))


EXPERIMENT = Experiment(
    name="tcp-fig8",
    title="gain, losses and round-trip times by hold time and hops, mesh of 20",
    reading=(
        "The paper chose pairs of nodes arbitrarily. Here run k has the k-th part of Table I's "
        "paths with that number of hops, and starts over where there are fewer parts than runs. "
        "The positions are not published; ours give the links of Table I."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
