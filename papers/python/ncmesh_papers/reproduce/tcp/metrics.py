"""Gain, loss reduction and round-trip time increase as the paper defines them (V-A)."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from ncmesh_papers.reproduce.claims import Spread, Unit
from ncmesh_papers.reproduce.experiment import Case, Row, Rows
from ncmesh_papers.reproduce.tcp.setting import NOT_CODED

PERCENT = Unit(lambda share: f"{100 * share:+.1f} %")


@dataclass(frozen=True)
class Measured:
    """Averages over the runs of a network with one treatment."""

    throughput_bps: float
    """Sum over all flows."""
    loss: float
    """Share of the data segments that did not arrive."""
    rtt_s: float


def measured(rows: list[Row]) -> Measured:
    """Average over runs. Within a run, loss is over all segments and RTT over the flows."""
    flows = [[flow for flow in row["flows"] if flow["tcp"]] for row in rows]
    return Measured(
        fmean(sum(flow["throughput_bps"] for flow in of) for of in flows),
        _average([_loss(of) for of in flows]),
        _average([_average([flow["tcp"]["rtt_s"] for flow in of]) or None for of in flows]),
    )


def _loss(flows: list[Any]) -> float | None:
    sent = sum(flow["tcp"]["segments"] for flow in flows)
    arrived = sum(flow["tcp"]["arrived"] for flow in flows)
    return max(0.0, 1 - arrived / sent) if sent else None


def _average(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


def runs_of(rows: Rows, network: str, treatment: str) -> list[Row]:
    """Return the runs of a network with a treatment, in order."""
    cases = (Case(f"{network}: {treatment}", k) for k in rows.topologies)
    return [rows.rows[case] for case in cases if case in rows.rows]


@dataclass(frozen=True)
class Effect:
    """Changes that a treatment makes, compared with packets that are neither held nor coded."""

    speedup: float
    """Ratio of throughputs: 1 + the gain of eq. (16)."""
    spread: Spread
    """Standard error of the speedup over the runs, to either side."""
    loss_reduction: float
    """Eq. (17)."""
    rtt_increase: float
    """Eq. (18)."""

    @property
    def gain(self) -> float:
        """Eq. (16)."""
        return self.speedup - 1


def effect(rows: Rows, network: str, treatment: str, against: str = NOT_CODED) -> Effect:
    """Return the effect on the averages over all runs, as the paper reports it."""
    mine, others = runs_of(rows, network, treatment), runs_of(rows, network, against)
    ours, plain = measured(mine), measured(others)
    speedup = 1 + _change(ours.throughput_bps, plain.throughput_bps)
    each = [1 + _change(measured([row]).throughput_bps, plain.throughput_bps) for row in mine]
    error = stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0.0
    return Effect(
        speedup,
        Spread(speedup - error, speedup, speedup + error, "a standard error"),
        -_change(ours.loss, plain.loss),
        _change(ours.rtt_s, plain.rtt_s),
    )


def _change(ours: float, others: float) -> float:
    return ours / others - 1 if others > 0 else 0.0


def coding_ratio(rows: Rows, network: str, treatment: str, node: str) -> float:
    """Return a relay's coded transmissions over all its transmissions, averaged over runs."""
    ratios = []
    for row in runs_of(rows, network, treatment):
        counts = dict(row["coding"])[node]
        ratios.append(counts["coded"] / counts["sent"] if counts["sent"] else 0.0)
    return fmean(ratios)


def coded_share(rows: Rows, network: str, treatment: str) -> float:
    """Return the coded transmissions of all nodes over all their transmissions."""
    counts = [of for row in runs_of(rows, network, treatment) for _, of in row["coding"]]
    sent = sum(of["sent"] for of in counts)
    return sum(of["coded"] for of in counts) / sent if sent else 0.0


def table_row(rows: Rows, network: str, treatment: str) -> dict[str, Any]:
    """Return the numbers of a network with one treatment."""
    found = measured(runs_of(rows, network, treatment))
    change = effect(rows, network, treatment)
    return {
        "network": network,
        "treatment": treatment,
        "throughput_bps": found.throughput_bps,
        "loss": found.loss,
        "rtt_s": found.rtt_s,
        "gain": change.gain,
        "loss_reduction": change.loss_reduction,
        "rtt_increase": change.rtt_increase,
    }
