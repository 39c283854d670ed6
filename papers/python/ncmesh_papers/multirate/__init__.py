"""
Multirate multicast with in-network congestion control (Paschos et al., IEEE/ACM ToN 24(5), 2016).

`simulate` runs the policies in the paper's slotted wireline network, compiled and deterministic for
a seed. `optimum` solves the flow problems (3)-(7) and (20) that the policies approach. A network is
a dict:

    {"links": [{"from": "s", "to": "a", "capacity": 1.0}, ...],
     "sessions": [{"source": "s", "receivers": ["a"], "tree": [0], "rate": 1.0}]}

Rates and capacities are in packets per slot.
"""

from ncmesh_papers.multirate.optimum import Optimum, optimum
from ncmesh_papers.multirate.simulation import Extent, Queue, Simulation, simulate
from ncmesh_papers.multirate.utility import Utilities

__all__ = ["Extent", "Optimum", "Queue", "Simulation", "Utilities", "optimum", "simulate"]
