"""The network of Figure 5 as a mesh: five nodes, a wire, three radio links, two streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncmesh.campaign import Scenario

RADIO = {"carol": "18M", "dave": "6M", "erin": "6M"}
PACKET_BYTES = 1400
STREAM_BPS = 14_000_000
MINIMA_BPS = {"bob": 4_500_000, "dave": 1_700_000}
SCENARIOS = {
    "a": {"carol": 2_800_000, "erin": 1_700_000},
    "b": {"carol": 1_700_000, "erin": 2_800_000},
}
RECEIVERS = {"a": ("bob", "carol"), "b": ("dave", "erin")}
# K is theta less the slope 1 of the sum of rates. It exceeds 2, by which Carol's link is faster.
MULTIRATE = {"v": 100, "theta": 4.0}


def minima(scenario: str) -> dict[str, int]:
    """Return the minimum rate of each receiver, in bit/s."""
    return MINIMA_BPS | SCENARIOS[scenario]


def _mesh(streams: list[dict[str, Any]], settings: Mapping[str, Any]) -> Scenario:
    air = [{"from": "bob", "to": to, "loss": 0.0, "rate": rate} for to, rate in RADIO.items()]
    # The three receivers hear each other, so that none sends into another's frame.
    others = [
        {"from": a, "to": b, "loss": 0.0}
        for a, b in (("carol", "dave"), ("carol", "erin"), ("dave", "erin"))
    ]
    table = {
        "name": "mmu-fig6",
        "nodes": ["alice", "bob", *RADIO],
        "medium": {"phy": "802.11a", "bit_rate": "6M"},
        "link": [{"from": "alice", "to": "bob", "wired": True}, *air, *others],
        "stream": streams,
        "protocol": {
            "multirate": {**MULTIRATE, "wired": ["alice", "bob"], **settings},
        },
    }
    return Scenario(table)


def two_streams(scenario: str, seconds: float, rate_bps: int = STREAM_BPS) -> Scenario:
    """Return streams A and B, measured for `seconds` after a warm-up of the same length."""
    floors = minima(scenario)
    streams = [
        {
            "group": group,
            "from": "alice",
            "packet": PACKET_BYTES,
            "layers": [{"name": "all", "rate": rate_bps}],
            "receivers": [{"node": name, "min_rate": floors[name]} for name in names],
            "warm_up_s": seconds,
            "seconds": seconds,
        }
        for group, names in RECEIVERS.items()
    ]
    return _mesh(streams, {})


def alone(receiver: str, seconds: float) -> Scenario:
    """Return one stream from Bob to one receiver that exceeds its link, to measure the link."""
    stream = {
        "group": "alone",
        "from": "bob",
        "packet": PACKET_BYTES,
        "layers": [{"name": "all", "rate": 25_000_000}],
        "receivers": [{"node": receiver}],
        "warm_up_s": seconds / 2,
        "seconds": seconds / 2,
    }
    return _mesh([stream], {"a_max": 12})


def rates(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the rates of all receivers in a run, in bit/s."""
    streams = row["streams"] or []
    return {got["node"]: got["rate_bps"] for stream in streams for got in stream["receivers"]}
