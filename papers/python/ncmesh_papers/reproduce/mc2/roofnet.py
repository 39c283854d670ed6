"""
Generated meshes like MIT Roofnet, whose own loss matrix is no longer available.

The rule below meets what is published of Roofnet:

- 38 nodes in a city, loss rates spread evenly over the whole range, no threshold between in and
  out of range, little dependence on distance (Aguayo, Bicket, Biswas, Judd, Morris, *Link-level
  measurements from an 802.11b mesh network*, SIGCOMM 2004);
- a third of the links asymmetric, here: deliveries of the two directions more than 0.25 apart;
- routes of three hops on average (Bicket, Aguayo, Biswas, Morris, *Architecture and evaluation of
  an unplanned 802.11b mesh network*, MobiCom 2005).

Nodes are placed evenly in a rectangle. The strength of a directed link in dB falls with distance
and has two normal parts, one for the pair and one for the direction. The strongest directed links
are audible, and their delivery falls evenly with their rank, from 1 to 0.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from dataclasses import dataclass

import numpy as np

from ncmesh_papers.reproduce.mc2.mesh import Matrix, Mesh

NODES = 38
SIDES_M = (2400.0, 2500.0)
# Strength falls by 10 times this for each tenfold distance.
EXPONENT = 3.0
# Standard deviations of the parts of the pair and of the direction, in dB.
PAIR_DB, DIRECTION_DB = 10.0, 4.0
# Share of all directed links that is audible, by bit rate. The share at 11 Mbit/s, which needs
# about 2 dB more, is not published.
AUDIBLE = {5.5e6: 0.25, 11e6: 0.19}


@dataclass(frozen=True)
class Placed:
    """Nodes with the strengths of the links between them."""

    positions: tuple[tuple[float, float], ...]
    """In metres."""
    strength: Matrix
    """Strength of the link from i to j, in dB over any level; -inf on the diagonal."""


@functools.cache
def placed(number: int) -> Placed:
    """Return the nodes of a mesh, drawn from its number."""
    draw = random.Random(number)
    positions = [(draw.uniform(0, SIDES_M[0]), draw.uniform(0, SIDES_M[1])) for _ in range(NODES)]
    strength = np.full((NODES, NODES), -np.inf)
    for i, j in itertools.combinations(range(NODES), 2):
        distance = max(math.dist(positions[i], positions[j]), 1.0)
        pair = draw.gauss(0, PAIR_DB) - 10 * EXPONENT * math.log10(distance)
        strength[i, j] = pair + draw.gauss(0, DIRECTION_DB)
        strength[j, i] = pair + draw.gauss(0, DIRECTION_DB)
    return Placed(tuple(positions), strength)


@functools.cache
def mesh(number: int, bit_rate: float) -> Mesh:
    """Return the mesh at a bit rate of `AUDIBLE`."""
    strength = placed(number).strength
    audible = round(AUDIBLE[bit_rate] * NODES * (NODES - 1))
    delivery = np.zeros(strength.size)
    strongest = np.argsort(-strength, axis=None, kind="stable")[:audible]
    delivery[strongest] = 1 - (np.arange(audible) + 0.5) / audible
    name = f"generated, {bit_rate / 1e6:g} Mbit/s"
    return Mesh(name, delivery.reshape(strength.shape), bit_rate)
