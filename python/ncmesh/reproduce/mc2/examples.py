"""Diamond and hexagon over the delivery of the source's links: closed forms, and runs held against them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from ncmesh import mc2
from ncmesh.campaign import Run
from ncmesh.reproduce.claims import Claim, Spread, Unit, over_topologies, within
from ncmesh.reproduce.experiment import Case, Rows, Scale
from ncmesh.reproduce.mc2 import mesh, naive
from ncmesh.reproduce.mc2.mesh import Mesh, across, rate, slots_of
from ncmesh.reproduce.piece import Piece

# Of all links but the source's.
Q = 0.8
# Rates of runs may be off the closed forms by so much: the project's target is 97 % of the optimum.
ON_THE_CURVE = 0.03
Way = Literal["coded", "naive", "single"]
WAYS: tuple[Way, ...] = ("coded", "naive", "single")

RATIO = Unit(lambda ratio: f"{100 * ratio:.1f} %")


@dataclass(frozen=True)
class Example:
    """A topology for every delivery `p` of the source's links."""

    name: str
    paths: Sequence[Sequence[int]]
    mesh: Callable[[float], Mesh]
    closed_form: Callable[[float], mc2.Rates]

    def variant(self, p: float, paths: int) -> str:
        """Of the runs over so many paths; over one, it is the same with any number of relays."""
        name = self.name if paths > 1 else self.name.partition(",")[0]
        return f"{name}, p = {p:g}, {paths} paths"

    def formula(self, way: Way, p: float) -> float:
        """Packets per slot by the closed form."""
        return float(self.closed_form(p)[way])


def with_relays(relays: int) -> Example:
    """The diamond with so many relays."""
    paths = [[0, relay, relays + 1] for relay in range(1, relays + 1)]
    return Example(
        "diamond" if relays == 2 else f"diamond, {relays} relays",
        paths,
        lambda p: mesh.diamond(p, Q, relays),
        lambda p: mc2.diamond(p, Q, relays),
    )


DIAMOND = with_relays(2)
HEXAGON = Example(
    "hexagon", [[0, 1, 2, 5], [0, 3, 4, 5]], lambda p: mesh.hexagon(p, Q), lambda p: mc2.hexagon(p, Q)
)


def deliveries(scale: Scale) -> list[float]:
    """The values of p, from 1 down."""
    step = 2 * scale.loss_step
    return [round(1 - k * step, 6) for k in range(round(0.9 / step) + 1) if 1 - k * step > 0.05]


def runs(examples: Iterable[Example], scale: Scale) -> dict[Case, Run]:
    """By MC2 over one path and over all of each example's."""
    made: dict[Case, Run] = {}
    for example in examples:
        for p in deliveries(scale):
            of_p = example.mesh(p)
            for paths in (1, len(example.paths)):
                for k in scale.indices:
                    case = Case(example.variant(p, paths), k)
                    if case not in made:
                        made[case] = of_p.run(across(of_p), paths, k, slots_of(scale))
    return made


def naive_pieces(examples: Iterable[Example], scale: Scale) -> Mapping[Hashable, Piece]:
    """The same without coding."""
    return {
        (example.name, p, k): Piece(
            naive.simulate,
            {
                "mesh": example.mesh(p),
                "paths": example.paths,
                "slots": slots_of(scale).measured // 2,
                "seed": k,
            },
        )
        for example in examples
        for p in deliveries(scale)
        for k in scale.indices
    }


def simulated(rows: Rows, example: Example, way: Way, p: float) -> list[float]:
    """Packets per slot, by seed."""
    if way == "naive":
        found = rows.computed.items()
        return [value for of, value in found if isinstance(of, tuple) and of[:2] == (example.name, p)]
    paths = 1 if way == "single" else len(example.paths)
    return [rate(rows.rows[Case(example.variant(p, paths), k)]) for k in rows.topologies]


def gains(rows: Rows, example: Example, p: float, over: Way = "single") -> list[float]:
    """Of MC2 over another way, by seed."""
    pairs = zip(simulated(rows, example, "coded", p), simulated(rows, example, over, p), strict=True)
    return [coded / other for coded, other in pairs if other > 0]


def mean_gain(rows: Rows, example: Example, p: float, over: Way = "single") -> float:
    """Of the mean rates over seeds."""
    coded, other = (fmean(simulated(rows, example, way, p)) for way in ("coded", over))
    return coded / other if other > 0 else 0.0


def on_the_curve(rows: Rows, example: Example, way: Way, scale: Scale) -> Claim:
    """Whether the means of runs lie on the closed form: the p at which they are farthest from it."""
    shares = {
        p: [rate / example.formula(way, p) for rate in simulated(rows, example, way, p)]
        for p in deliveries(scale)
    }
    worst = max(shares, key=lambda p: abs(fmean(shares[p]) - 1))
    return within(
        f"{way}, {example.name}: simulated over closed form, farthest from 1 (p = {worst:g})",
        RATIO,
        1.0,
        fmean(shares[worst]),
        spread=over_topologies(shares[worst]),
        absolute=ON_THE_CURVE,
    )


def table_rows(rows: Rows, example: Example, scale: Scale) -> list[dict[str, Any]]:
    """A row for each p and way."""
    return [
        {
            "topology": example.name,
            "p": p,
            "way": way,
            "closed_form": example.formula(way, p),
            "simulated": fmean(found),
            "least": min(found),
            "most": max(found),
        }
        for p in deliveries(scale)
        for way in WAYS
        for found in [simulated(rows, example, way, p)]
    ]


def spread_of(values: Sequence[float]) -> Spread | None:
    """Least, median and most of gains; none where there are none."""
    return over_topologies(values) if values else None


def size(scale: Scale) -> dict[str, str]:
    """For the head of the page."""
    slots = slots_of(scale)
    return {
        "scale": f"{scale.name}: {scale.topologies} seeds, {slots.measured:,} slots after {slots.warm_up:,}",
        "seeds": f"1 to {scale.topologies}: of run k, k",
    }
