"""Figure 2: gain of coded multipath over a single path and over naive multipath."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers import mc2
from ncmesh_papers.reproduce.claims import GAIN, NUMBER, Claim, holds, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.mc2.examples import (
    WAYS,
    Q,
    Way,
    deliveries,
    gains,
    mean_gain,
    naive_pieces,
    on_the_curve,
    runs,
    size,
    spread_of,
    table_rows,
    with_relays,
)
from ncmesh_papers.reproduce.mc2.mesh import Matrix
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

# Runs have up to 4 relays, to be affordable; formulas have up to 10.
EXAMPLES = [with_relays(relays) for relays in (2, 3, 4)]
RELAYS = np.arange(2, 11)[:, None]
DELIVERIES = np.linspace(0.01, 1, 100)
# p of the gain at vanishing p, which is n at q = 1; and its tolerance.
SMALL, EXACT = 1e-6, 1e-3
# Tolerance of gains of runs against the formula's, as a share of the ratio.
ALIKE = 0.03
SOME_GAIN = 1.2


def _runs(scale: Scale) -> Mapping[Case, Run]:
    return runs(EXAMPLES, scale)


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return naive_pieces(EXAMPLES, scale)


def _ratio(q: float, over: Way = "single") -> Matrix:
    """Return the gain by formula, relays x deliveries."""
    rates = mc2.diamond(DELIVERIES, q, RELAYS)
    return np.divide(rates["coded"], rates[over])


def _of_formulas() -> list[Claim]:
    ratio, naive, good = _ratio(Q), _ratio(Q, "naive"), _ratio(1.0)
    share = float((ratio > SOME_GAIN).mean())
    bound = 1 / (2 * DELIVERIES) + 1 / 2
    limits = {n: mc2.diamond(SMALL, 1.0, n) for n in (2, 6, 10)}
    slack = 1e-12
    return [
        holds(
            "in most cases over 20 % more than a single path (p from 0.01 to 1, n from 2 to 10)",
            f"in {share:.0%} of them; never from p = {_last_gain(ratio):.2f} on",
            share > 0.5,
        ),
        *(
            within(
                f"gain at q = 1, p = {SMALL:g}, n = {n}", NUMBER, n, _times(rates), relative=EXACT
            )
            for n, rates in limits.items()
        ),
        holds(
            "gain at q = 1 at most 1/(2p) + 1/2",
            f"{(good / bound).max():.2f} of it at most",
            bool((good <= bound + slack).all()),
        ),
        holds(
            "gain rises with n and q and falls with p",
            "at all of the same p and n, q from 0.2 to 1",
            _is_monotone(ratio, slack),
        ),
        holds(
            "coding never below naive multipath, more so with more paths",
            f"{GAIN.write(naive.min())} to {GAIN.write(naive.max())}",
            bool((naive >= 1 - slack).all() and (np.diff(naive, axis=0) >= -slack).all()),
        ),
    ]


def _last_gain(ratio: Matrix) -> float:
    """Return the p from which on no number of relays gains 20 %."""
    return float(DELIVERIES[np.flatnonzero((ratio > SOME_GAIN).any(axis=0)).max() + 1])


def _times(rates: mc2.Rates) -> float:
    return float(rates["coded"]) / float(rates["single"])


def _is_monotone(ratio: Matrix, slack: float) -> bool:
    over_q = np.diff([_ratio(q) for q in np.linspace(0.2, 1, 9)], axis=0)
    return bool(
        (np.diff(ratio, axis=0) >= -slack).all()
        and (np.diff(ratio, axis=1) <= slack).all()
        and (over_q >= -slack).all()
    )


def _of_runs(rows: Rows, scale: Scale) -> list[Claim]:
    claims = []
    least = deliveries(scale)[-1]
    for example in EXAMPLES:
        claims += [on_the_curve(rows, example, way, scale) for way in WAYS]
        for over in ("single", "naive"):
            expected = example.formula("coded", least) / example.formula(over, least)
            found = gains(rows, example, least, over)
            claims.append(
                within(
                    f"simulated gain over {over}, {example.name}, p = {least:g}",
                    GAIN,
                    expected,
                    mean_gain(rows, example, least, over),
                    spread=spread_of(found),
                    relative=ALIKE,
                )
            )
    return claims


def _figure(rows: Rows, scale: Scale) -> Figure:
    figure, axes = panels(2)
    overs: tuple[Way, ...] = ("single", "naive")
    for panel, over, label in zip(axes, overs, ("a single path", "naive multipath"), strict=True):
        ratio = _ratio(Q, over)
        for example in EXAMPLES:
            relays = len(example.paths)
            (line,) = panel.plot(DELIVERIES, ratio[relays - 2], label=f"{relays} relays")
            found = [mean_gain(rows, example, p, over) for p in deliveries(scale)]
            panel.plot(deliveries(scale), found, "o", color=line.get_color(), markersize=4)
        panel.set_xlim(0.05, 1.02)
        panel.set_ylim(bottom=0.9)
        panel.set_xlabel("p")
        panel.set_ylabel(f"times {label}")
        panel.legend(fontsize="small", title="lines: formulas; dots: runs", title_fontsize="small")
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    table = [row for example in EXAMPLES for row in table_rows(rows, example, scale)]
    return Findings(_of_formulas() + _of_runs(rows, scale), table, _figure(rows, scale))


EXPERIMENT = Experiment(
    name="mc2-fig2",
    title="Gain of coded multipath over a single path and over naive multipath",
    reading=(
        f"The diamond with n relays, where one node sends at a time, q = {Q}; eqs. 3 to 6, and "
        "fixed routing with its alpha_1 corrected. Runs are the engine's in slots, over one path "
        "and over all. Naive multipath is a slot model: relays queue all packets and send each "
        "until it is received. The text has no other numbers for this figure than those judged "
        "here."
    ),
    findings=_findings,
    runs=_runs,
    pieces=_pieces,
    size=size,
)
