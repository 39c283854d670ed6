"""Figure 4: generation and field size."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise, product
from typing import Any

from matplotlib.axes import Axes

from ncmesh_papers.core_nc import efficiency
from ncmesh_papers.reproduce.claims import GAIN, Claim, holds, within
from ncmesh_papers.reproduce.core.trials import Mean, piece, size
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

GENERATIONS = (16, 32, 64, 128, 256)
FIELDS = {"gf2": "GF(2)", "gf16": "GF(2^4)", "gf256": "GF(2^8)"}
# The figure's losses are not stated. These are where figure 3's plots meet, and lower ones.
LOSSES = ((0.3, 0.5), (0.1, 0.1))
# Moderate generations and fields.
MODERATE = tuple(product(GENERATIONS[1:], ("gf16", "gf256")))
# Largest overhead of a large code above the analysis, which has none.
OVERHEAD = 0.05

Point = tuple[float, float, int, str]


def _points() -> list[Point]:
    return [(*losses, m, field) for losses in LOSSES for field in FIELDS for m in GENERATIONS]


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return {
        (e_x, e_oh, m, field): piece("core", e_x, e_oh, scale, m, field)
        for e_x, e_oh, m, field in _points()
    }


def _means(rows: Rows) -> dict[Point, Mean]:
    return {point: rows.computed[point].both for point in _points()}


def _forwarding(e_x: float) -> float:
    return float(efficiency("forwarding_unconstrained", e_x, 0.0))


def _claims(means: Mapping[Point, Mean], e_x: float, e_oh: float) -> list[Claim]:
    at = f"e_X = {e_x:g}, e_OH = {e_oh:g}"

    def value(m: int, field: str) -> float:
        return means[e_x, e_oh, m, field].value

    worst = max(MODERATE, key=lambda code: value(*code))
    by_field = all(value(m, a) > value(m, b) for m in GENERATIONS for a, b in pairwise(FIELDS))
    by_generation = all(
        value(a, field) > value(b, field) for field in FIELDS for a, b in pairwise(GENERATIONS)
    )
    small, large = value(16, "gf2"), means[e_x, e_oh, 256, "gf256"]
    large_over_analysis = large.over(float(efficiency("core", e_x, e_oh, 256)))
    forwarding = _forwarding(e_x)
    return [
        holds(
            f"generations from 32, fields from GF(2^4) beat forwarding, {at}",
            f"at most {value(*worst):.2f} ({FIELDS[worst[1]]}, {worst[0]}); forwarding "
            f"{forwarding:.2f}",
            value(*worst) < forwarding,
        ),
        holds(f"larger fields waste less, {at}", f"for 16: {_row(means, e_x, e_oh, 16)}", by_field),
        holds(
            f"larger generations waste less, {at}",
            f"16 over GF(2): {small:.2f}, 256 over GF(2^8): {large.value:.2f}",
            by_generation,
        ),
        within(
            f"256 over GF(2^8) against the analysis, which has no coding overhead, {at}",
            GAIN,
            1.0,
            large_over_analysis.middle,
            spread=large_over_analysis,
            relative=OVERHEAD,
        ),
    ]


def _row(means: Mapping[Point, Mean], e_x: float, e_oh: float, m: int) -> str:
    return ", ".join(
        f"{label} {means[e_x, e_oh, m, field].value:.2f}" for field, label in FIELDS.items()
    )


def _draw(axes: Axes, means: Mapping[Point, Mean], e_x: float, e_oh: float) -> None:
    for field, label in FIELDS.items():
        of_field = [means[e_x, e_oh, m, field] for m in GENERATIONS]
        values = [mean.value for mean in of_field]
        axes.errorbar(
            GENERATIONS, values, [mean.error for mean in of_field], marker="o", label=label
        )
    axes.plot(GENERATIONS, efficiency("core", e_x, e_oh, GENERATIONS), "k--", label="analysis")
    axes.axhline(_forwarding(e_x), color="gray", label="forwarding")
    axes.set_xscale("log", base=2)
    axes.set_xticks(GENERATIONS, [str(m) for m in GENERATIONS])
    axes.set_xlabel(f"generation, packets; e_X = {e_x:g}, e_OH = {e_oh:g}")
    axes.set_ylabel("transmissions per packet")
    axes.legend(fontsize="small")


def _findings(rows: Rows, _: Scale) -> Findings:
    means = _means(rows)
    figure, axes = panels(len(LOSSES))
    claims: list[Claim] = []
    for own, losses in zip(axes, LOSSES, strict=True):
        claims += _claims(means, *losses)
        _draw(own, means, *losses)
    table: list[dict[str, Any]] = [
        {
            "e_x": e_x,
            "e_oh": e_oh,
            "generation": m,
            "field": field,
            "both": mean.value,
            "both_error": mean.error,
        }
        for (e_x, e_oh, m, field), mean in means.items()
    ]
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="core-fig4",
    title="Generation and field size",
    reading=(
        "CORE with feedback; trials end when both destinations have their flow. The paper does not "
        "state the losses of its figure: ours are 0.3 on the direct links with 0.5 of overhearing, "
        "and 0.1 on all links. Bars are standard errors."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
