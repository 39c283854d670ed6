"""
The tunnel part: packets from one node to another, by every tunnel scheme.

| case | flows | compared by |
| --- | --- | --- |
| UDP | one for which a packet always waits | goodput |
| TCP | one connection | goodput |
| UDP at N % | one of this share of the best goodput that any scheme had in the case UDP | goodput |
| 4 TCP | two opposite connections, and two between nodes drawn at random | sum of goodputs |
| 5 TCP to one, 5 TCP from one | one between a node and each of five others | mean goodput |
| 20 short TCP | connections of 30 kB beside a long one | mean time of the short ones |
| ping | small packets both ways: alone, beside UDP, beside TCP | round trip |
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

from ncmesh.bench.instances import Instance, connected
from ncmesh.bench.service import Load, Row, Service, number

WARM_UP_S = 5.0
MEASURED_S = 20.0

FOUR, SHORT = "4 TCP", "20 short TCP"
TO_ONE, FROM_ONE = "5 TCP to one", "5 TCP from one"
# Clients of a gateway.
CLIENTS = 5
# Goodput that counts for a connection which got none, bit/s, so that there is a geometric mean.
LEAST_GOODPUT_BPS = 1e3
LOADS = {f"UDP at {percent} %": Load("UDP", percent / 100) for percent in (10, 50, 90)}
# Traffic beside a ping.
PINGS = {"ping": None, "ping beside UDP": "udp", "ping beside TCP": "tcp"}

SHORT_FLOWS = 20
SHORT_BYTES = 30_000
# Time between the starts of two short connections, and for which each may take, s.
SHORT_EVERY_S = 0.75
SHORT_LIMIT_S = 10.0

PING_BYTES = 84
PINGS_PER_S = 5
# Time for which a ping counts that does not arrive, s.
LOST_PING_S = 1.0


def _flow(source: str, destination: str, protocol: str, **other: float) -> dict[str, Any]:
    ends = {"from": source, "to": destination, "protocol": protocol}
    return {**ends, "warm_up_s": WARM_UP_S, "seconds": MEASURED_S, **other}


def _traffic(instance: Instance) -> dict[str, Any]:
    """Return the flows of a case."""
    source, destination = instance.source, instance.receivers[0]
    case = instance.case
    if case in LOADS:
        flows = [_flow(source, destination, "udp", rate=instance.rate_bps or 1)]
    elif case == FOUR:
        flows = [_flow(a, b, "tcp") for a, b in _pairs(instance)]
    elif case in (TO_ONE, FROM_ONE):
        pairs = [(source, client) for client in instance.receivers]
        flows = [_flow(*(pair if case == FROM_ONE else pair[::-1]), "tcp") for pair in pairs]
    elif case == SHORT:
        short = {"warm_up_s": 0.0, "seconds": SHORT_LIMIT_S, "size": SHORT_BYTES}
        starts = [WARM_UP_S + SHORT_EVERY_S * i for i in range(SHORT_FLOWS)]
        flows = [_flow(source, destination, "tcp")]
        flows += [_flow(source, destination, "tcp", **short, start_s=start) for start in starts]
    elif case in PINGS:
        ping = {"packet": PING_BYTES, "rate": 8 * PING_BYTES * PINGS_PER_S}
        flows = [_flow(source, destination, "udp", **ping)]
        flows.append(_flow(destination, source, "udp", **ping))
        beside = PINGS[case]
        flows += [_flow(source, destination, beside)] if beside else []
    else:
        flows = [_flow(source, destination, case.lower())]
    return {"flow": flows}


def _pairs(instance: Instance) -> list[tuple[str, str]]:
    """Return the ends of four connections: both directions of one pair, and two pairs more."""
    mesh = instance.mesh
    nodes = [mesh.names[node] for node in connected(mesh.delivery)]
    draw = random.Random(f"{mesh.name}/{FOUR}/{instance.number}")
    further = [draw.sample(nodes, 2) for _ in range(2)]
    ends = (instance.source, instance.receivers[0])
    return [ends, ends[::-1], *((a, b) for a, b in further)]


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    if row["error"] is not None:
        return {"goodput_bps": 0.0, "score": 0.0}
    flows = row["flows"]
    measured: dict[str, Any] = {
        "transmissions": row["transmissions"],
        "airtime_s": sum(node["airtime_s"] for node in dict(row["nodes"]).values()),
    }
    goodputs = [flow["throughput_bps"] for flow in flows]
    case = instance.case
    if case in PINGS:
        delay = round_trip(flows[:2], MEASURED_S)
        return {**measured, "goodput_bps": sum(goodputs[2:]), "delay_s": delay, "score": 1 / delay}
    if case == SHORT:
        delay = _mean_time(flows[1:])
        return {**measured, "goodput_bps": goodputs[0], "delay_s": delay, "score": 1 / delay}
    # Connections of equal clients are compared by what each gets.
    equal = [max(goodput, LEAST_GOODPUT_BPS) for goodput in goodputs]
    is_shared = case in (TO_ONE, FROM_ONE)
    return {
        **measured,
        "goodput_bps": sum(goodputs),
        "least_bps": min(goodputs),
        "fairness": jain(goodputs) if len(goodputs) > 1 else None,
        "delay_s": _delay(flows[0]),
        "score": statistics.geometric_mean(equal) if is_shared else sum(goodputs),
    }


def jain(goodputs: Sequence[float]) -> float:
    """Return Jain's index of some goodputs: 1 if all are equal, 1/n if one has everything."""
    squares = sum(goodput**2 for goodput in goodputs)
    return sum(goodputs) ** 2 / (len(goodputs) * squares) if squares else 0.0


def _delay(flow: Row) -> float | None:
    """Return the delay of UDP's packets, which carry the time; of TCP the round trip is known."""
    delay: float | None = flow["mean_delay_s"]
    if flow["tcp"] is not None:
        delay = flow["tcp"]["rtt_s"]
    return delay


def round_trip(flows: Sequence[Row], seconds: float) -> float:
    """Return the delays of both directions together, a lost packet with `LOST_PING_S`."""
    sent = seconds * PINGS_PER_S
    arrived = [min(flow["delivered"], sent) for flow in flows]
    waited = sum(n * (flow["mean_delay_s"] or 0.0) for n, flow in zip(arrived, flows, strict=True))
    return float(waited + LOST_PING_S * (2 * sent - sum(arrived))) / sent


def _mean_time(flows: Sequence[Row]) -> float:
    """Return the mean time of the short connections, with the limit where one took longer."""
    times = [(flow["tcp"] or {}).get("finished_s") for flow in flows]
    return statistics.mean(SHORT_LIMIT_S if time is None else time for time in times)


def has_bound(case: str) -> bool:
    """Return whether all goodput of a case is that of one flow, which has a bound."""
    return case in ("UDP", "TCP") or case in LOADS


def _line(row: Row) -> str:
    delay, bound = row.get("delay_s"), row.get("bound_bps")
    milliseconds = number(None if delay is None else 1e3 * delay)
    return (
        f"goodput {number(row['goodput_bps'] / 1e3)} kbit/s  delay {milliseconds} ms"
        f"  bound {number(None if bound is None else bound / 1e3)} kbit/s"
    )


TUNNEL = Service(
    "tunnel",
    dict.fromkeys(("UDP", "TCP", *LOADS, FOUR), 1)
    | dict.fromkeys((TO_ONE, FROM_ONE), CLIENTS)
    | dict.fromkeys((SHORT, *PINGS), 1),
    _traffic,
    _read,
    _line,
    of_gateway=(TO_ONE, FROM_ONE),
    loads=LOADS,
)
