"""
The stream part: layers from sources to receivers, by every stream scheme.

The rates that are offered follow from the mesh. The frames that the channel takes in a second,
divided by the transmissions of a packet to all receivers over an uncoded tree
(`tree_transmissions`), are the rate that such a tree could carry if nodes sent one after the other.
A case offers shares of that rate.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncmesh.bench import schemes
from ncmesh.bench.instances import LEAST_DELIVERY, RECEIVERS, Instance, connected
from ncmesh.bench.layers import Stream, utility
from ncmesh.bench.meshes import Matrix
from ncmesh.bench.service import Row, Service, number

# Rates of two layers at the reference bit rate, bit/s; other channels have a proportional rate.
LAYERS = {"base": 200e3, "more": 600e3}
WARM_UP_S = 30.0
MEASURED_S = 30.0
PACKET = 1_000

NAMES = ("base", "more", "most")
# Rates of the layers of a case, as shares of that rate, by the number of layers that fit.
FITS = {
    0: (1.4, 0.6, 0.6),
    1: (0.5, 0.8, 0.8),
    2: (0.3, 0.4, 0.8),
    3: (0.15, 0.2, 0.25),
}
# The rate that is added to each in the utility, as a share of all layers.
XI = 0.02


@dataclass(frozen=True)
class Case:
    """Cases beyond the plain two layers."""

    fit: int
    """Layers that fit."""
    receivers: int | None = RECEIVERS
    """None for all nodes."""
    sources: int = 1
    deadline_ms: int = 1000


CASES: dict[str, Case] = {
    **{f"{fit} of 3 layers fit": Case(fit) for fit in FITS},
    "1 of 3 layers fits in 200 ms": Case(1, deadline_ms=200),
    "2 of 3 layers fit to all": Case(2, receivers=None),
    "2 of 3 layers fit of 3 sources": Case(2, sources=3),
}


def tree_transmissions(delivery: Matrix, source: int, receivers: list[int]) -> float:
    """Return the transmissions of a packet over the tree of shortest ways, 1 / delivery long."""
    usable = (delivery >= LEAST_DELIVERY) & (delivery.T >= LEAST_DELIVERY)
    cost = np.where(usable, 1.0 / np.maximum(delivery, LEAST_DELIVERY), np.inf)
    length = np.full(len(delivery), np.inf)
    parent = np.full(len(delivery), -1)
    length[source] = 0.0
    left = set(range(len(delivery)))
    while left:
        at = min(left, key=lambda node: length[node])
        left.remove(at)
        closer = length[at] + cost[at] < length
        length[closer] = length[at] + cost[at][closer]
        parent[closer] = at

    # A node sends until the last of its children has the packet.
    sent: dict[int, float] = {}
    for receiver in receivers:
        node = receiver
        while node != source:
            before = int(parent[node])
            sent[before] = max(sent.get(before, 0.0), float(cost[before, node]))
            node = before
    return sum(sent.values())


def offered(instance: Instance) -> list[Stream]:
    """Return the streams of an instance, packets per second; layers to receivers."""
    mesh = instance.mesh
    place = {name: at for at, name in enumerate(mesh.names)}
    receivers = [place[name] for name in instance.receivers]
    case = CASES.get(instance.case)
    if case is None:
        rates = [rate * mesh.air.speed / (8 * PACKET) for rate in LAYERS.values()]
        return [Stream(place[instance.source], receivers, rates)]
    sources = [place[instance.source]]
    others = [node for node in connected(mesh.delivery) if node not in {*sources, *receivers}]
    draw = random.Random(f"{mesh.name}/sources/{instance.number}")
    sources += draw.sample(others, min(case.sources - 1, len(others)))
    sent = [tree_transmissions(mesh.delivery, source, receivers) for source in sources]
    whole = 1.0 / (mesh.air.seconds(PACKET) * sum(sent))
    rates = [share * whole for share in FITS[case.fit]]
    return [Stream(source, receivers, rates) for source in sources]


def xi(stream: Stream) -> float:
    """Return what is added to the rates of a stream in its utility, packets per second."""
    return XI * sum(stream.layers)


def _traffic(instance: Instance) -> dict[str, Any]:
    streams = [
        {
            "group": f"group{at}" if at else "group",
            "from": instance.mesh.names[stream.source],
            "packet": PACKET,
            "layers": [
                {"name": name, "rate": round(8 * PACKET * rate)}
                for name, rate in zip(NAMES, stream.layers, strict=False)
            ],
            "receivers": [{"node": node} for node in instance.receivers],
            "warm_up_s": WARM_UP_S,
            "seconds": MEASURED_S,
        }
        for at, stream in enumerate(offered(instance))
    ]
    case = CASES.get(instance.case)
    if case is None:
        return {"stream": streams}
    # Schemes without deadlines have no such setting.
    timed = [scheme for scheme in schemes.of("stream") if scheme != "multirate"]
    deadlines = {f"protocol.{scheme}.deadline_ms": case.deadline_ms for scheme in timed}
    return {"stream": streams, **deadlines}


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    found = [] if row["error"] is not None else row["streams"]
    receivers = [of for stream in found for of in stream["receivers"]]
    count = len(offered(instance)) * len(instance.receivers)
    rates = [of["rate_bps"] for of in receivers] or [0.0] * count
    bases = [of["layers"][0]["share"] for of in receivers] or [0.0] * count
    mean = sum(rates) / len(rates)
    return {
        "rates_bps": rates,
        "mean_rate_bps": mean,
        "base_shares": bases,
        "least_base_share": min(bases),
        "score": mean,
    }


def share_of_optimum(instance: Instance, row: Row, best: float) -> float:
    """
    Return a row's share of the optimum, whose utility is `best`.

    It is the geometric mean of the shares that receivers have, each with `xi` added.
    """
    streams = offered(instance)
    rates = [rate / (8 * PACKET) for rate in row["rates_bps"]]
    count = len(instance.receivers)
    got = sum(
        utility(rates[at * count : (at + 1) * count], xi(stream))
        for at, stream in enumerate(streams)
    )
    return math.exp((got - best) / len(rates))


def _line(row: Row) -> str:
    rates: Mapping[str, str] = {
        "mean": number(row["mean_rate_bps"] / 1e3) + " kbit/s",
        "base": number(100 * row["least_base_share"]) + " %",
    }
    share = row["optimum_share"]
    if share is not None:
        rates = {**rates, "of the optimum": f"{share:5.2f}"}
    return "  ".join(f"{name} {value}" for name, value in rates.items())


STREAM = Service(
    "stream",
    {
        "two layers to 4": RECEIVERS,
        **{name: case.receivers for name, case in CASES.items()},
    },
    _traffic,
    _read,
    _line,
)
