"""
Papers' figures and tables, run anew.

An `Experiment` is a module: its runs, how its figure is drawn, and a row per claim of the paper with ours
beside it and the word `agrees` or `differs`. Runs go through `ncmesh.campaign`, so that they are kept; what
is computed without a mesh is made in `Piece`s by the same workers.
"""

from ncmesh.reproduce import core, mc2, multirate, pacifier, tcp
from ncmesh.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for paper in (pacifier, core, multirate, tcp, mc2) for e in paper.EXPERIMENTS
}
# Groups by the scheme that a paper brings, where experiments are named otherwise.
SCHEMES = {"xor": "tcp"}

__all__ = ["EXPERIMENTS", "SCHEMES", "Experiment"]
