"""Figure 3: transmissions per delivered packet, by analysis and by simulation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncmesh_papers.core_nc import SCHEMES, efficiency
from ncmesh_papers.core_nc.transmissions import from_relay, overheard
from ncmesh_papers.reproduce.claims import GAIN, SHARE, Claim, Spread, holds, refuted, within
from ncmesh_papers.reproduce.core import proofs
from ncmesh_papers.reproduce.core.trials import LABELS, Mean, Trials, losses, piece, size
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

# Loss of the direct links in (b) and of overhearing in (a), from the text.
DIRECT, OVERHEARING = 0.3, 0.5
# Analysis and simulation agree within this share.
TOLERANCE = 0.1
# Means within this number of standard errors are equal.
ERRORS = 3.0
CODED = SCHEMES[2:]
CORE = SCHEMES[3:]
FORWARDING = "forwarding_unconstrained"
BOTH = "both destinations are done"
ENDS: dict[str, Callable[[Trials], Mean]] = {
    BOTH: lambda trials: trials.both,
    "one is done": lambda trials: trials.one,
}
# Packets of each flow in a generation.
GENERATION = 64
# Upper end of the plots.
MOST = 12.0


@dataclass(frozen=True)
class Sweep:
    """One of the figure's plots."""

    name: str
    label: str
    most: float
    """Largest loss."""
    links: Callable[[float], tuple[float, float]]
    """Loss to and from the relay, and of overhearing."""


SWEEPS = (
    Sweep("direct", "loss of direct links; of overhearing 0.5", 0.7, lambda e: (e, OVERHEARING)),
    Sweep("all", "loss of all links", 0.7, lambda e: (e, e)),
    Sweep("overhearing", "loss of overhearing; of direct links 0.3", 0.95, lambda e: (DIRECT, e)),
)
Place = tuple[str, float]


def _places(scale: Scale) -> list[Place]:
    return [(sweep.name, e) for sweep in SWEEPS for e in losses(sweep.most, scale)]


def _links(place: Place) -> tuple[float, float]:
    name, e = place
    return next(sweep for sweep in SWEEPS if sweep.name == name).links(e)


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return {
        (*place, scheme): piece(scheme, *_links(place), scale)
        for place in _places(scale)
        for scheme in SCHEMES
    }


class Curves:
    """Trials and analysis by place and scheme."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.places = _places(scale)
        self.trials: dict[tuple[Place, str], Trials] = {
            (place, scheme): rows.computed[*place, scheme]
            for place in self.places
            for scheme in SCHEMES
        }
        self.analysis = {
            (place, scheme): float(efficiency(scheme, *_links(place)))
            for place in self.places
            for scheme in SCHEMES
        }

    def worst_ratio(self, scheme: str, end: Callable[[Trials], Mean]) -> Spread:
        """Return the ratio of simulation to analysis where they differ most."""
        return self._ratio(scheme, end, self.worst(scheme, end))

    def worst(self, scheme: str, end: Callable[[Trials], Mean]) -> Place:
        """Return the place where simulation and analysis differ most."""
        return max(self.places, key=lambda at: abs(self._ratio(scheme, end, at).middle - 1))

    def _ratio(self, scheme: str, end: Callable[[Trials], Mean], place: Place) -> Spread:
        where = f", in `{place[0]}` at {place[1]:g}"
        return end(self.trials[place, scheme]).over(self.analysis[place, scheme], where)

    def is_below(self, scheme: str, other: str, place: Place) -> bool:
        """Say whether a scheme needs no more than another, beyond statistical error."""
        one, another = self.trials[place, scheme].both, self.trials[place, other].both
        return (
            one.value <= another.value + ERRORS * float(np.hypot(one.error, another.error)) + 1e-9
        )


def _agreement(curves: Curves) -> list[Claim]:
    claims = []
    for until, end in ENDS.items():
        for scheme in CODED:
            ratio = curves.worst_ratio(scheme, end)
            text = (
                f"simulation over analysis where they differ most, {LABELS[scheme]}, until {until}"
            )
            claim = within(text, GAIN, 1.0, ratio.middle, spread=ratio, relative=TOLERANCE)
            if scheme == "core_no_feedback" and end is ENDS[BOTH]:
                place = curves.worst(scheme, end)
                claim = refuted(claim, proofs.of_means(*_links(place), GENERATION, TOLERANCE))
            claims.append(claim)
    return claims


def _order(curves: Curves, scheme: str, other: str) -> Claim:
    exceptions = [place for place in curves.places if not curves.is_below(scheme, other, place)]
    claim = holds(
        f"{LABELS[scheme]} takes no more than {LABELS[other]} everywhere",
        f"at {len(curves.places) - len(exceptions)} of {len(curves.places)} "
        f"points{_where(exceptions)}",
        not exceptions,
    )
    return refuted(claim, proofs.of_order(scheme, other, [_links(at) for at in exceptions]))


def _where(places: Sequence[Place]) -> str:
    """Write each sweep's range of places."""
    ranges: dict[str, list[float]] = {}
    for sweep, e in places:
        ranges.setdefault(sweep, []).append(e)
    texts = [
        f"`{sweep}` " + " to ".join(dict.fromkeys(f"{e:g}" for e in (min(found), max(found))))
        for sweep, found in ranges.items()
    ]
    return f"; not in {', '.join(texts)}" if texts else ""


