"""Not in the paper: its figures with rate limiting, with an eighth of the time-out of III-B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.experiment import Case, Experiment, Scale
from ncmesh_papers.reproduce.pacifier import fig4, fig5, fig6, fig7

SETTING = "protocol.pacifier.timeout_factor"
LIMITED = ("tree_rl", "tree_rl_rrb")


def _with_short_timeout(run: Run) -> Run:
    """Return the run with the short time-out, if its variant limits its rate."""
    if run.parameters.get("protocol.pacifier.variant") not in LIMITED:
        return run
    change = {SETTING: 1.0}
    return replace(
        run, scenario=run.scenario.varied(change), parameters={**run.parameters, **change}
    )


def _short(figure: Experiment) -> Experiment:
    def runs(scale: Scale) -> Mapping[Case, Run]:
        return {case: _with_short_timeout(run) for case, run in figure.runs(scale).items()}

    return replace(
        figure,
        name=f"{figure.name}-short",
        title=f"{figure.title}; an eighth of the time-out",
        reading=f"{figure.reading} For each packet that its children owe, the source waits 1 "
        "packet time instead of 8 to overhear a child.",
        runs=runs,
    )


EXPERIMENTS = tuple(_short(module.EXPERIMENT) for module in (fig4, fig5, fig6, fig7))
