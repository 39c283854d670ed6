"""
What MC2 can reach at best (Gkantsidis et al., Multipath Code Casting, CoNEXT 2007).

`diamond` and `hexagon` are closed forms of its examples (section 2), `optimum` is the same program for any
mesh and set of flows, `best_paths` finds the paths that the protocol takes (3.1). Rates are in packets per
slot: a node sends at most one packet in a slot.

`optimum` and `best_paths` need the extra `analysis` and raise `ImportError` without it.
"""

from ncmesh.mc2.closed_forms import Rates, diamond, hexagon
from ncmesh.mc2.mesh import Conflict, best_paths
from ncmesh.mc2.program import Optimum, Utility, optimum

__all__ = ["Conflict", "Optimum", "Rates", "Utility", "best_paths", "diamond", "hexagon", "optimum"]
