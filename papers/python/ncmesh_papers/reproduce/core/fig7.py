"""Figure 7: probability that extra credit delivers a generation at once."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from ncmesh_papers.core_nc import decode_probability
from ncmesh_papers.reproduce.claims import SHARE, Claim, Unit, refuted, within
from ncmesh_papers.reproduce.core import proofs
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.plots import panels

GENERATIONS = (30, 45, 60)
SUCCESS = (0.5, 0.7)
EXTRA = np.linspace(1.0, 1.4, 201)
# The paper's numbers for g = 60 and r = 0.7.
PAPER = {1.0: 0.53, 1.1: 0.93}
# Tolerance: the digits that the paper gives.
DIGITS = 0.005
TWO_DIGITS = Unit(lambda share: f"{share:.3f}")


def _claims(*, whole: bool) -> list[Claim]:
    how = "g x / r rounded down, as printed" if whole else "g x / r not rounded"
    found = {x: float(decode_probability(60, 0.7, x, whole=whole)) for x in PAPER}
    claims = [
        refuted(
            within(
                f"eq. 35, g = 60, r = 0.7, x = {x}, {how}",
                TWO_DIGITS,
                p,
                found[x],
                absolute=DIGITS,
            ),
            proofs.of_eq_35(60, Fraction(7, 10), p, DIGITS),
        )
        for x, p in PAPER.items()
    ]
    more = found[1.1] - found[1.0]
    claims.append(
        within(
            f"share of generations that x = 1.1 saves a request, {how}",
            SHARE,
            0.4,
            more,
            absolute=0.02,
        )
    )
    return claims


def _findings(_: Rows, __: Scale) -> Findings:
    figure, (axes,) = panels(1)
    table = []
    for g, r in product(GENERATIONS, SUCCESS):
        printed, smooth = (decode_probability(g, r, EXTRA, whole=whole) for whole in (True, False))
        (line,) = axes.plot(EXTRA, printed, label=f"g = {g}, r = {r}")
        axes.plot(EXTRA, smooth, ":", color=line.get_color())
        table += [
            {"g": g, "r": r, "x": x, "printed": p, "not_rounded": q}
            for x, p, q in zip(
                EXTRA[::5].tolist(), printed[::5].tolist(), smooth[::5].tolist(), strict=True
            )
        ]
    axes.set_xlabel("extra credit x")
    axes.set_ylabel("probability of g packets at the relay")
    axes.legend(fontsize="small", loc="lower right")
    return Findings([*_claims(whole=True), *_claims(whole=False)], table, figure)


EXPERIMENT = Experiment(
    name="core-fig7",
    title="Extra credit against incomplete generations",
    reading=(
        "A formula; nothing is random. Eq. 35 rounds the number of packets down, hence the steps. "
        "Dotted lines are without rounding."
    ),
    findings=_findings,
    size=lambda _: {},
)
