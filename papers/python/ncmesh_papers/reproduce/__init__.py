"""
The papers' figures and tables, run anew and compared with the papers' claims.

An `Experiment` is a module: it names its runs, draws its figure, and judges each claim of the
paper. Runs go through `ncmesh.campaign`, which keeps their results. What is computed without a mesh
is made in `Piece`s by the same workers. `command` is the command line, `page` renders the papers'
pages, and `results` records verdicts.
"""

from ncmesh_papers.reproduce import core, mc2, multirate, pacifier, tcp
from ncmesh_papers.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for paper in (pacifier, core, multirate, tcp, mc2) for e in paper.EXPERIMENTS
}
# Other names for groups: by the scheme that a paper brings.
SCHEMES = {"xor": "tcp"}
# Analysis and slotted models that take seconds at full scale. Every test run checks their verdicts.
CHEAP = (
    "core-fig5",
    "core-fig7",
    "mmu-fig4",
    "mmu-table2",
    "mmu-fig6-slotted",
    "mmu-fig7",
    "tcp-model",
)

__all__ = ["CHEAP", "EXPERIMENTS", "SCHEMES", "Experiment"]
