"""The paper's slotted wireline network under its policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ncmesh_papers import _models
from ncmesh_papers.multirate.network import Network, plain
from ncmesh_papers.multirate.optimum import optimum
from ncmesh_papers.multirate.utility import Utilities, of_receivers, steepest, worth

# A penalty is the price of the minimum rates times this factor, and at least this share of the
# steepest slope.
MARGIN = 2.0
LEAST_PENALTY = 0.1
PENALTY = (
    f"largest penalty per packet per slot below a minimum rate: if it is not given, {MARGIN:g} "
    "times what a packet per slot of a minimum rate costs the others at the optimum (30)"
)


class Extent(TypedDict):
    """Length of a queue, in packets."""

    max: float
    """Maximum over all slots, the warm-up included."""
    mean: float
    """Mean after the warm-up."""
    end: float
    """Length after the last slot."""


class Queue(TypedDict):
    """Queues of one session at one link."""

    link: int
    session: int
    receivers: int
    """Receivers that are reached through the link (m)."""
    Q: Extent
    """The transmission queue."""
    D: Extent
    """The drop queue."""
    dropped: int
    """Packets dropped in the whole run."""
    dropped_layers: list[int]
    """The same by layer, base layer first."""


class Parameter(TypedDict):
    """A parameter of Table I."""

    value: float
    why: str


class Series(TypedDict):
    """Samples over time, a row per sample. Receivers are those of all sessions, in order."""

    slots: NDArray[np.int64]
    """Slot of each sample."""
    Q: NDArray[np.float64]
    """A column per queue, as in `queues`."""
    D: NDArray[np.float64]
    Z: NDArray[np.float64]
    """A column per receiver; no columns under `mmt`."""
    received: NDArray[np.float64]
    """Packets per slot since the previous sample, a column per receiver."""
    entered: NDArray[np.float64]
    """The same at each session's source."""


class Simulation(TypedDict):
    """Result of a run. Rates are in packets per slot, after the warm-up."""

    rates: list[dict[Any, float]]
    """Rates of each session's receivers."""
    layers: list[dict[Any, list[float]]]
    """The same by layer, base layer first."""
    streams: list[float]
    """Packets per slot that entered each session's source."""
    stream_layers: list[list[float]]
    """The same by layer."""
    utility: float
    """Total utility of the rates, without penalties."""
    queues: list[Queue]
    """Queues session by session, each after its parent."""
    Z: list[dict[Any, Extent]] | None
    """Virtual queues of each session's receivers; `None` under `mmt`."""
    drops: int
    """Packets dropped in the whole run, of all sessions."""
    waiting: list[Extent]
    """Packets that waited outside each source because more than A_max came at once."""
    parameters: dict[str, Parameter]
    """All parameters of Table I, with the origin of each value."""
    bounds: dict[str, float]
    """Bounds of `Q`, `D` and `Z` (Lemmas 1 and 2)."""
    feasible: NotRequired[bool]
    """Whether all minimum rates can be met; only if penalties were derived."""
    series: NotRequired[Series]
    """Samples, if `series` asks for them."""


