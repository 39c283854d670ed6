"""Hansen et al.: CORE (Computer Networks 145, 2018), sections 5, 6.3 and 8."""

from ncmesh_papers.reproduce.core import fig3, fig4, fig5, fig7, fig9, fig10

EXPERIMENTS = tuple(module.EXPERIMENT for module in (fig3, fig4, fig5, fig7, fig9, fig10))
