"""Figure 6, a and b: minimum rates over a MAC, simulated and in the lab of real daemons."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers.multirate import optimum
from ncmesh_papers.reproduce.claims import Claim, Unit, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.multirate.mesh import (
    RADIO,
    RECEIVERS,
    SCENARIOS,
    STREAM_BPS,
    alone,
    minima,
    rates,
    two_streams,
)
from ncmesh_papers.reproduce.plots import panels

SCHEME = "multirate"
# Number of runs in the lab, which take real time.
LAB_RUNS = 3
# Tolerances of minimum rates that can be met, of the optimum's rates, and of the radio's time.
MET = 0.95
NEAR = 0.15
FULL = 0.93
# The wire of the optimum's network is no bottleneck.
WIRE_BPS = 100e6

MBIT = Unit(lambda bps: f"{bps / 1e6:.2f} Mbit/s")


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made: dict[Case, Run] = {}
    for k in scale.indices:
        for name in SCENARIOS:
            scenario = two_streams(name, scale.flow_s)
            made[Case(name, k)] = Run(scenario, SCHEME, k)
            if scale.lab and k <= LAB_RUNS:
                made[Case(f"{name} (lab)", k)] = LabRun(scenario, SCHEME, k, program=scale.lab)
        for receiver in RADIO:
            made[Case(receiver, k)] = Run(alone(receiver, scale.flow_s), SCHEME, k)
    return made


def effective(rows: Rows) -> dict[str, float]:
    """Return what each radio link carries alone, in bit/s, on average over runs."""
    return {
        receiver: fmean(rates(rows.rows[Case(receiver, k)])[receiver] for k in rows.topologies)
        for receiver in RADIO
    }


def best(rows: Rows, scenario: str) -> dict[str, float]:
    """Return the rates at the optimum if the radio's time is shared without cost, in bit/s."""
    air = effective(rows)
    # Capacities and rates in Mbit/s.
    links = [{"from": "alice", "to": "bob", "capacity": WIRE_BPS / 1e6}]
    links += [
        {"from": "bob", "to": to, "capacity": bps / 1e6, "wireless": True}
        for to, bps in air.items()
    ]
    trees = {"a": [0, 1], "b": [0, 2, 3]}
    sessions = [
        {
            "source": "alice",
            "receivers": list(names),
            "tree": trees[group],
            "rate": STREAM_BPS / 1e6,
        }
        for group, names in RECEIVERS.items()
    ]
    floors = minima(scenario)
    utilities = {name: {"name": "linear", "minimum": bps / 1e6} for name, bps in floors.items()}
    found = optimum({"links": links, "sessions": sessions}, utilities)
    return {name: rate * 1e6 for session in found["rates"] for name, rate in session.items()}


def _each(rows: Rows, variant: str) -> list[dict[str, float]]:
    found = (rows.rows.get(Case(variant, k)) for k in rows.topologies)
    return [rates(row) for row in found if row is not None]


def _claims(rows: Rows, world: str) -> list[Claim]:
    claims = []
    air = effective(rows)
    for scenario in SCENARIOS:
        each, floors, goal = _each(rows, scenario + world), minima(scenario), best(rows, scenario)
        where = f", scenario {scenario}{world}"
        mean = {name: fmean(run[name] for run in each) for name in floors}
        # Minima that cannot all be met count as the rates that the optimum gives.
        least = min(mean[name] / min(bps, goal[name]) for name, bps in floors.items())
        said = f"the least met has {100 * least:.1f} % of its own"
        claims.append(holds(f"minimum rates are met{where}", said, least >= MET))
        claims.append(
            within(
                f"Carol's rate beside the optimum's{where}",
                MBIT,
                goal["carol"],
                mean["carol"],
                spread=over_topologies([run["carol"] for run in each]),
                relative=NEAR,
            )
        )
        busy = sum(mean[name] / air[name] for name in RADIO)
        text = f"the medium is fully used{where}"
        claims.append(holds(text, f"{100 * busy:.1f} % of its time", busy >= FULL))
    totals = {
        name: fmean(sum(run.values()) for run in _each(rows, name + world)) for name in SCENARIOS
    }
    said = f"{MBIT.write(totals['b'])}; a: {MBIT.write(totals['a'])}"
    return [
        *claims,
        holds(f"the total is smaller in scenario b{world}", said, totals["b"] < totals["a"]),
    ]


def _worlds(scale: Scale) -> list[str]:
    return ["", " (lab)"] if scale.lab else [""]


def _bars(rows: Rows, scenario: str, scale: Scale) -> dict[str, dict[str, float]]:
    bars = {}
    for world in _worlds(scale):
        each = _each(rows, scenario + world)
        bars[f"MMU-W{world}"] = {name: fmean(run[name] for run in each) for name in each[0]}
    return {**bars, "optimum": best(rows, scenario)}


def _figure(rows: Rows, scale: Scale) -> Figure:
    figure, axes = panels(2)
    for scenario, panel in zip(SCENARIOS, axes, strict=True):
        names = ["bob", *RADIO]
        bars = _bars(rows, scenario, scale)
        width = 0.8 / len(bars)
        for place, (label, found) in enumerate(bars.items()):
            at = [spot + width * (place + 0.5) - 0.4 for spot in range(len(names))]
            panel.bar(at, [found[name] / 1e6 for name in names], width, label=label)
        floors = minima(scenario)
        values = [floors[name] / 1e6 for name in names]
        panel.scatter(range(len(names)), values, marker="_", color="black", label="minimum")
        panel.set_xticks(range(len(names)), [name.capitalize() for name in names])
        panel.set_title(f"scenario {scenario}", fontsize="medium")
        panel.set_ylabel("throughput, Mbit/s")
        panel.legend(fontsize="small")
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    claims = [claim for world in _worlds(scale) for claim in _claims(rows, world)]
    table = [
        {"scenario": scenario, "rates": label, **found}
        for scenario in SCENARIOS
        for label, found in _bars(rows, scenario, scale).items()
    ]
    return Findings(claims, table, _figure(rows, scale))


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiment, for the page."""
    return {
        "scale": f"{scale.name}: {scale.topologies} seeds, {scale.flow_s:g} s after as long to "
        "settle",
        "seeds": f"1 to {scale.topologies}; in the lab {LAB_RUNS} runs",
    }


EXPERIMENT = Experiment(
    name="mmu-fig6",
    title="Minimum rates over a MAC: two streams in a mesh of five nodes",
    reading=(
        "Figure 5 with 802.11a's DCF at fixed rates (18, 6, 6 Mbit/s; acknowledgments at 6) and a "
        "wire of 1 Gbit/s, packets of 1,400 bytes, ncmesh's default slots and reports, V = 100, "
        "K = 3. The optimum has links that carry what each was measured to carry alone; minimum "
        "rates that cannot all be met count as the rates that it gives. Rates are averages over "
        "runs."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
