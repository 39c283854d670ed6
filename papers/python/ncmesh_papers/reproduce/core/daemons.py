"""The testbed of section 8 with daemons: five processes, the kernel's UDP, an emulated channel."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.core.testbed import (
    SIMULATED,
    Measured,
    Scheme,
    World,
    cross,
    durations,
    size,
)
from ncmesh_papers.reproduce.experiment import Case, Row, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun

# Tunnels with their defaults: COPE-like forwards below 80 %, and the MAC repeats packets of
# forwarding.
LAB = World(
    "lab",
    {
        "core": Scheme("CORE", "core_nc", {}),
        "cope": Scheme("COPE-like", "cope", {}),
        "forwarding": Scheme("forwarding", "forward", {}),
    },
    (0.0, 0.1, 0.3, 0.5),
)
MEDIUM = {"phy": "802.11b", "bit_rate": "11M", "sense": "everyone"}
# Number of runs of each point, their longest duration in real time, and the warm-up.
LAB_RUNS, LAB_S, WARM_UP_S = 2, 25.0, 1.0
# Interval of samples; a generation takes half a second and more at 50 % loss.
SAMPLE_S = 0.02


def worlds(scale: Scale) -> list[World]:
    """Return both kinds of access, simulated, and the lab if there is one."""
    return [*SIMULATED, LAB] if scale.lab else [*SIMULATED]


def _case(scheme: str, loss: float, number: int) -> Case:
    return Case(f"{LAB.name}, {loss:.0%} loss, {scheme}", number)


def _runs(scale: Scale) -> range:
    return range(1, min(LAB_RUNS, scale.topologies) + 1)


def lab_runs(losses: tuple[float, ...], scale: Scale) -> Mapping[Case, Run]:
    """Return the runs of every scheme at these losses; none without a lab."""
    if scale.lab is None:
        return {}
    made: dict[Case, Run] = {}
    # Points take turns, so that a disturbance of the machine does not meet one point only.
    for number in _runs(scale):
        for loss in losses:
            for name, scheme in LAB.schemes.items():
                made[_case(name, loss, number)] = LabRun(
                    _scenario(loss, min(LAB_S, scale.flow_s)),
                    scheme.engine,
                    number,
                    parameters={"loss": loss},
                    program=scale.lab,
                    sample_s=SAMPLE_S,
                )
    return made


def _scenario(loss: float, seconds: float) -> Scenario:
    flows = cross(loss, {"warm_up_s": WARM_UP_S, "seconds": seconds})
    return Scenario({**flows, "medium": MEDIUM})


def measured(row: Row) -> Measured:
    """Return the results of one run."""
    samples = row["samples"]
    arrived = sum(of[-1] for of in samples["delivered"])
    took = (durations(samples["seconds"], of) for of in samples["delivered"])
    return Measured(
        sum(flow["throughput_bps"] for flow in row["flows"]),
        row["transmissions"] / arrived if arrived else float("inf"),
        tuple(t for of_flow in took for t in of_flow),
    )


def with_lab(rows: Rows, scale: Scale) -> Rows:
    """Add the lab's runs to the simulated ones, with names of the same form."""
    of_lab: dict[Hashable, Measured] = {
        (scheme, LAB.name, loss, number): measured(rows.rows[_case(scheme, loss, number)])
        for scheme in LAB.schemes
        for loss in LAB.losses
        for number in _runs(scale)
        if _case(scheme, loss, number) in rows.rows
    }
    return Rows(rows.rows, {**rows.computed, **of_lab})


def sizes(scale: Scale) -> Mapping[str, str]:
    """Return the size of the experiments, for the page."""
    if scale.lab is None:
        return size(scale)
    seconds = min(LAB_S, scale.flow_s)
    lab = f"{len(_runs(scale))} runs of {seconds:g} s of each point, in real time"
    return {**size(scale), "testbed in the lab": lab}
