"""
The file part: a file from a source to its receivers, by every file scheme.

A receiver that does not have the whole file within the limit counts as if it had it then, and is
counted in `unfinished`. So do the receivers of a run that ended early because no path was found.
"""

from __future__ import annotations

from typing import Any

from ncmesh.bench.instances import RECEIVERS, Instance
from ncmesh.bench.service import Row, Service, number

SIZES = {"0.5 MB to 4": 500_000, "5 MB to 4": 5_000_000, "0.5 MB to all": 500_000}
# Limits at the reference bit rate; slower channels have more time.
LIMITS_S = {"0.5 MB to 4": 600.0, "5 MB to 4": 6_000.0, "0.5 MB to all": 1_200.0}


def size_of(case: str) -> int:
    """Return the bytes of a case's file."""
    return SIZES[case]


def _limit_s(instance: Instance) -> float:
    return LIMITS_S[instance.case] / instance.mesh.air.speed


def _traffic(instance: Instance) -> dict[str, Any]:
    return {
        "traffic": {
            "from": instance.source,
            "to": list(instance.receivers),
            "size": size_of(instance.case),
        }
    }


def _read(instance: Instance, row: Row) -> dict[str, Any]:
    limit = _limit_s(instance)
    if row["error"] is not None:
        unfinished = len(instance.receivers)
        return {"last_s": limit, "mean_s": limit, "unfinished": unfinished, "score": 1.0 / limit}
    done = [r["seconds"] if r["verified"] else None for r in row["receivers"]]
    times = [limit if seconds is None else seconds for seconds in done]

    usage = dict(row["nodes"])
    control = [of for node in usage.values() for of in dict(node["control"]).values()]
    # The source's own packets say how long the packets of this scheme are.
    sent = usage[instance.source]["transmissions"]
    payload = row["source_redundancy"] * row["bytes"] / sent if sent else None
    data = row["transmissions"] * payload if payload else None
    return {
        "last_s": max(times),
        "mean_s": sum(times) / len(times),
        "unfinished": done.count(None),
        "score": 1.0 / max(times),
        "transmissions": row["transmissions"],
        "per_packet": data / row["bytes"] if data else None,
        "airtime_s": sum(node["airtime_s"] for node in usage.values()),
        "control_airtime_s": sum(of["airtime_s"] for of in control),
        "control_bytes": sum(of["bytes"] for of in control),
        "data_bytes": data,
    }


def _line(row: Row) -> str:
    unfinished = f"  {row['unfinished']} unfinished" if row["unfinished"] else ""
    return (
        f"last {number(row['last_s'])} s  mean {number(row['mean_s'])} s"
        f"  sent/packet {number(row.get('per_packet'))}  bound {number(row['bound'])}"
        f"  least {number(row['bound_s'])} s{unfinished}"
    )


FILE = Service(
    "file",
    dict.fromkeys(SIZES, RECEIVERS) | {"0.5 MB to all": None},
    _traffic,
    _read,
    _line,
    _limit_s,
)
