"""Not in the paper: its figures with source rate limiting again, with an eighth of the time-out of III-B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncmesh.campaign import Run
from ncmesh.reproduce.experiment import Case, Experiment, Scale
from ncmesh.reproduce.pacifier import fig4, fig5, fig6, fig7

SETTING = "protocol.pacifier.timeout_factor"
LIMITED = ("tree_rl", "tree_rl_rrb")


def _less_patient(run: Run) -> Run:
    if run.parameters.get("protocol.pacifier.variant") not in LIMITED:
        return run
    change = {SETTING: 1.0}
    return replace(run, scenario=run.scenario.varied(change), parameters={**run.parameters, **change})


def _short(figure: Experiment) -> Experiment:
    def runs(scale: Scale) -> Mapping[Case, Run]:
        return {case: _less_patient(run) for case, run in figure.runs(scale).items()}

    return replace(
        figure,
        name=f"{figure.name}-short",
        title=f"{figure.title}; an eighth of the time-out",
        reading=f"{figure.reading} The source waits for a child 1 instead of 8 packet times for each packet "
        "that its children owe.",
        runs=runs,
    )


EXPERIMENTS = tuple(_short(module.EXPERIMENT) for module in (fig4, fig5, fig6, fig7))
