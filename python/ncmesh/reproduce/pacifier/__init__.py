"""Koutsonikolas, Hu, Wang: Pacifier (IEEE/ACM ToN 20(5), 2012), sections IV and V."""

from ncmesh.reproduce.pacifier import fig2, fig3, fig4, fig5, fig6, fig7, fig8_9, timeout

MODULES = (fig2, fig3, fig4, fig5, fig6, fig7, fig8_9, timeout)
EXPERIMENTS = tuple(module.EXPERIMENT for module in MODULES)
