"""Huang, Ghaderi, Towsley, Gong: TCP performance in coded wireless mesh networks (SECON 2008)."""

from ncmesh_papers.reproduce.tcp import coding_ratio, fig6, fig8, model, sweep, table2

EXPERIMENTS = tuple(
    module.EXPERIMENT for module in (fig6, coding_ratio, fig8, table2, sweep, model)
)
