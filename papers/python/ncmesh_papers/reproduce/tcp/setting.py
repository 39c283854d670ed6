"""The networks of the paper's testbed, and the treatments of packets by its relays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.experiment import Case, Scale
from ncmesh_papers.reproduce.lab import LabRun

# Ranges of frames at 6 Mbit/s. Neighbours are 100 m apart, and a station is sensed three hops away.
# The paper states neither; the ratio of the ranges is usual in simulations.
RANGE_M, SENSING_RANGE_M = 140.0, 310.0
MEDIUM = {
    "phy": "802.11a",
    "bit_rate": "6M",
    "mtu": 1500,
    "propagation": {
        "model": "log_distance",
        "range_m": RANGE_M,
        "sensing_range_m": SENSING_RANGE_M,
    },
    "reception": {"model": "bit_errors", "capture_db": 10.0},
}
PACKET_BYTES = 1020
# Window of Windows XP over Ethernet.
WINDOW_BYTES = 17_520
# Time between the starts of flows. Flows in step to the nanosecond would collide for ever.
STAGGER_S = 0.137

# Hold times of the paper, 0.5 to 2.5 ms.
HOLD_TIMES_MS = (0.5, 1.0, 1.5, 2.0, 2.5)

Path = tuple[str, ...]

LINE: Path = ("a", "b", "c", "d", "e", "f", "g")
# Fig. 5(b): two end nodes on either side of three relays.
DUMBBELL = {
    "a": (-90.0, 45.0),
    "b": (-90.0, -45.0),
    "c": (0.0, 0.0),
    "d": (100.0, 0.0),
    "e": (200.0, 0.0),
    "f": (290.0, -45.0),
    "g": (290.0, 45.0),
}
# Fig. 7 has no scale. These positions give the links of Table I.
FLOOR = {
    "21": (260, 170), "22": (270, 250), "23": (440, 200), "24": (530, 230), "25": (600, 190),
    "26": (430, 330), "27": (350, 300), "28": (520, 150), "29": (680, 220), "30": (350, 190),
    "31": (400, 70), "32": (230, 290), "33": (150, 120), "34": (200, 200), "35": (120, 220),
    "36": (330, 120), "37": (60, 120), "38": (345, 245), "39": (40, 240), "40": (590, 90),
}  # fmt: skip
TABLE_I: tuple[Path, ...] = (
    ("34", "21", "36", "31"),
    ("39", "35", "34", "22", "27", "26"),
    ("22", "21", "30", "23", "24"),
    ("33", "34", "32", "38", "23", "28"),
    ("29", "25", "28", "40"),
)


@dataclass(frozen=True)
class Laptops:
    """Properties of the nodes, not stated in the paper: relays' processing time, and their TCP."""

    processing_s: float = 0.0
    """Longest time for a received frame; times are even from 0."""
    min_rto_s: float | None = None
    """Least retransmission timeout; Linux's policy if absent."""
    ack_delay_s: float | None = 0.0
    """Longest delay of an acknowledgment; Linux's policy if absent. III-A assumes none."""

    @property
    def name(self) -> str:
        """Name for tables."""
        return f"0 to {1e3 * self.processing_s:g} ms a frame, timeout from {self.min_rto_s:g} s"


# Figures 6 and 8 and Table II have relays that take no time and hosts like Linux, but for their
# acknowledgments; the lab has a second row in which those are like Linux's, too.
PLAIN = Laptops()
DELAYED = Laptops(ack_delay_s=None)


@dataclass(frozen=True)
class Network:
    """Nodes and the paths of flows. A path and its reverse make a flow in each direction."""

    name: str
    nodes: Mapping[str, tuple[float, float]]
    paths: Sequence[Path]

    def scenario(self, seconds: float, laptops: Laptops = PLAIN) -> Scenario:
        """Return the scenario with TCP along the paths for `seconds`."""
        numbers = {name: number for number, name in enumerate(self.nodes, 1)}
        ends = {frozenset((path[0], path[-1])): path for path in self.paths}
        flow: dict[str, Any] = {
            "protocol": "tcp",
            "congestion": "reno",
            "window": WINDOW_BYTES,
            "packet": PACKET_BYTES,
        }
        timing = {"min_rto_s": laptops.min_rto_s, "ack_delay_s": laptops.ack_delay_s}
        flow |= {name: value for name, value in timing.items() if value is not None}
        takes = {"processing": {"most_s": laptops.processing_s}} if laptops.processing_s else {}
        return Scenario(
            {
                **takes,
                "name": "tcp-coded-mesh",
                "sealed": False,
                "medium": MEDIUM,
                "node": [
                    {"name": name, "x": float(x), "y": float(y)}
                    for name, (x, y) in self.nodes.items()
                ],
                "measure": {"seconds": 10.0, "bytes": 100, "period_s": 0.1},
                "flow": [
                    {
                        **flow,
                        "from": p[0],
                        "to": p[-1],
                        "start_s": STAGGER_S * k,
                        "seconds": seconds,
                    }
                    for k, p in enumerate(self.paths)
                ],
                "protocol": {
                    "xor": {"routes": [[numbers[node] for node in p] for p in ends.values()]}
                },
            }
        )


