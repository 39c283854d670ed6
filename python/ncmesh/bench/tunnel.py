"""The tunnel part: packets from one node to another, by every tunnel scheme."""

from __future__ import annotations

from typing import Any

from ncmesh.bench.instances import Instance
from ncmesh.bench.service import Row, Service, number

WARM_UP_S = 5.0
MEASURED_S = 20.0


def _traffic(instance: Instance) -> dict[str, Any]:
    """Return one flow for which a packet always waits, or one TCP connection."""
    flow = {
        "from": instance.source,
        "to": instance.receivers[0],
        "protocol": instance.case.lower(),
        "warm_up_s": WARM_UP_S,
        "seconds": MEASURED_S,
    }
    return {"flow": [flow]}


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    if row["error"] is not None:
        return {"goodput_bps": 0.0, "score": 0.0}
    (flow,) = row["flows"]
    # UDP packets carry the time at which they were sent; of TCP the round trip is known.
    delay = flow["mean_delay_s"] if instance.case == "UDP" else (flow["tcp"] or {}).get("rtt_s")
    return {
        "goodput_bps": flow["throughput_bps"],
        "delay_s": delay,
        "score": flow["throughput_bps"],
        "transmissions": row["transmissions"],
        "airtime_s": sum(node["airtime_s"] for node in dict(row["nodes"]).values()),
    }


def _line(row: Row) -> str:
    delay = row.get("delay_s")
    milliseconds = number(None if delay is None else 1e3 * delay)
    return (
        f"goodput {number(row['goodput_bps'] / 1e3)} kbit/s  delay {milliseconds} ms"
        f"  bound {number(row['bound_bps'] / 1e3)} kbit/s"
    )


TUNNEL = Service("tunnel", {"UDP": 1, "TCP": 1}, _traffic, _read, _line)
