"""
Network coding for wireless meshes: the simulator, the codes and what is built on them.

`run` simulates a scenario's transfer. `Encoder`, `Recoder` and `Decoder` are the codes, `gf` the fields
they work in, `pacifier` plans who forwards how much.
"""

from ncmesh import gf, pacifier
from ncmesh._ncmesh import (
    Decoder,
    Encoder,
    Recoder,
    ScenarioError,
    UnreachableError,
    __version__,
    check,
    simulate,
)
from ncmesh.result import Receiver, Result, run

__all__ = [
    "Decoder",
    "Encoder",
    "Receiver",
    "Recoder",
    "Result",
    "ScenarioError",
    "UnreachableError",
    "__version__",
    "check",
    "gf",
    "pacifier",
    "run",
    "simulate",
]
