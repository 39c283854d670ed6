"""The bounds of files, each computed once and kept in a file beside the results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ncmesh.bench.bound import least_load, least_transmissions
from ncmesh.bench.cliques import cliques
from ncmesh.bench.files import replace
from ncmesh.bench.instances import Instance
from ncmesh.campaign.scenario import hash_of
from ncmesh.failure import FailureError, Kind

# Links of radios with fading that deliver no more than this are left out: there are many, and the
# program would take minutes. This raises the bound by 1 to 2 %.
WEAK_RADIO_LINK = 0.05


@dataclass(frozen=True)
class Bound:
    """Least transmissions per packet of a file."""

    total: float
    """Of all nodes."""
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
            replace(self.file, lambda draft: draft.write_text(json.dumps(self.known)))
        return Bound(*self.known[key])
