"""
Network coding for wireless meshes: simulator, codes and campaigns.

`run` simulates a scenario. `Encoder`, `Recoder` and `Decoder` code generations, `Window`
codes streams, and `gf` has the arithmetic of their fields. `pacifier` and `more` compute forwarding
plans; `run` follows one of your own, too. Campaigns of many runs are a command: `python -m ncmesh
--help`. The papers' models and figures are a package of their own, `ncmesh_papers`.
"""

from ncmesh import gf, graph, more, pacifier
from ncmesh._ncmesh import (
    Combination,
    Decoder,
    Encoder,
    Recoder,
    ScenarioError,
    UnreachableError,
    Window,
    __version__,
    check,
    loss_matrix,
    simulate,
)
from ncmesh.extras import MissingExtraError
from ncmesh.outcome import Flow, Receiver, Stream, StreamLayer, StreamReceiver
from ncmesh.result import Result, run

__all__ = [
    "Combination",
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
    "Window",
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
