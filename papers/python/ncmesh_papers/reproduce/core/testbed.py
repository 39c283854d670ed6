"""The testbed of section 8, simulated: two sources, a relay, two destinations, and the engines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import ncmesh
from ncmesh_papers.reproduce.claims import Spread
from ncmesh_papers.reproduce.experiment import Rows, Scale
from ncmesh_papers.reproduce.piece import Piece

LOSSES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
GENERATION = 64
PACKET_BYTES = 1100
# All nodes sense each other, as in one room. In slots nothing collides and each frame takes one,
# feedback too; over 802.11a broadcasts collide and feedback is short.
ACCESS: Mapping[str, Mapping[str, str]] = {
    "slotted": {"mac": "slotted", "conflict": "shared_hearer"},
    "802.11a": {"mac": "dcf"},
}


@dataclass(frozen=True)
class Scheme:
    """One of the paper's schemes: its label, and the engine with its settings."""

    label: str
    engine: str
    settings: Mapping[str, Any]


# Up to five packets in a negative acknowledgment (table 3), and COPE-like without the 80 % rule
# (8).
SCHEMES: Mapping[str, Scheme] = {
    "core": Scheme("CORE", "core_nc", {"relay": "core"}),
    "core_no_recoding": Scheme("CORE, no recoding", "core_nc", {"relay": "non_recoding"}),
    "cope": Scheme("COPE-like", "cope", {"min_decodable": 0.0, "wanted": 5}),
    "forwarding": Scheme("forwarding", "cope", {"coding": False, "wanted": 5}),
}


@dataclass(frozen=True)
class World:
    """A setting in which schemes are compared, with the losses of all links."""

    name: str
    schemes: Mapping[str, Scheme]
    losses: tuple[float, ...]

    def known(self, schemes: tuple[str, ...]) -> list[str]:
        """Return those of `schemes` that run here."""
        return [scheme for scheme in schemes if scheme in self.schemes]


SIMULATED = tuple(World(access, SCHEMES, LOSSES) for access in ACCESS)


@dataclass(frozen=True)
class Measured:
    """Results of one run."""

    throughput_bps: float
    """Sum of both flows."""
    transmissions: float
    """Data frames of all nodes per packet delivered."""
    generations_s: tuple[float, ...]
    """Time from the end of the previous generation to its own, for both flows."""


def cross(loss: float, flow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cross of figure 6, with equal links and flows."""
    ends = [("s1", "r"), ("s2", "r"), ("r", "d1"), ("r", "d2"), ("s1", "d2"), ("s2", "d1")]
    flow = {"packet": PACKET_BYTES, **flow}
    return {
        "name": "cross",
        "nodes": ["s1", "s2", "r", "d1", "d2"],
        "link": [{"from": a, "to": b, "loss": loss} for a, b in ends],
        "flow": [{**flow, "from": "s1", "to": "d1"}, {**flow, "from": "s2", "to": "d2"}],
    }


def scenario(access: str, loss: float, seconds: float) -> dict[str, Any]:
    """Return the cross for the simulator."""
    return {
        **cross(loss, {"seconds": seconds}),
        "sealed": False,
        "medium": {"phy": "802.11a", "bit_rate": "6M", "sense": "everyone", **ACCESS[access]},
        "measure": {"seconds": 100.0, "bytes": PACKET_BYTES, "period_s": 0.1},
    }


def run(scheme: str, access: str, loss: float, seconds: float, seed: int) -> Measured:
    """Run a scheme once."""
    chosen = SCHEMES[scheme]
    table = {**scenario(access, loss, seconds), "protocol": {chosen.engine: dict(chosen.settings)}}
    result = ncmesh.run(table, seed=seed, scheme=chosen.engine)
    delivered = sum(flow.delivered for flow in result.flows)
    took = (durations(flow.series.seconds, flow.series.delivered) for flow in result.flows)
    return Measured(
        sum(flow.throughput_bps for flow in result.flows),
        result.transmissions / delivered if delivered else float("inf"),
        tuple(t for of_flow in took for t in of_flow),
    )


def durations(seconds: Sequence[float], delivered: Sequence[int]) -> list[float]:
    """Return the times between deliveries of each 64th packet, as exact as the samples."""
    ends: list[float] = []
    for at, count in zip(seconds, delivered, strict=True):
        ends += [at] * (count // GENERATION - len(ends))
    return [later - earlier for earlier, later in pairwise(ends)]


def pieces(losses: tuple[float, ...], scale: Scale) -> Mapping[Hashable, Piece]:
    """Return every scheme with every access at these losses, once for each seed."""
    return {
        (scheme, access, e, seed): Piece(
            run,
            {"scheme": scheme, "access": access, "loss": e, "seconds": scale.flow_s, "seed": seed},
        )
        for scheme in SCHEMES
        for access in ACCESS
        for e in losses
        for seed in scale.indices
    }


def runs_of(rows: Rows, scheme: str, access: str, loss: float) -> list[Measured]:
    """Return all runs of one kind, by seed."""
    wanted = (scheme, access, loss)
    return [
        value
        for name, value in rows.computed.items()
        if isinstance(name, tuple) and name[:3] == wanted
    ]


def throughput(rows: Rows, scheme: str, access: str, loss: float) -> Spread:
    """Return the mean over seeds in bit/s, and a standard deviation to either side."""
    found = [measured.throughput_bps for measured in runs_of(rows, scheme, access, loss)]
    mean, deviation = fmean(found), stdev(found) if len(found) > 1 else 0.0
    return Spread(mean - deviation, mean, mean + deviation, "± a standard deviation")


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiments, for the page."""
    count = len(scale.indices)
    return {
        "testbed": f"{scale.name}: {count} runs of {scale.flow_s:g} s of each point, simulated",
        "its seeds": f"1 to {count}",
    }
