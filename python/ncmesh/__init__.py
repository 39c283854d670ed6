"""
Network coding for wireless meshes: simulator, codes and campaigns.

`run` simulates a scenario. `Encoder`, `Recoder` and `Decoder` are the codes, and `gf` has the
arithmetic of their fields. `pacifier` and `more` compute forwarding plans. Campaigns of many runs
are a command: `python -m ncmesh --help`. The papers' models and figures are a package of their own,
`ncmesh_papers`.
"""

from ncmesh import gf, graph, more, pacifier
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
from ncmesh.extras import MissingExtraError
from ncmesh.outcome import Flow, Receiver, Stream, StreamLayer, StreamReceiver
from ncmesh.result import Result, run

__all__ = [
    "Decoder",
    "Encoder",
    "Flow",
    "MissingExtraError",
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
    "gf",
    "graph",
    "loss_matrix",
    "more",
    "pacifier",
    "run",
    "simulate",
]
