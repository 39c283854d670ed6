"""
What coding saves where two flows cross at a relay: CORE's analysis, and a Monte-Carlo with real ranks.

Hansen, Krigslund, Lucani, Pahlevani, Fitzek: "Bridging inter-flow and intra-flow network coding in wireless
mesh networks", Computer Networks 145, 2018, section 5 and eq. 35. Sources S1 and S2 send to D1 and D2 through
the relay R; D1 overhears S2, D2 overhears S1. `e_x` is the loss of the four links to and from the relay,
`e_oh` that of the two by which destinations overhear. How each equation is read: docs/core_nc.md.
"""

from ncmesh.core_nc.credit import decode_probability
from ncmesh.core_nc.load import throughput
from ncmesh.core_nc.montecarlo import simulate
from ncmesh.core_nc.transmissions import SCHEMES, efficiency

__all__ = ["SCHEMES", "decode_probability", "efficiency", "simulate", "throughput"]
