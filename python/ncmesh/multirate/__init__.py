"""
Multirate multicast with in-network congestion control (Paschos et al., IEEE/ACM ToN 24(5), 2016).

`simulate` runs the policies in the paper's slotted wireline model, compiled and deterministic from a seed;
`optimum` solves the flow problems (3)-(7) and (20) that they approach. A network is a dict:

    {"links": [{"from": "s", "to": "a", "capacity": 1.0}, ...],
     "sessions": [{"source": "s", "receivers": ["a"], "tree": [0], "rate": 1.0, "arrivals": "poisson"}]}

Rates and capacities are in packets per slot.
"""

from ncmesh.multirate.optimum import Optimum, optimum
from ncmesh.multirate.simulation import Extent, Queue, Simulation, simulate
from ncmesh.multirate.utility import Utilities

__all__ = ["Extent", "Optimum", "Queue", "Simulation", "Utilities", "optimum", "simulate"]
