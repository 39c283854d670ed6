"""Figure 4: diamond and hexagon in slots, generations, and how soon credits settle."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import (
    GAIN,
    NUMBER,
    Claim,
    Unit,
    holds,
    over_topologies,
    refuted,
    within,
)
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.mc2 import proofs, settling
from ncmesh_papers.reproduce.mc2.examples import (
    DIAMOND,
    HEXAGON,
    ON_THE_CURVE,
    RATIO,
    WAYS,
    Example,
    Q,
    deliveries,
    gains,
    mean_gain,
    naive_pieces,
    on_the_curve,
    runs,
    simulated,
    size,
    spread_of,
    table_rows,
)
from ncmesh_papers.reproduce.mc2.mesh import across, rate, slots_of
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

EXAMPLES = (DIAMOND, HEXAGON)
# Printed gains, without a p.
PRINTED = {DIAMOND.name: 1.2, HEXAGON.name: 2.0}
GENERATIONS = (4, 8, 16, 32, 64, 128)
ENOUGH = 16
# The paper does not state K. The engine's default, and one value on either side.
KS = (2.0, 3.0, 10.0)
K = 3.0
# Tolerances of a gain, as a share of the ratio, and of "around" 50 slots.
GAIN_ALIKE = 0.2
AROUND = 0.5

SLOTS = Unit(lambda slots: f"{slots:.0f} slots")


def _generation(packets: int) -> str:
    return f"generation {packets}"


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made = runs(EXAMPLES, scale)
    mesh = DIAMOND.mesh(settling.P)
    for packets in GENERATIONS:
        for k in scale.indices:
            run = mesh.run(across(mesh), 2, k, slots_of(scale), {"generation": packets})
            made[Case(_generation(packets), k)] = run
    return made


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    made = dict(naive_pieces(EXAMPLES, scale))
    for k in KS:
        made[k] = Piece(settling.follow, {"k": k, "runs": scale.trials})
    return made


def _gain_claims(rows: Rows, example: Example, scale: Scale) -> list[Claim]:
    found = {p: mean_gain(rows, example, p) for p in deliveries(scale)}
    most, printed = max(found, key=lambda p: found[p]), PRINTED[example.name]
    by_seed = [
        fmean(of_seed) for of_seed in zip(*(gains(rows, example, p) for p in found), strict=True)
    ]
    return [
        within(
            f"gain over a single path, {example.name}, mean over p",
            GAIN,
            printed,
            fmean(found.values()),
            spread=spread_of(by_seed),
            relative=GAIN_ALIKE,
        ),
        refuted(
            within(
                f"gain over a single path, {example.name}, at most",
                GAIN,
                printed,
                found[most],
                spread=spread_of(gains(rows, example, most)),
                relative=GAIN_ALIKE,
                detail=f"p = {most:g}",
            ),
            proofs.of_gain(example, most, printed * (1 + GAIN_ALIKE)),
        ),
        *(on_the_curve(rows, example, way, scale) for way in WAYS),
    ]


def _order_claims(rows: Rows, example: Example, scale: Scale) -> list[Claim]:
    over = [mean_gain(rows, example, p, "naive") for p in deliveries(scale)]
    (first,) = (fmean(simulated(rows, example, "coded", p)) for p in deliveries(scale)[:1])
    return [
        holds(
            f"naive multipath below coding at every p, {example.name}",
            f"coding {GAIN.write(min(over))} to {GAIN.write(max(over))}",
            min(over) > 1,
        ),
        within(
            f"coded over source links without loss, {example.name}: packets per slot",
            NUMBER,
            example.formula("coded", 1.0),
            first,
            spread=over_topologies(simulated(rows, example, "coded", 1.0)),
            relative=ON_THE_CURVE,
        ),
    ]


def _generation_claim(rows: Rows) -> Claim:
    means = {packets: _rate(rows, packets) for packets in GENERATIONS if packets >= ENOUGH}
    worst = min(means, key=lambda packets: means[packets])
    best = max(means.values())
    return within(
        f"generations from {ENOUGH} to {max(means)}: the worst ({worst}) over the best",
        RATIO,
        1.0,
        means[worst] / best if best > 0 else 0.0,
        absolute=ON_THE_CURVE,
    )


def _rate(rows: Rows, packets: int) -> float:
    return fmean(rate(rows.rows[Case(_generation(packets), k)]) for k in rows.topologies)


def _settling_claims(rows: Rows) -> list[Claim]:
    found = rows.computed[K]
    after = {node: settling.settled_after(found[node]) for node in "123"}
    of_rate = settling.settled_after(settling.smooth(found["innovative"]))
    others = ", ".join(
        f"K = {k:g}: {max(settling.settled_after(rows.computed[k][node]) for node in '123')}"
        for k in KS
        if k != K
    )
    return [
        within(
            f"credits settle, K = {K:g}, the last of nodes 1 to 3",
            SLOTS,
            50,
            max(after.values()),
            relative=AROUND,
            detail=others,
        ),
        holds("the rate settles in less than 10 slots", f"after {of_rate}", of_rate < 10),
        holds("C(4, 1) = 0 always", f"{max(found['4']):g} at most", max(found["4"]) == 0),
    ]


def _curves(panel: Axes, rows: Rows, example: Example, scale: Scale) -> None:
    grid = [k / 100 for k in range(1, 101)]
    labels = {"coded": "MC2", "naive": "naive multipath", "single": "single path"}
    for way in WAYS:
        (line,) = panel.plot(grid, [example.formula(way, p) for p in grid], label=labels[way])
        found = [simulated(rows, example, way, p) for p in deliveries(scale)]
        means = [fmean(of) for of in found]
        low = [max(0.0, mean - min(of)) for mean, of in zip(means, found, strict=True)]
        high = [max(0.0, max(of) - mean) for mean, of in zip(means, found, strict=True)]
        at = deliveries(scale)
        panel.errorbar(at, means, [low, high], fmt="o", color=line.get_color(), markersize=4)
    panel.set_title(f"{example.name}; lines: closed forms", fontsize="medium")
    panel.set_xlabel("p")
    panel.set_ylabel("packets per slot")
    panel.legend(fontsize="small")


def _figure(rows: Rows, scale: Scale) -> Figure:
    figure, axes = panels(3)
    for panel, example in zip(axes, EXAMPLES, strict=False):
        _curves(panel, rows, example, scale)
    found = rows.computed[K]
    for node in "1234":
        axes[2].plot(found[node], label=f"C({node}, 1)")
    axes[2].axvline(50, color="gray", linestyle="dotted")
    axes[2].set_xlabel("slot")
    axes[2].set_ylabel("credits, mean over runs")
    axes[2].legend(fontsize="small", loc="center right")
    rates = axes[2].twinx()
    smooth = settling.smooth(found["innovative"])
    places = [slot + settling.WINDOW // 2 for slot in range(len(smooth))]
    rates.plot(places, smooth, color="black", linewidth=0.7)
    rates.set_ylabel("innovative packets per slot (black)")
    rates.set_ylim(0, 0.6)
    return figure


def _generation_rows(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "topology": f"{DIAMOND.name}, generation {packets}",
            "p": settling.P,
            "way": "coded",
            "closed_form": DIAMOND.formula("coded", settling.P),
            "simulated": fmean(found),
            "least": min(found),
            "most": max(found),
        }
        for packets in GENERATIONS
        for found in [[rate(rows.rows[Case(_generation(packets), k)]) for k in rows.topologies]]
    ]


def _findings(rows: Rows, scale: Scale) -> Findings:
    claims = [claim for example in EXAMPLES for claim in _gain_claims(rows, example, scale)]
    claims += [claim for example in EXAMPLES for claim in _order_claims(rows, example, scale)]
    claims += [_generation_claim(rows), *_settling_claims(rows)]
    table = [row for example in EXAMPLES for row in table_rows(rows, example, scale)]
    return Findings(claims, table + _generation_rows(rows), _figure(rows, scale))


EXPERIMENT = Experiment(
    name="mc2-fig4",
    title="Single path and multipath in diamond and hexagon, and how credits settle",
    reading=(
        f"Slotted access by weight, conflicts as in `shared_hearer`, q = {Q}, links both ways, K = "
        f"{K:g}. A run carries about 15 MB. The text gives one gain for each topology and no p: "
        "we compare it with the mean over p and with the largest gain. The closed forms of the "
        f"hexagon are ours. Credits and rate are means over many runs at p = {settling.P}, from "
        f"the first slot on. A value has settled when it stays within {settling.NEAR:.0%} of its "
        f"mean over slots {settling.SLOTS // 2} to {settling.SLOTS}; for the rate, means over "
        f"{settling.WINDOW} slots."
    ),
    findings=_findings,
    runs=_runs,
    pieces=_pieces,
    size=size,
)
