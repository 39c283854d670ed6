"""Table II: five flows of different lengths in the mesh."""

from __future__ import annotations

from ncmesh_papers.reproduce.claims import GAIN, Claim, holds, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.plots import panels
from ncmesh_papers.reproduce.tcp.drawing import LABELS
from ncmesh_papers.reproduce.tcp.fig6 import RATIO
from ncmesh_papers.reproduce.tcp.metrics import PERCENT, Effect, effect, table_row
from ncmesh_papers.reproduce.tcp.setting import (
    ADAPTIVE,
    BASELINE,
    MESH,
    held,
    only_held,
    runs,
    size,
)

NETWORKS = {MESH.name: [MESH]}
# By hold time in ms: gain, loss reduction, increase of round-trip time.
PAPER = {
    0.5: (0.2234, 0.2280, 0.0364),
    1.5: (0.2126, 0.2335, 0.0768),
    2.5: (0.2123, 0.2671, 0.2647),
}
TREATMENTS = (BASELINE, *(held(ms) for ms in PAPER), *(only_held(ms) for ms in PAPER), ADAPTIVE)
# Tolerance of losses and round-trip times, as a share of those without coding; and of equal gains.
SHARE_OF = 0.1


def _claims(effects: dict[float, Effect]) -> list[Claim]:
    claims = []
    for ms, (gain, reduction, increase) in PAPER.items():
        ours = effects[ms]
        claims += [
            within(
                f"gain at {ms:g} ms",
                GAIN,
                1 + gain,
                ours.speedup,
                spread=ours.spread,
                relative=RATIO,
            ),
            within(
                f"loss reduction at {ms:g} ms",
                PERCENT,
                reduction,
                ours.loss_reduction,
                absolute=SHARE_OF,
            ),
            within(
                f"RTT increase at {ms:g} ms",
                PERCENT,
                increase,
                ours.rtt_increase,
                absolute=SHARE_OF,
            ),
        ]
    gains = [e.gain for e in effects.values()]
    text = ", ".join(PERCENT.write(gain) for gain in gains)
    claims.append(
        holds("the gain hardly depends on the hold time", text, max(gains) - min(gains) <= SHARE_OF)
    )
    return claims


def _findings(rows: Rows, _: Scale) -> Findings:
    effects = {ms: effect(rows, MESH.name, held(ms).name) for ms in PAPER}
    figure, axes = panels(3)
    for place, (panel, (name, label)) in enumerate(zip(axes, LABELS.items(), strict=True)):
        panel.plot(
            list(PAPER), [100 * paper[place] for paper in PAPER.values()], "k--", label="paper"
        )
        panel.plot(
            list(PAPER),
            [100 * getattr(e, name) for e in effects.values()],
            marker="o",
            label="ours",
        )
        panel.set_xlabel("hold time, ms")
        panel.set_ylabel(f"{label}, %")
        panel.legend(fontsize="small")
    return Findings(
        _claims(effects), [table_row(rows, MESH.name, t.name) for t in TREATMENTS], figure
    )


EXPERIMENT = Experiment(
    name="tcp-table2",
    title="5 flows of 3 to 5 hops in the mesh of 20",
    reading="Gain is that of the sum over the flows, losses are those of all their data segments.",
    runs=lambda scale: runs(NETWORKS, TREATMENTS, scale),
    findings=_findings,
    size=size,
)
