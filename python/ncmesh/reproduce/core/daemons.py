"""The testbed of section 8 with real daemons: five processes, the kernel's UDP, an emulated medium."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ncmesh.campaign import Run, Scenario
from ncmesh.reproduce.core.testbed import SIMULATED, Measured, Scheme, World, cross, durations, size
from ncmesh.reproduce.experiment import Case, Row, Rows, Scale
from ncmesh.reproduce.lab import LabRun

# The tunnels as they are: COPE-like forwards below 80 %, and forwarding has packets repeated hop by hop.
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
PROBES = {"probe_size": 200, "fast_period_s": 0.1}
# In real time: so many runs of each point, so long at most.
LAB_RUNS, LAB_S, WARM_UP_S = 2, 25.0, 1.0
# A generation takes half a second and more at 50 % loss.
SAMPLE_S = 0.02


def worlds(scale: Scale) -> list[World]:
    """Both kinds of access, simulated, and the lab if there is one."""
    return [*SIMULATED, LAB] if scale.lab else [*SIMULATED]


def _case(scheme: str, loss: float, number: int) -> Case:
    return Case(f"{LAB.name}, {loss:.0%} loss, {scheme}", number)


def _runs(scale: Scale) -> range:
    return range(1, min(LAB_RUNS, scale.topologies) + 1)


def lab_runs(losses: tuple[float, ...], scale: Scale) -> Mapping[Case, Run]:
    """Every scheme at these losses, so many times; none without a lab."""
    if scale.lab is None:
        return {}
    made: dict[Case, Run] = {}
    # One round of all after the other: what disturbs the machine for a while does not meet one point only.
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
    return Scenario({**flows, "medium": MEDIUM, "protocol": {"link": PROBES}})


def measured(row: Row) -> Measured:
    """What one run gave."""
    samples = row["samples"]
    arrived = sum(of[-1] for of in samples["delivered"])
    took = (durations(samples["seconds"], of) for of in samples["delivered"])
    return Measured(
        sum(flow["throughput_bps"] for flow in row["flows"]),
        row["transmissions"] / arrived if arrived else float("inf"),
        tuple(t for of_flow in took for t in of_flow),
    )


def with_lab(rows: Rows, scale: Scale) -> Rows:
    """The runs of the lab beside those that were simulated, named alike."""
    of_lab: dict[Hashable, Measured] = {
        (scheme, LAB.name, loss, number): measured(rows.rows[_case(scheme, loss, number)])
        for scheme in LAB.schemes
        for loss in LAB.losses
        for number in _runs(scale)
        if _case(scheme, loss, number) in rows.rows
    }
    return Rows(rows.rows, {**rows.computed, **of_lab})


def sizes(scale: Scale) -> Mapping[str, str]:
    """For the head of a page."""
    if scale.lab is None:
        return size(scale)
    seconds = min(LAB_S, scale.flow_s)
    lab = f"{len(_runs(scale))} runs of {seconds:g} s of each point, in real time"
    return {**size(scale), "testbed in the lab": lab}