def simulate(
    network: Mapping[str, Any],
    policy: str,
    V: float,  # noqa: N803 (the paper's name for it)
    d_max: int | None,
    slots: int,
    seed: int,
    utilities: Utilities | None = None,
    *,
    epsilon: float | None = None,
    zeta: float | None = None,
    warm_up: int = 0,
    series: int | None = None,
) -> Simulation:
    """
    Run a network under a policy: `mmt`, `mmu`, `mmu_q` (no drop queues) or `mmu_w` (radios).

    `V` weighs utility against backlog. `d_max` packets are dropped at once; `None` selects the
    least allowed value. `epsilon` and `zeta` are Table I's; without them they follow from the
    network. `utilities` are those of the receivers, by default their rates. A minimum rate without
    a penalty gets one that is derived from the optimum. Rates and means leave out the first
    `warm_up` slots. `series` is the number of slots between samples.

    Releases the GIL; a signal ends the run. Raises `ValueError` for an invalid network, tree,
    utility or parameter.
    """
    checked = Network(network)
    wanted = None if policy == "mmt" and utilities == "sum" else utilities
    configs = [] if wanted is None else of_receivers(wanted, checked)
    best = None
    if wanted is not None and any(
        "minimum" in config and "penalty" not in config for config in configs
    ):
        best = optimum(network, wanted)
        configs = _with_penalties(configs, best["multiplier"])
    setup = {
        "policy": policy,
        "V": V,
        "d_max": d_max,
        "epsilon": epsilon,
        "zeta": zeta,
        "utilities": _by_session(checked, configs),
        "slots": slots,
        "warm_up": warm_up,
        "seed": seed,
        "series": series,
    }
    outcome = _models.multirate_simulate(checked.table, plain(setup))
    told = _told(checked, outcome, configs or [{"name": "linear"}] * len(checked.seats))
    penalties = [config["penalty"] for config in configs if config.get("penalty") is not None]
    if penalties:
        told["parameters"]["K"] = Parameter(value=max(penalties), why=PENALTY)
    if best is not None:
        told["feasible"] = best["feasible"]
    return told


def _with_penalties(configs: list[dict[str, Any]], price: float) -> list[dict[str, Any]]:
    """Return the utilities with a penalty (30) above the price of meeting each minimum."""
    penalty = max(MARGIN * price, LEAST_PENALTY * max(map(steepest, configs)))
    return [
        {"penalty": penalty, **config} if config.get("minimum") is not None else config
        for config in configs
    ]


def _by_session(network: Network, configs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    if not configs:
        return []
    split: list[list[dict[str, Any]]] = [[] for _ in network.table["sessions"]]
    for (session, _), config in zip(network.seats, configs, strict=True):
        split[session].append(config)
    return split


def _told(network: Network, outcome: dict[str, Any], configs: list[dict[str, Any]]) -> Simulation:
    receivers = [receiver for session in outcome["sessions"] for receiver in session["receivers"]]
    rates = [sum(receiver["rates"]) for receiver in receivers]
    layers = [len(session.get("layers") or [0]) for session in network.table["sessions"]]
    queues = [_queue(queue, layers[queue["session"]]) for queue in outcome["queues"]]
    by_layer = [
        receiver["rates"][: layers[session]]
        for (session, _), receiver in zip(network.seats, receivers, strict=True)
    ]
    z = [_extent(receiver["Z"]) for receiver in receivers if receiver["Z"] is not None]
    told = Simulation(
        rates=network.by_session(rates),
        layers=network.by_session(by_layer),
        streams=[sum(session["rates"]) for session in outcome["sessions"]],
        stream_layers=[
            session["rates"][:count]
            for session, count in zip(outcome["sessions"], layers, strict=True)
        ],
        utility=sum(worth(config, rate) for config, rate in zip(configs, rates, strict=True)),
        queues=queues,
        Z=network.by_session(z) if z else None,
        drops=sum(queue["dropped"] for queue in queues),
        waiting=[_extent(session["waiting"]) for session in outcome["sessions"]],
        parameters={
            name: Parameter(value=v, why=why) for name, (v, why) in outcome["parameters"].items()
        },
        bounds=dict(zip("QDZ", outcome["bounds"], strict=True)),
    )
    if outcome["series"] is not None:
        told["series"] = _series(outcome["series"])
    return told


def _extent(measured: tuple[float, float, float]) -> Extent:
    return Extent(max=measured[0], mean=measured[1], end=measured[2])


def _queue(queue: dict[str, Any], layers: int) -> Queue:
    return Queue(
        link=queue["link"],
        session=queue["session"],
        receivers=queue["receivers"],
        Q=_extent(queue["Q"]),
        D=_extent(queue["D"]),
        dropped=sum(queue["dropped"]),
        dropped_layers=queue["dropped"][:layers],
    )


def _series(series: dict[str, Any]) -> Series:
    slots = series["every"] * np.arange(1, len(series["Q"]) + 1)
    return Series(
        slots=slots,
        Q=series["Q"],
        D=series["D"],
        Z=series["Z"],
        received=series["received"],
        entered=series["entered"],
    )
