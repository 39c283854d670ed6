"""V-B's last paragraph: which relays code most."""

from __future__ import annotations

from itertools import pairwise

from ncmesh.reproduce.claims import SHARE, Claim, holds
from ncmesh.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh.reproduce.plots import panels
from ncmesh.reproduce.tcp.fig6 import NETWORKS
from ncmesh.reproduce.tcp.metrics import coding_ratio
from ncmesh.reproduce.tcp.setting import FOUR_FLOWS, HOLD_TIMES_MS, ONE_FLOW, TWO_FLOWS, held, runs, size

RELAYS = {
    ONE_FLOW.name: ("b", "c", "d", "e", "f"),
    TWO_FLOWS.name: ("b", "c", "d", "e", "f"),
    FOUR_FLOWS.name: ("c", "d", "e"),
}
Ratios = dict[str, list[float]]


def _ratios(rows: Rows, network: str) -> Ratios:
    """By relay, for each hold time."""
    return {
        node: [coding_ratio(rows, network, held(ms).name, node) for ms in HOLD_TIMES_MS]
        for node in RELAYS[network]
    }


def _claims(ratios: dict[str, Ratios]) -> list[Claim]:
    claims = []
    for network, of in ratios.items():
        last = {node: values[-1] for node, values in of.items()}
        ours = ", ".join(f"{node} {SHARE.write(value)}" for node, value in last.items())
        grows = all(a <= b for values in of.values() for a, b in pairwise(values))
        claims.append(holds(f"every relay codes more the longer it holds, {network}", ours, grows))
        if network == FOUR_FLOWS.name:
            text = f"the middle relay codes most, {network}, {HOLD_TIMES_MS[-1]:g} ms"
            claims.append(holds(text, ours, last["d"] > max(last["c"], last["e"])))
        else:
            text = f"relays next to the ends code most, {network}, {HOLD_TIMES_MS[-1]:g} ms"
            ends = min(last["b"], last["f"])
            claims.append(holds(text, ours, ends > max(last[node] for node in "cde")))
            text = f"the middle relay codes least, {network}, {HOLD_TIMES_MS[-1]:g} ms"
            claims.append(holds(text, ours, last["d"] < min(last[node] for node in "bcef")))
    return claims


def _findings(rows: Rows, _: Scale) -> Findings:
    ratios = {network: _ratios(rows, network) for network in NETWORKS}
    table = [
        {"network": network, "relay": node, "hold_time_ms": ms, "coding_ratio": ratio}
        for network, of in ratios.items()
        for node, values in of.items()
        for ms, ratio in zip(HOLD_TIMES_MS, values, strict=True)
    ]
    figure, axes = panels(len(ratios))
    for panel, (network, of) in zip(axes, ratios.items(), strict=True):
        for node, values in of.items():
            panel.plot(HOLD_TIMES_MS, values, marker="o", label=node)
        panel.set_title(network, fontsize="medium")
        panel.set_xlabel("hold time, ms")
        panel.set_ylabel("coding ratio")
        panel.legend(fontsize="small")
    return Findings(_claims(ratios), table, figure)


EXPERIMENT = Experiment(
    name="tcp-coding-ratio",
    title="coded transmissions over all transmissions, by relay",
    reading=(
        "The runs of tcp-fig6. The paper gives orders and no numbers; they are read at the longest hold time."
    ),
    runs=lambda scale: runs(NETWORKS, [held(ms) for ms in HOLD_TIMES_MS], scale),
    findings=_findings,
    size=size,
)
