"""Gkantsidis, Hu, Key, Radunovic, Rodriguez, Gheorghiu: Multipath Code Casting (CoNEXT 2007)."""

from ncmesh_papers.reproduce.mc2 import fig2, fig4, fig6, fig7, fig8, optimum, table1

EXPERIMENTS = tuple(module.EXPERIMENT for module in (fig2, fig4, fig6, fig7, fig8, optimum, table1))
