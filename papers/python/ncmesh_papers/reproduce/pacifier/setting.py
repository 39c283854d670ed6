"""The networks of the Pacifier paper's evaluation, and the protocols compared in them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ncmesh
from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.experiment import Case, Scale

NODES = 50

# Headers come on top of packets of full length.
MEDIUM = {"phy": "802.11b", "bit_rate": "2M", "mtu": 2304}
# Radio and MAC of the simulated networks. The paper names ranges, rate, path loss and fading; all
# else is as release 2.02 of GloMoSim has it (`bin/config.in`, `radio`, `mac/802_11`). The powers
# are those of its radio: reception from -81 dBm on, here at 250 m, and no signal below -111 dBm.
GLOMOSIM: Mapping[str, Any] = {
    **MEDIUM,
    "mac_overhead_bytes": 28,
    "rts_threshold_bytes": 0,
    # Its limits of 7 and 4 count retransmissions, ours all transmissions.
    "retry_limit": 8,
    "long_retry_limit": 5,
    "propagation": {
        "model": "two_ray",
        "range_m": 250.0,
        "sensing_range_m": 460.0,
        "tx_power_dbm": 7.87,
        "fading": "glomosim",
        "fading_coherence_us": 1000,
        "interference_floor_dbm": -111.0,
    },
    "reception": {
        "model": "threshold",
        "sinr_db": 10.0,
        "preamble_sinr_db": 10.0,
        "capture_db": 10.0,
        # Noise of a factor of 10 in 2 MHz, at 290 K. Ours is counted in the 22 MHz of 802.11b.
        "noise_figure_db": -0.41,
    },
}
# Links that deliver less are not used, as in daemons by default. The paper names no limit.
MIN_DELIVERY = 0.05


@dataclass(frozen=True)
class Variant:
    """A protocol with its settings."""

    scheme: str
    settings: Mapping[str, Any]


def _pacifier(variant: str, knob: float = 1.0) -> Variant:
    settings = {"variant": variant, "knob": knob}
    return Variant(
        "pacifier", {f"protocol.pacifier.{name}": value for name, value in settings.items()}
    )


# Table I. MORE is MORE_new, as in the paper; in simulated networks `runs` sets its threshold.
VARIANTS = {
    "MORE_orig": Variant("more", {"protocol.more.prune": 0.1}),
    "MORE": Variant("more", {"protocol.more.prune": "connected"}),
    "TREE": _pacifier("tree"),
    "TREE+RL": _pacifier("tree_rl"),
    "Pacifier": _pacifier("tree_rl_rrb"),
}


def with_knob(knob: float) -> str:
    """Return the name of Pacifier with a knob."""
    return "Pacifier" if knob == 1.0 else f"Pacifier, knob {knob:g}"


def variant(name: str) -> Variant:
    """Return the protocol of a name."""
    if name in VARIANTS:
        return VARIANTS[name]
    return _pacifier("tree_rl_rrb", float(name.rpartition(" ")[2]))


def mesh(topology: int, scale: Scale) -> Scenario:
    """Return one of the simulated networks (IV-A); its number is the seed of everything in it."""
    source, *receivers = drawn(topology, NODES, 1 + scale.receivers)
    packet = {"symbol_size": 1500}
    return Scenario(
        {
            "name": "pacifier-mesh",
            "sealed": False,
            "medium": GLOMOSIM,
            "topology": {"uniform": {"nodes": NODES, "width_m": 1000.0, "height_m": 1000.0}},
            "measure": {"seconds": 600.0, "bytes": 1500, "period_s": 1.0},
            "traffic": {"from": source, "to": receivers, "size": scale.file_bytes},
            "protocol": {
                "pacifier": packet,
                "more": packet,
                "route": {"min_delivery": MIN_DELIVERY},
            },
        }
    )


def runs(names: Iterable[str], scale: Scale) -> dict[Case, Run]:
    """Return the runs of variants in all networks."""
    made = {}
    for k in scale.indices:
        network = mesh(k, scale)
        for name in names:
            chosen = variant(name)
            settings = dict(chosen.settings)
            if name == "MORE":
                settings["protocol.more.prune"] = threshold(k, scale)
            made[Case(name, k)] = Run(
                network.varied(settings), chosen.scheme, k, scale.limit_s, settings
            )
    return made


@functools.cache
def threshold(topology: int, scale: Scale) -> float:
    """Return MORE_new's threshold: the largest of 0.1, 0.09, ... without a cut (IV-B.1)."""
    network = mesh(topology, scale)
    loss = ncmesh.loss_matrix(network.table, topology)
    loss[loss > 1 - MIN_DELIVERY] = 1.0
    traffic = network.table["traffic"]
    source, *receivers = (int(name[1:]) - 1 for name in (traffic["from"], *traffic["to"]))
    return min(10, int(100 * ncmesh.more.largest_threshold(loss, source, receivers))) / 100


@functools.cache
def drawn(topology: int, nodes: int, count: int) -> list[str]:
    """Return `count` nodes' names, drawn from the topology's number by a hash."""
    width = len(str(nodes))
    names = [f"n{node:0{width}}" for node in range(1, nodes + 1)]
    names.sort(key=lambda name: hashlib.sha256(f"{topology}:{name}".encode()).digest())
    return names[:count]
