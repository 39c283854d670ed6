"""Two community meshes as batman-adv measured them (`scenarios/data/README.md`)."""

from __future__ import annotations

import csv
import functools
from importlib import resources

import numpy as np

from ncmesh_papers.reproduce.mc2.mesh import Mesh

COMMUNITIES = ("Stuttgart", "Leipzig")


@functools.cache
def mesh(community: str) -> Mesh:
    """Return the largest Wi-Fi component of a community, with losses at the rate of broadcasts."""
    file = resources.files("ncmesh_papers.reproduce.mc2") / f"freifunk-{community.lower()}.csv"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    links = [(row["from"], row["to"], 1 - float(row["loss"])) for row in csv.DictReader(lines)]
    names = sorted({name for a, b, _ in links for name in (a, b)})
    place = {name: at for at, name in enumerate(names)}
    delivery = np.zeros((len(names), len(names)))
    for a, b, p in links:
        delivery[place[a], place[b]] = p
    return Mesh(f"Freifunk {community}", delivery)
