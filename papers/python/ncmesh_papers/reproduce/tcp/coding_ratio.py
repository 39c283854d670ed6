"""The last paragraph of section V-B: which relays code most."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import SHARE, Claim, holds
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.plots import panels
from ncmesh_papers.reproduce.tcp.fig6 import NETWORKS
from ncmesh_papers.reproduce.tcp.metrics import coding_ratio
from ncmesh_papers.reproduce.tcp.setting import (
    FOUR_FLOWS,
    HOLD_TIMES_MS,
    ONE_FLOW,
    TWO_FLOWS,
    held,
    in_lab,
    lab_runs,
    runs,
    size,
)

RELAYS = {
    ONE_FLOW.name: ("b", "c", "d", "e", "f"),
    TWO_FLOWS.name: ("b", "c", "d", "e", "f"),
    FOUR_FLOWS.name: ("c", "d", "e"),
}
Ratios = dict[str, list[float]]


def _ratios(rows: Rows, network: str) -> Ratios:
    """Return the coding ratios of each relay for each hold time."""
    return {
        node: [coding_ratio(rows, network, held(ms).name, node) for ms in HOLD_TIMES_MS]
        for node in RELAYS[network]
    }


def _ranks(network: str, name: str, last: Mapping[str, float]) -> list[Claim]:
    """Judge which relays of a network code most and least at the longest hold time."""
    ours, at = _written(last), f"{name}, {HOLD_TIMES_MS[-1]:g} ms"
    if network == FOUR_FLOWS.name:
        return [
            holds(f"the middle relay codes most, {at}", ours, last["d"] > max(last["c"], last["e"]))
        ]
    ends = min(last["b"], last["f"])
    most = ends > max(last[node] for node in "cde")
    least = last["d"] < min(last[node] for node in "bcef")
    return [
        holds(f"relays next to the ends code most, {at}", ours, most),
        holds(f"the middle relay codes least, {at}", ours, least),
    ]


def _written(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{node} {SHARE.write(value)}" for node, value in ratios.items())


def _claims(ratios: dict[str, Ratios]) -> list[Claim]:
    claims = []
    for network, of in ratios.items():
        last = {node: values[-1] for node, values in of.items()}
        ours = _written(last)
        grows = all(a <= b for values in of.values() for a, b in pairwise(values))
        claims.append(holds(f"every relay codes more the longer it holds, {network}", ours, grows))
        claims += _ranks(network, network, last)
    return claims


def _in_lab_too(rows: Rows) -> tuple[list[Claim], list[dict[str, object]]]:
    """Return claims and table of the lab, at the longest hold time."""
    claims, table = [], []
    for network, relays in RELAYS.items():
        name, ms = in_lab(network), HOLD_TIMES_MS[-1]
        last = {node: coding_ratio(rows, name, held(ms).name, node) for node in relays}
        claims += _ranks(network, name, last)
        table += [
            {"network": name, "relay": node, "hold_time_ms": ms, "coding_ratio": ratio}
            for node, ratio in last.items()
        ]
    return claims, table


def _runs(scale: Scale) -> dict[Case, Run]:
    simulated = runs(NETWORKS, [held(ms) for ms in HOLD_TIMES_MS], scale)
    return simulated | lab_runs(NETWORKS, [held(HOLD_TIMES_MS[-1])], scale)


def _findings(rows: Rows, scale: Scale) -> Findings:
    ratios = {network: _ratios(rows, network) for network in NETWORKS}
    claims = _claims(ratios)
    table: list[dict[str, object]] = [
        {"network": network, "relay": node, "hold_time_ms": ms, "coding_ratio": ratio}
        for network, of in ratios.items()
        for node, values in of.items()
        for ms, ratio in zip(HOLD_TIMES_MS, values, strict=True)
    ]
    if scale.lab:
        more = _in_lab_too(rows)
        claims += more[0]
        table += more[1]
    figure, axes = panels(len(ratios))
    for panel, (network, of) in zip(axes, ratios.items(), strict=True):
        for node, values in of.items():
            panel.plot(HOLD_TIMES_MS, values, marker="o", label=node)
        panel.set_title(network, fontsize="medium")
        panel.set_xlabel("hold time, ms")
        panel.set_ylabel("coding ratio")
        panel.legend(fontsize="small")
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="tcp-coding-ratio",
    title="coded transmissions over all transmissions, by relay",
    reading=(
        "The runs of tcp-fig6. The paper gives orders without numbers; they are read at the "
        "longest hold time."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
