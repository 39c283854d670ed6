"""The stream part: two layers from a source to four receivers, by every stream scheme."""

from __future__ import annotations

from typing import Any

from ncmesh.bench.instances import RECEIVERS, Instance
from ncmesh.bench.service import Row, Service, number

# Rates of the layers at the reference bit rate, bit/s; other channels have a proportional rate.
LAYERS = {"base": 200e3, "more": 600e3}
WARM_UP_S = 30.0
MEASURED_S = 30.0


def _traffic(instance: Instance) -> dict[str, Any]:
    scale = instance.mesh.air.speed
    layers = [{"name": name, "rate": round(rate * scale)} for name, rate in LAYERS.items()]
    stream = {
        "group": "group",
        "from": instance.source,
        "packet": 1_000,
        "layers": layers,
        "receivers": [{"node": node} for node in instance.receivers],
        "warm_up_s": WARM_UP_S,
        "seconds": MEASURED_S,
    }
    return {"stream": [stream]}


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    if row["error"] is not None:
        rates = [0.0] * len(instance.receivers)
    else:
        rates = [of["rate_bps"] for stream in row["streams"] for of in stream["receivers"]]
    mean = sum(rates) / len(rates)
    return {"rates_bps": rates, "mean_rate_bps": mean, "score": mean}


def _line(row: Row) -> str:
    rates = " ".join(number(rate / 1e3) for rate in row["rates_bps"])
    return f"mean {number(row['mean_rate_bps'] / 1e3)} kbit/s  receivers {rates}"


STREAM = Service("stream", {"two layers to 4": RECEIVERS}, _traffic, _read, _line)
