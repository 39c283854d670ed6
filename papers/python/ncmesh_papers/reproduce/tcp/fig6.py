"""Figure 6: planned topologies, one and two flows on a line, four on a dumbbell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import GAIN, Claim, holds, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.tcp.drawing import against_hold_time
from ncmesh_papers.reproduce.tcp.metrics import PERCENT, Effect, effect, table_row
from ncmesh_papers.reproduce.tcp.setting import (
    ADAPTIVE,
    BASELINE,
    DELAYED_TREATMENTS,
    FOUR_FLOWS,
    HOLD_TIMES_MS,
    LATE,
    ONE_FLOW,
    TWO_FLOWS,
    Network,
    Treatment,
    held,
    in_delayed_lab,
    in_lab,
    lab_runs,
    only_held,
    runs,
    size,
)

NETWORKS: dict[str, list[Network]] = {n.name: [n] for n in (ONE_FLOW, TWO_FLOWS, FOUR_FLOWS)}
TREATMENTS = (
    BASELINE,
    *(held(ms) for ms in HOLD_TIMES_MS),
    *(only_held(ms) for ms in HOLD_TIMES_MS),
    ADAPTIVE,
    LATE,
)
# For two and four flows the text only says 20 to 70 %, and that one flow gains most.
SOME = (1.2, 1.7)
PAPERS: tuple[float | tuple[float, float], ...] = (1.7, SOME, SOME)
# Treatments of the lab, which runs in real time.
LAB_HELD = held(1.5)
LAB_TREATMENTS = (BASELINE, held(0.5), LAB_HELD, held(2.5))
# Tolerance of a gain, as a share of the ratio; and the correlation from which on a curve is a line.
RATIO = 0.2
A_LINE = 0.95


def _by_hold_time(rows: Rows, network: str) -> list[Effect]:
    return [effect(rows, network, held(ms).name) for ms in HOLD_TIMES_MS]


def _line(values: list[float]) -> float:
    """Return Pearson's r of values over the hold times."""
    count = len(values)
    x0, y0 = sum(HOLD_TIMES_MS) / count, sum(values) / count
    across = sum((x - x0) * (y - y0) for x, y in zip(HOLD_TIMES_MS, values, strict=True))
    squares = sum((x - x0) ** 2 for x in HOLD_TIMES_MS) * sum((y - y0) ** 2 for y in values)
    return float(across / squares**0.5) if squares > 0 else 0.0


def _claims(rows: Rows) -> list[Claim]:
    effects = {network: _by_hold_time(rows, network) for network in NETWORKS}
    best = {
        network: max(range(len(of)), key=lambda i: of[i].gain) for network, of in effects.items()
    }
    most = {network: effects[network][best[network]] for network in NETWORKS}
    claims = []
    for network, paper in zip(NETWORKS, PAPERS, strict=True):
        found = most[network]
        text = f"best gain, {network}"
        claims.append(within(text, GAIN, paper, found.speedup, spread=found.spread, relative=RATIO))
    gains = [most[network].gain for network in NETWORKS]
    text = "; ".join(f"{n}: {PERCENT.write(g)}" for n, g in zip(NETWORKS, gains, strict=True))
    falls = all(a > b for a, b in pairwise(gains))
    claims.append(holds("the more flows, the smaller the best gain", text, falls))
    for network, of in effects.items():
        ms = HOLD_TIMES_MS[best[network]]
        claims.append(holds(f"1.5 ms is best, {network}", f"{ms:g} ms is", ms == 1.5))
        reductions = [e.loss_reduction for e in of]
        text = ", ".join(PERCENT.write(r) for r in reductions)
        rises = all(a <= b for a, b in pairwise(reductions))
        claims.append(holds(f"loss falls with the hold time, {network}", text, rises))
        increases = [e.rtt_increase for e in of]
        r = _line(increases)
        first, last = (PERCENT.write(increases[at]) for at in (0, -1))
        text = f"from {first} to {last}, r = {r:.2f}"
        claims.append(holds(f"round-trip time rises linearly, {network}", text, r > A_LINE))
    return claims + [_control(rows, network) for network in NETWORKS]


def _control(rows: Rows, network: str) -> Claim:
    coded, waiting = (
        effect(rows, network, treatment(1.5).name).gain for treatment in (held, only_held)
    )
    ours = f"coded {PERCENT.write(coded)}, held only {PERCENT.write(waiting)}"
    return holds(f"the gain at 1.5 ms is due to coding, {network}", ours, coded - waiting > waiting)


def in_lab_too(rows: Rows, papers: Mapping[str, float | tuple[float, float]]) -> list[Claim]:
    """Judge gains in the lab. Those simulated, or where acknowledgments wait, are details."""
    claims = []
    for network, paper in papers.items():
        found, simulated, delayed = (
            effect(rows, name, LAB_HELD.name)
            for name in (in_lab(network), network, in_delayed_lab(network))
        )
        claims.append(
            within(
                f"gain at 1.5 ms, {in_lab(network)}",
                GAIN,
                paper,
                found.speedup,
                spread=found.spread,
                relative=RATIO,
                detail=f"simulated {GAIN.write(simulated.speedup)}, with delayed acknowledgments "
                f"{GAIN.write(delayed.speedup)}",
            )
        )
    return claims


def lab_too(
    networks: Mapping[str, Sequence[Network]], treatments: Iterable[Treatment], scale: Scale
) -> dict[Case, Run]:
    """Return the lab's runs: treatments where every segment is acknowledged, some where not."""
    return lab_runs(networks, treatments, scale) | lab_runs(
        networks, DELAYED_TREATMENTS, scale, delayed=True
    )


def lab_table(
    rows: Rows, networks: Iterable[str], treatments: Iterable[Treatment]
) -> list[dict[str, Any]]:
    """Return the lab's part of the table."""
    points = [(in_lab(n), t) for n in networks for t in treatments]
    points += [(in_delayed_lab(n), t) for n in networks for t in DELAYED_TREATMENTS]
    return [table_row(rows, name, treatment.name) for name, treatment in points]


def _runs(scale: Scale) -> dict[Case, Run]:
    return runs(NETWORKS, TREATMENTS, scale) | lab_too(NETWORKS, LAB_TREATMENTS, scale)


def _findings(rows: Rows, scale: Scale) -> Findings:
    table = [table_row(rows, network, t.name) for network in NETWORKS for t in TREATMENTS]
    claims = _claims(rows)
    if scale.lab:
        claims += in_lab_too(rows, dict(zip(NETWORKS, PAPERS, strict=True)))
        table += lab_table(rows, NETWORKS, LAB_TREATMENTS)
    coded = {network: _by_hold_time(rows, network) for network in NETWORKS}
    waiting = {
        network: [effect(rows, network, only_held(ms).name) for ms in HOLD_TIMES_MS]
        for network in NETWORKS
    }
    return Findings(claims, table, against_hold_time(HOLD_TIMES_MS, coded, waiting))


EXPERIMENT = Experiment(
    name="tcp-fig6",
    title="gain, losses and round-trip times by hold time, planned topologies",
    reading=(
        "Throughput is the sum over the flows, gain compares averages over all runs, and losses "
        "are those of data segments. The text once speaks of a loss increase; the figure shows "
        "reductions. Dashed lines are a control that the paper lacks: packets held as long and "
        "never coded. A gain is due to coding if it is more than twice the control's."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
