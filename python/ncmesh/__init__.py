"""
Network coding for wireless meshes: the simulator, the codes and what is built on them.

`run` simulates a scenario's transfer. `Encoder`, `Recoder` and `Decoder` are the codes, `gf` the fields they
work in, `pacifier` and `more` plan who forwards how much, `core_nc` is the analysis of flows that cross,
`multirate` is multicast in which each receiver has its own rate, `tcp_model` what coding is worth to TCP.
Campaigns of many runs and papers reproduced are commands: `python -m ncmesh --help`.
"""

from ncmesh import core_nc, gf, mc2, more, multirate, pacifier, tcp_model
from ncmesh._ncmesh import (
    Decoder,
    Encoder,
    Recoder,
    ScenarioError,
    UnreachableError,
    __version__,
    check,
    loss_matrix,
    simulate,
)
from ncmesh.result import Flow, Receiver, Result, Stream, StreamLayer, StreamReceiver, run

__all__ = [
    "Decoder",
    "Encoder",
    "Flow",
    "Receiver",
    "Recoder",
    "Result",
    "ScenarioError",
    "Stream",
    "StreamLayer",
    "StreamReceiver",
    "UnreachableError",
    "__version__",
    "check",
    "core_nc",
    "gf",
    "loss_matrix",
    "mc2",
    "more",
    "multirate",
    "pacifier",
    "run",
    "simulate",
    "tcp_model",
]
