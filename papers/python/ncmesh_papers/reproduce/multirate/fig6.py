"""Figure 6 in the slotted model: MMU-W shares one radio's time to meet minimum rates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from ncmesh_papers.multirate import optimum, simulate
from ncmesh_papers.reproduce.claims import Claim, Unit, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.multirate.setting import over_seeds, size
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

V = 100
PACKET_BITS = 8 * 1470
# A tenth of the paper's virtual slot, so that a slot has fewer packets.
SLOT_S = 0.01
RADIO_BPS = {"Carol": 18e6, "Dave": 6e6, "Erin": 6e6}
# 1 Gbit/s in the paper; any wire that is no bottleneck will do.
WIRE_BPS = 100e6
STREAM_BPS = 14e6
MINIMA_BPS = {"Bob": 4.5e6, "Dave": 1.7e6}
SCENARIOS = {"a": {"Carol": 2.8e6, "Erin": 1.7e6}, "b": {"Carol": 1.7e6, "Erin": 2.8e6}}
# Tolerances of each minimum rate, of the optimum, and of the medium's use.
MET = 0.98
NEAR = 0.03
FULL = 0.98

MBIT = Unit(lambda bps: f"{bps / 1e6:.2f} Mbit/s")


def lab(scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the network of Figure 5 and its receivers' utilities, in packets per slot."""
    packets = SLOT_S / PACKET_BITS
    wire = {"from": "Alice", "to": "Bob", "capacity": WIRE_BPS * packets}
    radios = [
        {"from": "Bob", "to": to, "capacity": bps * packets, "wireless": True}
        for to, bps in RADIO_BPS.items()
    ]
    stream = {"source": "Alice", "rate": STREAM_BPS * packets, "arrivals": "poisson"}
    sessions = [
        {"receivers": ["Bob", "Carol"], "tree": [0, 1], **stream},
        {"receivers": ["Dave", "Erin"], "tree": [0, 2, 3], **stream},
    ]
    minima = MINIMA_BPS | SCENARIOS[scenario]
    utilities = {name: {"name": "linear", "minimum": bps * packets} for name, bps in minima.items()}
    return {"links": [wire, *radios], "sessions": sessions}, utilities


def share(scenario: str, seed: int, slots: int) -> dict[str, float]:
    """Run once and return the rates of all receivers in bit/s."""
    network, utilities = lab(scenario)
    run = simulate(network, "mmu_w", V, None, slots, seed, utilities, warm_up=slots // 2)
    return _bps(run["rates"])


def best(scenario: str) -> dict[str, float]:
    """Return the rates at the optimum in bit/s."""
    network, utilities = lab(scenario)
    return _bps(optimum(network, utilities)["rates"])


def _bps(rates: list[dict[Any, float]]) -> dict[str, float]:
    return {
        name: rate * PACKET_BITS / SLOT_S for session in rates for name, rate in session.items()
    }


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    runs: dict[Hashable, Piece] = {
        (scenario, seed): Piece(share, {"scenario": scenario, "seed": seed, "slots": scale.slots})
        for scenario in SCENARIOS
        for seed in scale.indices
    }
    return runs | {scenario: Piece(best, {"scenario": scenario}) for scenario in SCENARIOS}


def _runs(rows: Rows, scenario: str) -> list[dict[str, float]]:
    return over_seeds(rows, scenario)


def _airtime(rates: Mapping[str, float]) -> float:
    return sum(rates[name] / bps for name, bps in RADIO_BPS.items())


def _claims(rows: Rows) -> list[Claim]:
    claims = []
    for scenario, own in SCENARIOS.items():
        runs, minima = _runs(rows, scenario), MINIMA_BPS | own
        met = min(run[name] / bps for run in runs for name, bps in minima.items())
        claims.append(
            holds(
                f"all minimum rates are met, scenario {scenario}",
                f"the least met has {100 * met:.1f} % of its own",
                met >= MET,
            )
        )
        carol = [run["Carol"] for run in runs]
        claims.append(
            within(
                f"Carol gets the excess, beside the optimum's, scenario {scenario}",
                MBIT,
                rows.computed[scenario]["Carol"],
                fmean(carol),
                spread=over_topologies(carol),
                relative=NEAR,
            )
        )
        busy = fmean(map(_airtime, runs))
        text = f"the medium is fully used, scenario {scenario}"
        claims.append(holds(text, f"{100 * busy:.1f} % of its time", busy >= FULL))
    totals = {
        scenario: fmean(sum(run.values()) for run in _runs(rows, scenario))
        for scenario in SCENARIOS
    }
    text = "the total is smaller in scenario b"
    said = f"{MBIT.write(totals['b'])}; a: {MBIT.write(totals['a'])}"
    return [*claims, holds(text, said, totals["b"] < totals["a"])]


def _figure(rows: Rows) -> Figure:
    figure, axes = panels(2)
    for (scenario, own), panel in zip(SCENARIOS.items(), axes, strict=True):
        minima = MINIMA_BPS | own
        names = ["Bob", *RADIO_BPS]
        for place, (label, rates) in enumerate(_bars(rows, scenario).items()):
            at = [spot + 0.4 * place - 0.2 for spot in range(len(names))]
            panel.bar(at, [rates[name] / 1e6 for name in names], 0.4, label=label)
        floors = [minima[name] / 1e6 for name in names]
        panel.scatter(range(len(names)), floors, marker="_", color="black", label="minimum")
        panel.set_xticks(range(len(names)), names)
        panel.set_title(f"scenario {scenario}", fontsize="medium")
        panel.set_ylabel("throughput, Mbit/s")
        panel.legend(fontsize="small")
    return figure


def _bars(rows: Rows, scenario: str) -> dict[str, Mapping[str, float]]:
    runs = _runs(rows, scenario)
    mean = {name: fmean(run[name] for run in runs) for name in runs[0]}
    return {"MMU-W": mean, "optimum": rows.computed[scenario]}


def _findings(rows: Rows, _: Scale) -> Findings:
    table = [
        {"scenario": scenario, "rates": label, **rates}
        for scenario in SCENARIOS
        for label, rates in _bars(rows, scenario).items()
    ]
    return Findings(_claims(rows), table, _figure(rows))


EXPERIMENT = Experiment(
    name="mmu-fig6-slotted",
    title="Minimum rates over one radio, in the slotted model",
    reading=(
        "Figure 5 without a MAC: Bob's radio serves one link in a slot at its physical rate, "
        "without loss or contention. Slots of 10 ms, packets of 1,470 bytes, V = 100, K as ncmesh "
        "derives it; the wire to Bob has 100 Mbit/s. The optimum is that of the same model; the "
        "paper's numbers come from a testbed."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
