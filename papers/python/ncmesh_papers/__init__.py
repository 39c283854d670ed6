"""
The papers behind ncmesh: their models, and their figures run anew.

`core_nc`, `mc2`, `multirate` and `tcp_model` compute what four of the papers derive: closed forms,
optima and slotted models. `reproduce` runs the figures and tables of all five papers in ncmesh's
simulator, or in its lab of real daemons, and compares them with what the papers claim:
`python -m ncmesh_papers reproduce --help`. The slotted models are compiled (`papers/crates`).
"""

from ncmesh_papers import core_nc, mc2, multirate, tcp_model
from ncmesh_papers._models import __version__

__all__ = ["__version__", "core_nc", "mc2", "multirate", "tcp_model"]
