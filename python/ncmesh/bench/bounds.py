"""The bounds of instances, each computed once and kept in a file beside the results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ncmesh.bench.bound import least_load, least_transmissions
from ncmesh.bench.cliques import cliques
from ncmesh.bench.files import replace
from ncmesh.bench.instances import Instance
from ncmesh.bench.layers import Limit, optimum
from ncmesh.bench.stream import PACKET, XI, offered, xi
from ncmesh.campaign.scenario import hash_of
from ncmesh.failure import FailureError, Kind

# Streams have a program for each layer. Links that deliver no more than this are left out there.
WEAK_STREAM_LINK = 0.1
# Flows over an arc that the program of an instance may have at most: about a minute.
MOST_FLOWS = 20_000
# Links of radios with fading that deliver no more than this are left out: there are many, and the
# program would take minutes. This raises the bound by 1 to 2 %.
WEAK_RADIO_LINK = 0.05


@dataclass(frozen=True)
class Bound:
    """Least transmissions per packet of a file."""

    total: float
    """Sum over all nodes."""
    clique: float
    """In the most loaded clique of the conflict graph."""


class Bounds:
    """Bounds by what the linear program depends on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.known = json.loads(file.read_text()) if file.is_file() else {}
        except ValueError as error:
            raise FailureError(Kind.FILE, f"{file} has no bounds: {error}") from error

    def of(self, instance: Instance) -> Bound:
        """Return the bound of an instance. It takes seconds if it is not known yet."""
        mesh = instance.mesh
        weak = WEAK_RADIO_LINK if mesh.link_power is None else 0.0
        delivery = [f"{p:.6g}" for p in mesh.delivery.flat]
        key = hash_of([delivery, mesh.names, instance.source, instance.receivers, weak])
        if key not in self.known:
            place = {name: at for at, name in enumerate(mesh.names)}
            source, to = place[instance.source], [place[name] for name in instance.receivers]
            total = least_transmissions(mesh.delivery, source, to, weak)
            clique = least_load(mesh.delivery, source, to, cliques(mesh), weak)
            self.known[key] = [total, clique]
            self._keep()
        return Bound(*self.known[key])

    def of_streams(self, instance: Instance) -> float | None:
        """
        Return the utility of the optimum of an instance of streams.

        It takes seconds if it is not known yet. None if the program would take too long.
        """
        mesh = instance.mesh
        streams = offered(instance)
        least = WEAK_STREAM_LINK
        arcs = int((mesh.delivery > least).sum())
        flows = sum(len(stream.receivers) * len(stream.layers) for stream in streams)
        if mesh.moves or arcs * flows > MOST_FLOWS:
            return None
        delivery = [f"{p:.6g}" for p in mesh.delivery.flat]
        told = [[stream.source, *stream.receivers, *stream.layers] for stream in streams]
        key = hash_of([delivery, mesh.names, told, least, XI])
        if key not in self.known:
            packets = 1.0 / mesh.air.seconds(PACKET)
            limits = [Limit(clique, packets) for clique in cliques(mesh)]
            # Streams of an instance have the same layers, so one xi serves all.
            found = optimum(mesh.delivery, streams, limits, xi(streams[0]), least)
            self.known[key] = found.utility
            self._keep()
        return float(self.known[key])

    def _keep(self) -> None:
        replace(self.file, lambda draft: draft.write_text(json.dumps(self.known)))
