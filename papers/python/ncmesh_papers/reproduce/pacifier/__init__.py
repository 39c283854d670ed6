"""Koutsonikolas, Hu, Wang: Pacifier (IEEE/ACM ToN 20(5), 2012), sections IV and V."""

from ncmesh_papers.reproduce.pacifier import fig2, fig3, fig4, fig5, fig6, fig7, fig8_9

FIGURES = (fig2, fig3, fig4, fig5, fig6, fig7, fig8_9)
EXPERIMENTS = (
    *(module.EXPERIMENT for module in FIGURES),
    fig8_9.EQUAL_POWERS,
)
