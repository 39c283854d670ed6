"""Figure 8: efficiency over 802.11 in diamond and hexagon, by offered load."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes

from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.claims import NUMBER, Claim, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.mc2.mesh import Mesh, across, diamond, hexagon, slots_of
from ncmesh_papers.reproduce.plots import panels

# Every link delivers half. All nodes sense each other, as nodes two hops apart do at ns-2's
# defaults.
DELIVERY = 0.5
MESHES = {"diamond": diamond(DELIVERY, DELIVERY), "hexagon": hexagon(DELIVERY, DELIVERY)}
MEDIUM = {"phy": "802.11b", "bit_rate": 11_000_000, "mac": "dcf", "sense": "everyone", "mtu": 1500}
PACKET_BYTES = 1000
# Bit/s; the last loads exceed what the meshes carry.
LOADS = (100e3, 250e3, 500e3, 750e3, 1e6, 1.5e6, 2e6, 3e6)
SINGLE, MULTIPATH = "single path", "MC2"
PATHS = {SINGLE: 1, MULTIPATH: 2}
# The paper's efficiency at low load and at saturation.
LOW = {SINGLE: 0.5, MULTIPATH: 0.75}
SATURATED = {SINGLE: 0.26, MULTIPATH: 0.5}
# Tolerance of an efficiency, as a share of it.
ALIKE = 0.2
# A mesh is saturated where it delivers less than this share of the load.
CARRIED = 0.95


def _scenario(mesh: Mesh, load_bps: float, scale: Scale) -> Scenario:
    table = mesh.scenario(across(mesh), slots_of(scale)).table
    (flow,) = table["flow"]
    ends = {end: flow[end] for end in ("from", "to")}
    cbr = {**ends, "rate": int(load_bps), "packet": PACKET_BYTES, "seconds": scale.flow_s}
    return Scenario({**table, "name": "mc2-dcf", "medium": MEDIUM, "flow": [cbr]})


def _variant(mesh: str, way: str, load_bps: float) -> str:
    return f"{mesh}, {way}, {load_bps / 1e3:g} kbit/s"


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made = {}
    for name, mesh in MESHES.items():
        for way, paths in PATHS.items():
            changes = {"protocol.mc2.paths": paths, "protocol.mc2.least_gain": 0.0}
            for load in LOADS:
                scenario = _scenario(mesh, load, scale).varied(changes)
                parameters = {"mesh": mesh.name, "load_bps": load, **changes}
                for k in scale.indices:
                    run = Run(scenario, "mc2", k, None, parameters)
                    made[Case(_variant(name, way, load), k)] = run
    return made


def _delivered(row: Mapping[str, Any]) -> int:
    (flow,) = row["flows"]
    return int(flow["delivered"])


def _efficiency(row: Mapping[str, Any]) -> float:
    """Return packets delivered over data frames of the source, which is node 1."""
    sent = dict(row["nodes"])["n1"]["transmissions"]
    return _delivered(row) / sent if sent else 0.0


def _efficiencies(rows: Rows, mesh: str, way: str, load_bps: float) -> list[float]:
    variant = _variant(mesh, way, load_bps)
    return [_efficiency(rows.rows[Case(variant, k)]) for k in rows.topologies]


def _carried_bps(rows: Rows, mesh: str, way: str, load_bps: float) -> float:
    variant = _variant(mesh, way, load_bps)
    return fmean(rows.rows[Case(variant, k)]["flows"][0]["throughput_bps"] for k in rows.topologies)


def _saturates_at(rows: Rows, mesh: str, way: str) -> float:
    """Return the least load that is not carried in full."""
    short = (load for load in LOADS if _carried_bps(rows, mesh, way, load) < CARRIED * load)
    return next(short, max(LOADS))


def _claims(rows: Rows) -> list[Claim]:
    claims = []
    for mesh in MESHES:
        for way in PATHS:
            for text, load, printed in (
                ("low load", LOADS[0], LOW),
                ("saturated", LOADS[-1], SATURATED),
            ):
                found = _efficiencies(rows, mesh, way, load)
                claims.append(
                    within(
                        f"efficiency, {mesh}, {way}, {text}",
                        NUMBER,
                        printed[way],
                        fmean(found),
                        spread=over_topologies(found),
                        relative=ALIKE,
                    )
                )
        above = [
            fmean(_efficiencies(rows, mesh, MULTIPATH, load))
            - fmean(_efficiencies(rows, mesh, SINGLE, load))
            for load in LOADS
        ]
        ours = f"by {min(above):.2f} to {max(above):.2f}"
        claims.append(holds(f"MC2 is more efficient at every load, {mesh}", ours, min(above) > 0))
    for way in PATHS:
        ends = {mesh: _saturates_at(rows, mesh, way) for mesh in MESHES}
        ours = ", ".join(f"{mesh} at {load / 1e3:g} kbit/s" for mesh, load in ends.items())
        sooner = ends["hexagon"] < ends["diamond"]
        claims.append(holds(f"the hexagon saturates sooner, {way}", ours, sooner))
    return claims


def _table(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "mesh": mesh,
            "way": way,
            "load_bps": load,
            "efficiency": fmean(_efficiencies(rows, mesh, way, load)),
            "carried_bps": _carried_bps(rows, mesh, way, load),
        }
        for mesh in MESHES
        for way in PATHS
        for load in LOADS
    ]


def _draw(axes: Axes, rows: Rows, mesh: str) -> None:
    for way in PATHS:
        mean = [fmean(_efficiencies(rows, mesh, way, load)) for load in LOADS]
        (line,) = axes.plot([load / 1e3 for load in LOADS], mean, marker="o", label=way)
        for printed in (LOW[way], SATURATED[way]):
            axes.axhline(printed, color=line.get_color(), linestyle=":", linewidth=1)
    axes.set_xlabel(f"offered load, kbit/s ({mesh})")
    axes.set_ylabel("efficiency (dotted: the paper's ends)")
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small")


def _findings(rows: Rows, _: Scale) -> Findings:
    figure, axes = panels(len(MESHES))
    for panel, mesh in zip(axes, MESHES, strict=True):
        _draw(panel, rows, mesh)
    return Findings(_claims(rows), _table(rows), figure)


def _size(scale: Scale) -> dict[str, str]:
    return {
        "scale": f"{scale.name}: {scale.topologies} seeds, {scale.flow_s:g} s of each load",
        "seeds": f"1 to {scale.topologies}: run k has seed k",
    }


EXPERIMENT = Experiment(
    name="mc2-fig8",
    title="efficiency over 802.11, links of 0.5, by offered load",
    reading=(
        "Efficiency is packets delivered over data frames that the source sent. The paper states "
        "neither PHY rate nor packet length: here 802.11b at 11 Mbit/s, since ns-2's default of 2 "
        "Mbit/s does not carry its CBR of 1 Mbit/s over such links, and packets of 1,000 bytes. "
        "All nodes sense each other, as stations two hops apart do at ns-2's ranges. A single "
        "path is the same protocol over the best path, also with broadcasts. Saturation is the "
        "largest load."
    ),
    runs=_runs,
    findings=_findings,
    size=_size,
)
