"""Figure 6: the knob."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from ncmesh_papers.reproduce.claims import Claim, holds
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.setting import runs, with_knob
from ncmesh_papers.reproduce.plots import kbit, panels


def _curve(values: Callable[[str], list[float]], scale: Scale) -> dict[float, float]:
    """Return means over topologies by knob."""
    return {knob: fmean(values(with_knob(knob))) for knob in scale.knobs}


def _extreme_at(
    curves: dict[str, dict[float, float]], which: Callable[..., float], knob: float, word: str
) -> list[Claim]:
    claims = []
    for name, curve in curves.items():
        found = which(curve, key=curve.__getitem__)
        ours = f"knob {found:g}: {curve[found] / 1e3:.1f} kbit/s; {knob:g}: {curve[knob] / 1e3:.1f}"
        claims.append(holds(f"{name} throughput is {word} with knob {knob:g}", ours, found == knob))
    return claims


def _findings(rows: Rows, scale: Scale) -> Findings:
    curves = {
        "average": _curve(rows.average, scale),
        "worst receiver's": _curve(rows.worst, scale),
        "best receiver's": _curve(rows.best, scale),
    }
    claims = _extreme_at(curves, max, 1.0, "highest") + _extreme_at(curves, min, 0.0, "lowest")
    table = [
        {
            "knob": knob,
            "average_bps": curves["average"][knob],
            "worst_bps": curves["worst receiver's"][knob],
            "best_bps": curves["best receiver's"][knob],
        }
        for knob in scale.knobs
    ]
    figure, (axes,) = panels(1)
    middle, low, high = (kbit(list(curve.values())) for curve in curves.values())
    down = [m - v for m, v in zip(middle, low, strict=True)]
    up = [v - m for m, v in zip(middle, high, strict=True)]
    axes.errorbar(scale.knobs, middle, [down, up], marker="o", capsize=3)
    axes.set_xlabel("knob")
    axes.set_ylabel("throughput, kbit/s")
    axes.set_ylim(bottom=0)
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="pacifier-fig6",
    title="Tuning the knob",
    reading=(
        "Average, worst and best receiver, each averaged over topologies. Error bars reach from "
        "worst to best."
    ),
    runs=lambda scale: runs([with_knob(knob) for knob in scale.knobs], scale),
    findings=_findings,
)
