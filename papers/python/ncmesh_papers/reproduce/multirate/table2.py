"""Table II: base layers first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from ncmesh_papers.multirate import simulate
from ncmesh_papers.reproduce.claims import Claim, Unit, over_topologies, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.multirate.setting import D_MAX, V, figure_3, over_seeds, size
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

LAYERS = {"base": 0.2, "enhancement": 0.8}
MINIMUM = {"name": "linear", "minimum": 0.2}
# Tolerances in packets per slot, and of delivery ratios in percentage points.
RATE = 0.01
RATIO = 0.02
# The paper's V, and larger ones to show which part of the loss depends on V.
WEIGHTS = (V, 100, 400)

SLOT = Unit(lambda rate: f"{rate:.4f}")
SHARE = Unit(lambda share: f"{100 * share:.2f} %")

# The paper's numbers by session: rate of each receiver, delivery of base and enhancement.
PAPER = {1: (0.1948, 0.9735, 0.00037), 2: (0.805, 1.0, 0.7584)}


def prioritize(v: float, seed: int, slots: int) -> dict[str, Any]:
    """Run once; return rate and layers of each session's last receiver, and the penalty."""
    network = figure_3(1.0, {"layers": list(LAYERS.values())})
    run = simulate(network, "mmu", v, D_MAX, slots, seed, MINIMUM, warm_up=slots // 5)
    receivers = {1: "c", 2: "e"}
    found: dict[str, Any] = {"penalty": run["parameters"]["K"]["value"]}
    for session, receiver in receivers.items():
        got, sent = run["layers"][session - 1][receiver], run["stream_layers"][session - 1]
        found[f"rate {session}"] = run["rates"][session - 1][receiver]
        for layer, of, name in zip(got, sent, LAYERS, strict=True):
            found[f"{name} {session}"] = layer / of
    return found


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return {
        (v, seed): Piece(prioritize, {"v": v, "seed": seed, "slots": scale.slots // 5})
        for v in WEIGHTS
        for seed in scale.indices
    }


def _values(rows: Rows, v: float, column: str) -> list[float]:
    return [found[column] for found in over_seeds(rows, v)]


def _claims(rows: Rows) -> list[Claim]:
    claims = []
    for session, (rate, base, enhancement) in PAPER.items():
        expected = (
            ("rate", "rate of each receiver", SLOT, rate, RATE),
            ("base", "base delivered", SHARE, base, RATIO),
            ("enhancement", "enhancement delivered", SHARE, enhancement, RATIO),
        )
        for column, text, unit, paper, tolerance in expected:
            values = _values(rows, V, f"{column} {session}")
            claim = within(
                f"{text}, session {session}",
                unit,
                paper,
                fmean(values),
                spread=over_topologies(values),
                absolute=tolerance,
            )
            claims.append(claim)
    return claims


def _figure(rows: Rows) -> Figure:
    figure, axes = panels(2)
    for session, panel in zip(PAPER, axes, strict=True):
        for place, name in enumerate(LAYERS):
            shares = [100 * fmean(_values(rows, v, f"{name} {session}")) for v in WEIGHTS]
            at = [spot + 0.4 * place - 0.2 for spot in range(len(WEIGHTS))]
            panel.bar(at, shares, 0.4, label=name)
            panel.axhline(
                100 * PAPER[session][1 + place], color="black", linewidth=0.5, linestyle="dotted"
            )
        panel.set_xticks(range(len(WEIGHTS)), [f"V = {v}" for v in WEIGHTS])
        panel.set_title(f"session {session}", fontsize="medium")
        panel.set_ylabel("delivered, %")
        panel.legend(fontsize="small")
    return figure


def _findings(rows: Rows, _: Scale) -> Findings:
    columns = [f"{what} {session}" for session in PAPER for what in ("rate", *LAYERS)]
    table = [
        {"V": v, "K": fmean(_values(rows, v, "penalty"))}
        | {column: fmean(_values(rows, v, column)) for column in columns}
        for v in WEIGHTS
    ]
    return Findings(_claims(rows), table, _figure(rows))


EXPERIMENT = Experiment(
    name="mmu-table2",
    title="Base layers first",
    reading=(
        "Figure 3 with x = 1, streams of 0.2 (base) and 0.8 (enhancement), minimum rates of 0.2. "
        "The paper does not state V, d_max and K: V = 25 and d_max = 5 as in III-E, K as ncmesh "
        "derives it (twice what the minimum rates cost at the optimum). Delivery is that of c and "
        "e; dotted lines are the paper's. The table has the same with larger V."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