def _along(names: Path) -> dict[str, tuple[float, float]]:
    return {name: (100.0 * place, 0.0) for place, name in enumerate(names)}


ONE_FLOW = Network("line of 7, 1 flow", _along(LINE), (LINE,))
TWO_FLOWS = Network("line of 7, 2 flows", _along(LINE), (LINE, LINE[::-1]))
_ACROSS = (("a", "c", "d", "e", "g"), ("b", "c", "d", "e", "f"))
FOUR_FLOWS = Network(
    "dumbbell, 4 flows",
    DUMBBELL,
    (_ACROSS[0], _ACROSS[0][::-1], _ACROSS[1], _ACROSS[1][::-1]),
)
MESH = Network("mesh of 20, 5 flows", FLOOR, TABLE_I)


def parts(hops: int) -> list[Path]:
    """Return all parts of Table I's paths with `hops` hops."""
    lengths = ((path, start) for path in TABLE_I for start in range(len(path) - hops))
    return [path[start : start + hops + 1] for path, start in lengths]


def one_of(hops: int, index: int) -> Network:
    """Return one flow along a part of Table I's paths; the other nodes are silent."""
    found = parts(hops)
    return Network(f"mesh of 20, {hops} hops", FLOOR, (found[(index - 1) % len(found)],))


# As in the paper: everything is broadcast, and a packet whose hold time is over is not coded.
PAPER = {"unicast": False, "late": False, "min_overlap": 0.0, "min_decoded": 0.0, "recover": False}
NOT_CODED = "not coded"


@dataclass(frozen=True)
class Treatment:
    """Treatment of packets by relays: a name for tables, and the engine's settings."""

    name: str
    settings: Mapping[str, Any]


def _treatment(name: str, **settings: float) -> Treatment:
    return Treatment(name, {**PAPER, **settings})


BASELINE = _treatment(NOT_CODED, coding=False)


def held(ms: float) -> Treatment:
    """Return the treatment that codes and holds packets for `ms`."""
    return _treatment(f"{ms:g} ms", hold_time_s=ms / 1e3)


def only_held(ms: float) -> Treatment:
    """Return the control, not in the paper: packets are held as long and never coded."""
    return _treatment(f"{ms:g} ms, held only", coding=False, hold_time_s=ms / 1e3)


# Not in the paper: relays find the hold time; packets are coded until the channel is granted.
ADAPTIVE = _treatment("adaptive")
LATE = _treatment("1.5 ms, late", hold_time_s=0.0015, late=True)


def runs(
    networks: Mapping[str, Sequence[Network]],
    treatments: Iterable[Treatment],
    scale: Scale,
    laptops: Laptops = PLAIN,
) -> dict[Case, Run]:
    """Return the runs of networks with treatments; run k has the k-th network and seed k."""
    made = {}
    for name, of_each_run in networks.items():
        for treatment in treatments:
            settings = {f"protocol.xor.{key}": value for key, value in treatment.settings.items()}
            for k in scale.indices:
                network = of_each_run[(k - 1) % len(of_each_run)]
                scenario = network.scenario(scale.flow_s, laptops).varied(settings)
                parameters = {"network": network.name, "treatment": treatment.name}
                made[Case(f"{name}: {treatment.name}", k)] = Run(
                    scenario, "xor", k, None, parameters
                )
    return made


# Number of runs in the lab, and their longest duration in real time.
LAB_RUNS, LAB_S = 10, 60.0
# Treatments of the lab's second row.
DELAYED_TREATMENTS = (BASELINE, held(1.5))


def in_lab(network: str) -> str:
    """Return the name of a network in the lab."""
    return f"{network}, lab"


def in_delayed_lab(network: str) -> str:
    """Return the name of a network in the lab where acknowledgments are delayed."""
    return f"{in_lab(network)}, delayed acknowledgments"


def lab_runs(
    networks: Mapping[str, Sequence[Network]],
    treatments: Iterable[Treatment],
    scale: Scale,
    *,
    delayed: bool = False,
) -> dict[Case, Run]:
    """Return shorter runs with daemons and the kernel's TCP; none without lab."""
    if scale.lab is None:
        return {}
    name_of, laptops = (in_delayed_lab, DELAYED) if delayed else (in_lab, PLAIN)
    made: dict[Case, Run] = {}
    for case, run in runs(networks, treatments, _of_lab(scale), laptops).items():
        name, _, treatment = case.variant.partition(": ")
        real = LabRun(
            run.scenario, run.scheme, run.seed, run.limit_s, run.parameters, program=scale.lab
        )
        made[Case(f"{name_of(name)}: {treatment}", case.topology)] = real
    return made


def _of_lab(scale: Scale) -> Scale:
    return replace(
        scale, topologies=min(LAB_RUNS, scale.topologies), flow_s=min(LAB_S, scale.flow_s)
    )


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiments, for the page."""
    real = _of_lab(scale)
    lab = f"; in the lab {real.topologies} runs of {real.flow_s:g} s" if scale.lab else ""
    return {
        "scale": f"{scale.name}: {scale.topologies} runs of {scale.flow_s:g} s{lab}",
        "seeds": f"1 to {scale.topologies}: run k has seed k",
    }
