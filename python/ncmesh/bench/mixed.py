"""
The mixed part: services side by side, each by a scheme of its own.

| case | what runs | compared by the geometric mean of |
| --- | --- | --- |
| file and TCP | a file to four, a connection from its source to the first of them | goodputs |
| file and ping | a file to four, small packets both ways | goodput, 1 / round trip |
| file and stream | a file to four, two layers to them | goodput of the file, mean rate |
| two files | a file to four, one from the first of them to its source and the others | goodputs |
| all at once | a file, a connection and a stream | goodputs, mean rate |

Connection and packets go between the source of the file and its first receiver. The goodput of a
file is its length over the time until the last receiver has it. The others are measured for 30 s
after 5 s, in which the file begins. `fairness` is Jain's index of the airtime of services by their
weights, and of the goodputs of two files. A set of schemes has a name for each service, with `+`
between them.
"""

from __future__ import annotations

import statistics
from typing import Any

from ncmesh.bench import schemes
from ncmesh.bench.instances import RECEIVERS, Instance
from ncmesh.bench.service import Row, Service, number
from ncmesh.bench.stream import LAYERS, PACKET
from ncmesh.bench.tunnel import PING_BYTES, PINGS_PER_S, jain, round_trip

SIZE = 500_000
# Limit at the reference bit rate; slower channels have more time.
LIMIT_S = 300.0
WARM_UP_S = 5.0
MEASURED_S = 30.0
# Goodput that counts for a part which carried nothing, bit/s.
LEAST_BPS = 1e3

FILE, OTHER_FILE, TCP, PING, STREAM = "file", "other file", "TCP", "ping", "stream"
PARTS = {
    "file and TCP": (FILE, TCP),
    "file and ping": (FILE, PING),
    "file and stream": (FILE, STREAM),
    "two files": (FILE, OTHER_FILE),
    "all at once": (FILE, TCP, STREAM),
}
# The service that carries a part.
SERVICES = {FILE: "file", OTHER_FILE: "file", TCP: "tunnel", PING: "tunnel", STREAM: "stream"}


def _times() -> dict[str, float]:
    return {"warm_up_s": WARM_UP_S, "seconds": MEASURED_S}


def _traffic(instance: Instance) -> dict[str, Any]:
    source, first = instance.source, instance.receivers[0]
    speed = instance.mesh.air.speed
    files = [{"from": source, "to": list(instance.receivers), "size": SIZE}]
    traffic: dict[str, Any] = {"traffic": files}
    parts = PARTS[instance.case]
    if OTHER_FILE in parts:
        back = [source, *instance.receivers[1:]]
        files.append({"from": first, "to": back, "size": SIZE})
    if TCP in parts:
        traffic["flow"] = [{"from": source, "to": first, "protocol": "tcp", **_times()}]
    if PING in parts:
        ping = {"packet": PING_BYTES, "rate": 8 * PING_BYTES * PINGS_PER_S, **_times()}
        traffic["flow"] = [
            {"from": a, "to": b, **ping} for a, b in ((source, first), (first, source))
        ]
    if STREAM in parts:
        layers = [{"name": name, "rate": round(rate * speed)} for name, rate in LAYERS.items()]
        receivers = [{"node": node} for node in instance.receivers]
        group = {"group": "group", "from": source, "packet": PACKET}
        traffic["stream"] = [{**group, "layers": layers, "receivers": receivers, **_times()}]
    return traffic


def _limit_s(instance: Instance) -> float:
    return LIMIT_S / instance.mesh.air.speed


def _text(instance: Instance, scheme: str) -> str:
    """Return the schemes of the services that a case has."""
    wanted = {SERVICES[part] for part in PARTS[instance.case]}
    named = zip(schemes.SERVICES, scheme.split("+"), strict=True)
    chosen = {service: name for service, name in named if service in wanted}
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    return ",".join(f"{service}={name}" for service, name in chosen.items())


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    by_text = {_text(instance, scheme): scheme for scheme in schemes.of("mixed")}
    found: dict[str, Any] = {"scheme": by_text[row["scheme"]]}
    limit = _limit_s(instance)
    if row["error"] is not None:
        return {**found, "last_s": limit, "score": 0.0}
    parts = PARTS[instance.case]
    last = [0.0] * (2 if OTHER_FILE in parts else 1)
    unfinished = 0
    for receiver in row["receivers"]:
        is_done = receiver["verified"]
        unfinished += not is_done
        at = receiver["seconds"] if is_done else limit
        last[receiver["file"]] = max(last[receiver["file"]], at)
    found |= {"last_s": max(last), "unfinished": unfinished}
    scores = [8 * SIZE / seconds for seconds in last]
    sharing = row["sharing"]
    found["fairness"] = jain(scores) if sharing is None else sharing["fairness"]
    if TCP in parts:
        found["goodput_bps"] = row["flows"][0]["throughput_bps"]
        scores.append(max(found["goodput_bps"], LEAST_BPS))
    if PING in parts:
        found["delay_s"] = round_trip(row["flows"], MEASURED_S)
        scores.append(1 / found["delay_s"])
    if STREAM in parts:
        receivers = row["streams"][0]["receivers"]
        found["mean_rate_bps"] = statistics.fmean(of["rate_bps"] for of in receivers)
        found["least_base_share"] = min(of["layers"][0]["share"] for of in receivers)
        scores.append(max(found["mean_rate_bps"], LEAST_BPS))
    return {**found, "score": statistics.geometric_mean(scores)}


def _line(row: Row) -> str:
    shown = [f"file {number(row['last_s'])} s"]
    if row["goodput_bps"] is not None:
        shown.append(f"TCP {number(row['goodput_bps'] / 1e3)} kbit/s")
    if row["delay_s"] is not None:
        shown.append(f"ping {number(1e3 * row['delay_s'])} ms")
    if row["mean_rate_bps"] is not None:
        shown.append(f"stream {number(row['mean_rate_bps'] / 1e3)} kbit/s")
    return "  ".join(shown)


MIXED = Service(
    "mixed", dict.fromkeys(PARTS, RECEIVERS), _traffic, _read, _line, _limit_s, text=_text
)