def _cope_crosses(curves: Curves) -> list[Claim]:
    """Judge where COPE-like and forwarding cross when all links lose alike."""
    at = [place for place in curves.places if place[0] == "all"]
    gaps = [
        curves.trials[place, "cope"].both.value - curves.trials[place, FORWARDING].both.value
        for place in at
    ]
    crossing = float(np.interp(0.0, gaps, [e for _, e in at]))
    e = np.array(crossing)
    share = float(overheard(e, e) * from_relay(e, e, fixed=True))
    return [
        holds(
            "COPE-like is below forwarding at low loss only",
            f"below up to a loss of {crossing:.2f} of all links",
            gaps[0] < 0 < gaps[-1],
        ),
        within(
            "share of pairs a destination decodes where COPE-like and forwarding are alike",
            SHARE,
            0.8,
            share,
            relative=0.1,
        ),
    ]


def _table(curves: Curves) -> list[dict[str, Any]]:
    table = []
    for place in curves.places:
        e_x, e_oh = _links(place)
        for scheme in SCHEMES:
            trials = curves.trials[place, scheme]
            table.append(
                {
                    "sweep": place[0],
                    "e_x": e_x,
                    "e_oh": e_oh,
                    "scheme": scheme,
                    "analysis": curves.analysis[place, scheme],
                    "printed": float(efficiency(scheme, e_x, e_oh, equations="printed")),
                    "both": trials.both.value,
                    "both_error": trials.both.error,
                    "one": trials.one.value,
                    "one_error": trials.one.error,
                }
            )
    return table


def _draw(axes: Axes, sweep: Sweep, curves: Curves) -> None:
    fine = np.linspace(0, sweep.most, 96)
    links = np.array([sweep.links(e) for e in fine]).T
    for scheme in SCHEMES:
        (line,) = axes.plot(fine, efficiency(scheme, *links), label=LABELS[scheme])
        places = [place for place in curves.places if place[0] == sweep.name]
        values = [curves.trials[place, scheme].both.value for place in places]
        axes.plot([e for _, e in places], values, ".", color=line.get_color())
    axes.set_xlabel(sweep.label)
    axes.set_ylabel("transmissions per packet")
    axes.set_ylim(1, MOST)
    axes.legend(fontsize="x-small", loc="upper left")


def _figure(curves: Curves) -> Figure:
    figure, axes = panels(len(SWEEPS))
    for own, sweep in zip(axes, SWEEPS, strict=True):
        _draw(own, sweep, curves)
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    curves = Curves(rows, scale)
    orders = [_order(curves, scheme, other) for scheme in CORE for other in (FORWARDING, "cope")]
    claims = [*_agreement(curves), *orders, *_cope_crosses(curves)]
    return Findings(claims, _table(curves), _figure(curves))


EXPERIMENT = Experiment(
    name="core-fig3",
    title="Transmissions per delivered packet, by analysis and by simulation",
    reading=(
        "Lines are the analysis, with its equations corrected; dots are trials of generations of "
        "64 over GF(2^8) that end, as the paper's, when both destinations have their flow. The "
        "analysis counts until one has: that is a comparison of its own. Panel (a) is drawn as "
        "its caption says, with overhearing fixed, and again with all links alike; (b) is the "
        "third. A scheme takes no more than another where its mean is not higher by more than 3 "
        "standard errors."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
