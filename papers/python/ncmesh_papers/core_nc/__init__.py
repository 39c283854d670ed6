"""
CORE's analysis of two flows that cross at a relay, and trials with real coding coefficients.

Sources S1 and S2 send to D1 and D2 through the relay R; D1 overhears S2 and D2 overhears S1. `e_x`
is the loss of the four links to and from the relay, `e_oh` the loss of the two links over which
destinations overhear. `efficiency`, `throughput` and `decode_probability` are the paper's formulas
with their errors corrected, `simulate` runs trials.

Source: Hansen, Krigslund, Lucani, Pahlevani, Fitzek: "Bridging inter-flow and intra-flow network
coding in wireless mesh networks", Computer Networks 145, 2018, section 5 and eq. 35.
"""

from ncmesh_papers.core_nc.credit import decode_probability
from ncmesh_papers.core_nc.load import throughput
from ncmesh_papers.core_nc.montecarlo import simulate
from ncmesh_papers.core_nc.transmissions import SCHEMES, efficiency

__all__ = ["SCHEMES", "decode_probability", "efficiency", "simulate", "throughput"]
