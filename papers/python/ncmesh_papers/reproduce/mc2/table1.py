"""Table 1: transfers over a diamond of four nodes, simulated and in the lab of real daemons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ncmesh.campaign import Run, Scenario
from ncmesh_papers import mc2
from ncmesh_papers.reproduce.claims import GAIN, Claim, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.plots import panels

# The paper's gains, by the loss from the source to either relay.
PRINTED = {0.2: 1.17, 0.8: 1.25}
# The paper's PHY rate. Its nodes were in one room, its relays next to the destination.
MEDIUM = {"phy": "802.11a", "bit_rate": 6_000_000, "sense": "everyone", "mtu": 1500}
PACKET_BYTES = 1000
# 800 kB at about 1 Mbit/s.
TRANSFER_S = 6.0
# Number of runs in the lab, in real time.
LAB_RUNS = 5
# Tolerance of a gain, as a share of the ratio.
ALIKE = 0.1
SIMULATED, LAB = "simulated", "lab"


@dataclass(frozen=True)
class Way:
    """How packets cross the diamond."""

    scheme: str
    changes: Mapping[str, Any]


# The paper's single path is its prototype over one path; `forward` is ncmesh's uncoded tunnel.
MC2, ONE_PATH, FORWARD = "MC2", "a single path", "`forward`"
WAYS = {
    ONE_PATH: Way("mc2", {"protocol.mc2.paths": 1}),
    FORWARD: Way("forward", {}),
    MC2: Way("mc2", {"protocol.mc2.paths": 2, "protocol.mc2.least_gain": 0.0}),
}
BASELINES = (ONE_PATH, FORWARD)


def _scenario(loss: float, changes: Mapping[str, Any]) -> Scenario:
    flow = {"from": "s", "to": "d", "packet": PACKET_BYTES, "warm_up_s": 1.0, "seconds": TRANSFER_S}
    links = [("s", "r1", loss), ("s", "r2", loss), ("r1", "d", 0.0), ("r2", "d", 0.0)]
    table = {
        "name": "mc2-diamond",
        "nodes": ["s", "r1", "r2", "d"],
        "medium": MEDIUM,
        "link": [{"from": a, "to": b, "loss": lost} for a, b, lost in links],
        "flow": [flow],
    }
    return Scenario(table).varied(changes)


def _variant(world: str, loss: float, way: str) -> str:
    return f"{world}, {loss:.0%} loss, {way}"


def _simulated(scale: Scale) -> dict[Case, Run]:
    made = {}
    for loss in PRINTED:
        for name, way in WAYS.items():
            scenario, parameters = _scenario(loss, way.changes), {"loss": loss, **way.changes}
            for k in scale.indices:
                run = Run(scenario, way.scheme, k, None, parameters)
                made[Case(_variant(SIMULATED, loss, name), k)] = run
    return made


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made = _simulated(scale)
    if scale.lab is None:
        return made
    few = _simulated(replace(scale, topologies=min(LAB_RUNS, scale.topologies)))
    for case, run in few.items():
        made[Case(case.variant.replace(SIMULATED, LAB), case.topology)] = LabRun(
            run.scenario,
            run.scheme,
            run.seed,
            None,
            run.parameters,
            program=scale.lab,
            may_starve=True,
        )
    return made


def _flows(rows: Rows, world: str, loss: float, way: str) -> list[Mapping[str, Any] | None]:
    """Return each run's flow; `None` if iperf3's own connection starved beside it."""
    cases = (Case(_variant(world, loss, way), k) for k in rows.topologies)
    return [next(iter(rows.rows[case]["flows"]), None) for case in cases if case in rows.rows]


def _rates(rows: Rows, world: str, loss: float, way: str) -> list[float]:
    """Return the rates of the runs with a flow."""
    return [flow["throughput_bps"] for flow in _flows(rows, world, loss, way) if flow is not None]


def _claim(rows: Rows, world: str, loss: float, baseline: str) -> Claim:
    form = mc2.diamond(1 - loss, 1.0)
    best = float(form["coded"] / form["single"])
    of_form = f" (closed form {GAIN.write(best)})" if baseline == ONE_PATH else ""
    text = f"gain over {baseline} at {loss:.0%} loss, {world}{of_form}"
    few, several = _rates(rows, world, loss, baseline), _rates(rows, world, loss, MC2)
    if not few or not several:
        return holds(text, "one of the two came to nothing in every run", truth=False)
    plain = fmean(few)
    spread = over_topologies([rate / plain for rate in several])
    return within(text, GAIN, PRINTED[loss], fmean(several) / plain, spread=spread, relative=ALIKE)


def _findings(rows: Rows, scale: Scale) -> Findings:
    worlds = [SIMULATED, LAB] if scale.lab else [SIMULATED]
    table = [
        {
            "world": world,
            "loss": loss,
            "way": way,
            "runs": len(_flows(rows, world, loss, way)),
            "came_to_nothing": len(_flows(rows, world, loss, way)) - len(found),
            "throughput_bps": fmean(found or [0.0]),
            "least_bps": min(found, default=0.0),
            "most_bps": max(found, default=0.0),
        }
        for world in worlds
        for loss in PRINTED
        for way in WAYS
        for found in [_rates(rows, world, loss, way)]
    ]
    figure, axes = panels(len(worlds))
    for panel, world in zip(axes, worlds, strict=True):
        for way in WAYS:
            rates = [fmean(_rates(rows, world, loss, way) or [0.0]) / 1e3 for loss in PRINTED]
            panel.plot([f"{loss:.0%}" for loss in PRINTED], rates, marker="o", label=way)
        panel.set_xlabel(f"loss from the source to a relay ({world})")
        panel.set_ylabel("throughput, kbit/s")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    claims = [
        _claim(rows, world, loss, baseline)
        for world in worlds
        for baseline in BASELINES
        for loss in PRINTED
    ]
    return Findings(claims, table, figure)


def _size(scale: Scale) -> dict[str, str]:
    lab = f"; in the lab {min(LAB_RUNS, scale.topologies)} runs" if scale.lab else ""
    return {
        "scale": f"{scale.name}: {scale.topologies} runs of {TRANSFER_S:g} s{lab}",
        "seeds": f"1 to {scale.topologies}: run k has seed k",
    }


EXPERIMENT = Experiment(
    name="mc2-table1",
    title="transfers over a diamond, low and high loss before the relays",
    reading=(
        "Backlogged datagrams of 1,000 bytes over 802.11a at 6 Mbit/s instead of the paper's UDP "
        "transfers of 800 kB, which take about as long. Relays lose nothing to the "
        "destination, next to which they were; the paper states no loss. A single path is the same "
        "protocol over the best path, as in the prototype. `forward`, not in the paper, sends "
        "packets hop by hop as unicast, which the MAC repeats. In the lab (`--lab`) daemons carry "
        "the kernel's UDP through tunnels. Runs in which iperf3's own connection starved on the "
        "same way count in the table and in no mean."
    ),
    runs=_runs,
    findings=_findings,
    size=_size,
)
