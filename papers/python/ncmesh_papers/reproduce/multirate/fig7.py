"""Figure 7: MMU with and without drop queues, on one link."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ncmesh_papers.multirate import simulate
from ncmesh_papers.reproduce.claims import Claim, Unit, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.multirate.setting import size
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

V = 10_000
PACKET_BITS = 8 * 1470
SLOT_S = 0.1
LINK_BPS = 27e6
# Offered load and d_max. The paper's 1000 is less than A_max + mu_max at overload.
LOADS = {"critical": (30e6, 1000), "overload": (100e6, 1100)}
POLICIES = ("mmu", "mmu_q")
# Tolerances of one policy against the other, and of throughput against the link.
ALIKE = 0.02
FULL = 0.02

MBIT = Unit(lambda bps: f"{bps / 1e6:.2f} Mbit/s")
PACKETS = Unit(lambda packets: f"{packets:.0f} packets")


def one_link(policy: str, load: str, slots: int) -> dict[str, Any]:
    """Run once; return throughput and backlog over time, and their means once the queue is full."""
    offered, d_max = LOADS[load]
    packets = SLOT_S / PACKET_BITS
    network = {
        "links": [{"from": "s", "to": "d", "capacity": LINK_BPS * packets}],
        "sessions": [
            {
                "source": "s",
                "receivers": ["d"],
                "tree": [0],
                "rate": offered * packets,
                "arrivals": "poisson",
            }
        ],
    }
    run = simulate(network, policy, V, d_max, slots, 1, warm_up=slots // 2, series=1)
    return {
        "throughput": run["rates"][0]["d"] / packets,
        "backlog": run["queues"][0]["Q"]["mean"],
        "throughput over time": (run["series"]["received"][:, 0] / packets).tolist(),
        "backlog over time": run["series"]["Q"][:, 0].tolist(),
    }


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return {
        (policy, load): Piece(
            one_link, {"policy": policy, "load": load, "slots": scale.slots // 250}
        )
        for policy in POLICIES
        for load in LOADS
    }


def _claims(rows: Rows) -> list[Claim]:
    claims = []
    for load in LOADS:
        mmu, mmu_q = (rows.computed[(policy, load)] for policy in POLICIES)
        claims += [
            within(f"throughput of MMU, {load}", MBIT, LINK_BPS, mmu["throughput"], relative=FULL),
            within(
                f"throughput of MMU-Q as of MMU, {load}",
                MBIT,
                mmu["throughput"],
                mmu_q["throughput"],
                relative=ALIKE,
            ),
            within(
                f"mean backlog of MMU-Q as of MMU, {load}",
                PACKETS,
                mmu["backlog"],
                mmu_q["backlog"],
                relative=ALIKE,
            ),
        ]
    return claims


def _figure(rows: Rows) -> Figure:
    figure, axes = panels(2)
    for load, panel in zip(LOADS, axes, strict=True):
        for policy in POLICIES:
            backlog = rows.computed[(policy, load)]["backlog over time"]
            times = SLOT_S * np.arange(1, len(backlog) + 1)
            panel.plot(times, backlog, linewidth=0.7, label=policy)
        panel.set_title(load, fontsize="medium")
        panel.set_xlabel("time, s")
        panel.set_ylabel("backlog, packets")
        panel.legend(fontsize="small")
    return figure


def _findings(rows: Rows, _: Scale) -> Findings:
    table = [
        {
            "load": load,
            "policy": policy,
            "throughput_bps": rows.computed[(policy, load)]["throughput"],
            "mean_backlog": rows.computed[(policy, load)]["backlog"],
        }
        for load in LOADS
        for policy in POLICIES
    ]
    return Findings(_claims(rows), table, _figure(rows))


EXPERIMENT = Experiment(
    name="mmu-fig7",
    title="MMU with and without drop queues",
    reading=(
        "One link of 27 Mbit/s in the slotted model: slots of 100 ms, packets of 1,470 bytes, V = "
        "10000, Poisson streams of 30 and 100 Mbit/s. d_max is 1000, and 1100 at 100 Mbit/s, "
        "where 1000 is less than A_max + mu_max. The paper gives no numbers: throughput is "
        "compared with the link, MMU-Q with MMU. Means are over the second half of a run."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
