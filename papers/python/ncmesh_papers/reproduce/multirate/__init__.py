"""Paschos et al.: In-Network Congestion Control for Multirate Multicast (IEEE/ACM ToN, 2016)."""

from ncmesh_papers.reproduce.multirate import bounds, fig4, fig6, fig6_cpu, fig6_mesh, fig7, table2

EXPERIMENTS = (
    fig4.EXPERIMENT,
    bounds.EXPERIMENT,
    table2.EXPERIMENT,
    fig6.EXPERIMENT,
    fig6_mesh.EXPERIMENT,
    fig6_cpu.EXPERIMENT,
    fig7.EXPERIMENT,
)
