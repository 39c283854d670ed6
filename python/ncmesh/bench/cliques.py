"""
Cliques of the conflict graph: sets of nodes of which only one can send at a time.

Two nodes are in conflict if they sense each other, that is if frames of one reach the other. Where
power fades, sensing fades too; there, frames must pass with `instances.LEAST_DELIVERY`. A clique is
grown greedily from each pair in conflict, by the node that is in conflict with the most others of
those that could still be added. Not all maximal cliques are found, so the most loaded one may be
missed; a bound over fewer cliques is lower, and still a bound.
"""

from __future__ import annotations

import numpy as np

from ncmesh.bench.instances import LEAST_DELIVERY
from ncmesh.bench.meshes import Mesh


def cliques(mesh: Mesh) -> list[tuple[int, ...]]:
    """Return maximal cliques that cover every conflict, and nodes without conflicts."""
    heard = mesh.delivery >= LEAST_DELIVERY if mesh.link_power is None else mesh.delivery > 0
    conflict = heard | heard.T
    np.fill_diagonal(conflict, False)
    degree = conflict.sum(axis=1)
    found: dict[tuple[int, ...], None] = {}
    for i in range(len(conflict)):
        if not degree[i]:
            found[(i,)] = None
        for j in np.flatnonzero(conflict[i, i + 1 :]) + i + 1:
            clique = [i, int(j)]
            common = conflict[i] & conflict[j]
            while common.any():
                best = int(np.argmax(np.where(common, degree, -1)))
                clique.append(best)
                common &= conflict[best]
            found[tuple(sorted(clique))] = None
    return list(found)
