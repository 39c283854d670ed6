"""
What MC2 can reach at best (Gkantsidis et al.: Multipath Code Casting, CoNEXT 2007).

`diamond` and `hexagon` are the closed forms of the paper's examples (section 2), `optimum` solves
the same program for any mesh and set of flows, and `best_paths` finds the paths that the protocol
takes (3.1). Rates are in packets per slot; a node sends at most one packet in a slot.
"""

from ncmesh_papers.mc2.closed_forms import Rates, diamond, hexagon
from ncmesh_papers.mc2.mesh import Conflict, best_paths
from ncmesh_papers.mc2.program import Optimum, Utility, optimum

__all__ = ["Conflict", "Optimum", "Rates", "Utility", "best_paths", "diamond", "hexagon", "optimum"]
