"""Figure 6, c: what the nodes' processors do as more and more is offered."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh.reproduce.claims import SHARE, Claim, holds, within
from ncmesh.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh.reproduce.lab import LabRun
from ncmesh.reproduce.multirate.fig6_mesh import MBIT, SCHEME
from ncmesh.reproduce.multirate.mesh import rates, two_streams
from ncmesh.reproduce.plots import panels

OFFERED_BPS = (14_000_000, 50_000_000, 100_000_000, 200_000_000)
# The paper's bound, of one core.
SMALL = 0.03
# How much what arrives may change with what is offered.
SAME = 0.1
# Real time, and simulated packets by the million.
LONGEST_S = 20.0


def _seconds(scale: Scale) -> float:
    return min(scale.flow_s, LONGEST_S)


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made: dict[Case, Run] = {}
    for offered in OFFERED_BPS:
        scenario = two_streams("a", _seconds(scale), offered)
        for k in scale.indices[:1]:
            made[Case(f"{offered}", k)] = Run(scenario, SCHEME, k)
            if scale.lab:
                made[Case(f"{offered} (lab)", k)] = LabRun(scenario, SCHEME, k, program=scale.lab)
    return made


def _totals(rows: Rows, world: str) -> list[float]:
    """Of all receivers, for each rate offered, bit/s."""
    return [
        fmean(sum(rates(rows.rows[Case(f"{offered}{world}", k)]).values()) for k in rows.topologies)
        for offered in OFFERED_BPS
    ]


def _cpu(rows: Rows) -> dict[int, dict[str, float]]:
    """By rate offered and node, shares of a core."""
    (k,) = rows.topologies
    return {offered: dict(rows.rows[Case(f"{offered} (lab)", k)]["cpu"] or {}) for offered in OFFERED_BPS}


def _claims(rows: Rows, scale: Scale) -> list[Claim]:
    claims = []
    for world in ["", " (lab)"] if scale.lab else [""]:
        totals = _totals(rows, world)
        # Of 14 Mbit/s Bob has all that there is; from 50 on A_max is what limits him.
        text = f"what arrives in all, of streams of 200 Mbit/s beside those of 50{world}"
        claims.append(within(text, MBIT, totals[1], totals[-1], relative=SAME))
    if scale.lab:
        cpu = _cpu(rows)
        busiest = max(max(nodes.values()) for nodes in cpu.values())
        text = "every node's processor is below 3 % (lab)"
        claims.append(holds(text, f"up to {SHARE.write(busiest)} of a core", busiest < SMALL))
        grown = max(cpu[OFFERED_BPS[-1]][node] - share for node, share in cpu[OFFERED_BPS[0]].items())
        text = "processors do at most 2.5 % more at 200 Mbit/s than at 14 (lab)"
        claims.append(holds(text, f"up to {100 * grown:.1f} % more of a core", grown <= SMALL))
    return claims


def _figure(rows: Rows, scale: Scale) -> Figure:
    figure, axes = panels(2)
    offered = [bps / 1e6 for bps in OFFERED_BPS]
    for world in ["", " (lab)"] if scale.lab else [""]:
        axes[0].plot(
            offered, [total / 1e6 for total in _totals(rows, world)], marker="o", label=f"all{world}"
        )
    axes[0].set_ylabel("arrives in all, Mbit/s")
    axes[0].legend(fontsize="small")
    if scale.lab:
        cpu = _cpu(rows)
        for node in cpu[OFFERED_BPS[0]]:
            axes[1].plot(offered, [100 * cpu[bps][node] for bps in OFFERED_BPS], marker="o", label=node)
        axes[1].legend(fontsize="small")
    axes[1].set_ylabel("processor, % of a core (lab)")
    for panel in axes:
        panel.set_xlabel("offered by each stream, Mbit/s")
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    worlds = ["", " (lab)"] if scale.lab else [""]
    totals = {world: _totals(rows, world) for world in worlds}
    cpu = _cpu(rows) if scale.lab else {}
    table = [
        {
            "offered_bps": offered,
            **{f"arrives_bps{world}": totals[world][i] for world in worlds},
            **{f"cpu {node}": share for node, share in cpu.get(offered, {}).items()},
        }
        for i, offered in enumerate(OFFERED_BPS)
    ]
    return Findings(_claims(rows, scale), table, _figure(rows, scale))


def size(scale: Scale) -> dict[str, str]:
    """For the head of the page."""
    return {
        "scale": f"{scale.name}: one run of {2 * _seconds(scale):g} s for each rate",
        "seeds": "1",
    }


EXPERIMENT = Experiment(
    name="mmu-fig6-cpu",
    title="Processors as more is offered",
    reading=(
        "Streams of 14 to 200 Mbit/s through the mesh of mmu-fig6. Processor time is that of each daemon, "
        "user and system, over the whole run, in shares of one core; it needs the lab. The shares of queues, "
        "input and output, and messages (Figure 6, d) are not measured."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
