"""The table of the scoreboard: one row for each run, in one Parquet file with how it was made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ncmesh.bench import file, stream, tunnel
from ncmesh.bench.bound import least_seconds, most_bps
from ncmesh.bench.bounds import Bounds
from ncmesh.bench.files import replace
from ncmesh.bench.instances import Instance
from ncmesh.bench.service import Row, Service
from ncmesh.failure import FailureError, Kind

SCHEMA = pa.schema(
    [
        # The run.
        ("run", pa.string()),
        ("service", pa.string()),
        ("mesh", pa.string()),
        ("family", pa.string()),
        ("link_power", pa.string()),
        ("nodes", pa.int64()),
        ("case", pa.string()),
        ("instance", pa.int64()),
        ("source", pa.string()),
        ("receivers", pa.list_(pa.string())),
        ("scheme", pa.string()),
        ("draw", pa.int64()),
        ("seed", pa.int64()),
        ("limit_s", pa.float64()),
        ("version", pa.string()),
        ("build", pa.string()),
        ("commit", pa.string()),
        ("error", pa.string()),
        ("took_s", pa.float64()),
        ("score", pa.float64()),
        # Files.
        ("last_s", pa.float64()),
        ("mean_s", pa.float64()),
        ("unfinished", pa.int64()),
        ("transmissions", pa.int64()),
        ("per_packet", pa.float64()),
        ("airtime_s", pa.float64()),
        ("control_airtime_s", pa.float64()),
        ("control_bytes", pa.int64()),
        ("data_bytes", pa.float64()),
        ("bound", pa.float64()),
        ("bound_s", pa.float64()),
        ("clique_bound", pa.float64()),
        ("clique_bound_s", pa.float64()),
        # Tunnels.
        ("goodput_bps", pa.float64()),
        ("bound_bps", pa.float64()),
        ("clique_bound_bps", pa.float64()),
        ("delay_s", pa.float64()),
        ("least_bps", pa.float64()),
        ("fairness", pa.float64()),
        ("rate_bps", pa.int64()),
        # Streams.
        ("rates_bps", pa.list_(pa.float64())),
        ("mean_rate_bps", pa.float64()),
        ("base_shares", pa.list_(pa.float64())),
        ("least_base_share", pa.float64()),
        ("optimum_share", pa.float64()),
    ]
)
KEY = b"ncmesh.scoreboard"


@dataclass(frozen=True)
class Made:
    """How a table was made."""

    command: str
    """The command line, without where results are and runs are made."""
    left_out: tuple[str, ...]
    """Meshes whose data is not there, each with the reason."""
    defaults: dict[str, str]
    """The default scheme of each service."""


def row(service: Service, instance: Instance, run: Row, bounds: Bounds, commit: str) -> Row:
    """Return the row of a run, from its row in the store of runs."""
    mesh = instance.mesh
    found: dict[str, Any] = {
        **dict.fromkeys(SCHEMA.names),
        **{key: run[key] for key in ("run", "scheme", "seed", "limit_s", "version", "build")},
        **{key: run[key] for key in ("error", "took_s")},
        **instance.parameters,
        "service": service.name,
        "family": mesh.family,
        "nodes": len(mesh.names),
        "source": instance.source,
        "receivers": list(instance.receivers),
        "draw": instance.draw,
        "commit": commit,
        "rate_bps": instance.rate_bps,
        **service.read(instance, run),
    }
    if service is stream.STREAM:
        best = bounds.of_streams(instance)
        if best is not None:
            found["optimum_share"] = stream.share_of_optimum(instance, found, best)
        return found
    is_flow = service is tunnel.TUNNEL and tunnel.has_bound(instance.case)
    has_bound = service is file.FILE or is_flow
    if mesh.moves or not has_bound:
        return found

    bound = bounds.of(instance)
    found["bound"], found["clique_bound"] = bound.total, bound.clique
    if service is file.FILE:
        size = file.size_of(instance.case)
        found["bound_s"] = least_seconds(bound.total, size, mesh.air)
        found["clique_bound_s"] = least_seconds(bound.clique, size, mesh.air)
    else:
        found["bound_bps"] = most_bps(bound.total, mesh.air)
        found["clique_bound_bps"] = most_bps(bound.clique, mesh.air)
    return found


def write(path: Path, rows: Sequence[Row], made: Made) -> None:
    """Write the table."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    table = table.replace_schema_metadata({KEY: json.dumps(asdict(made)).encode()})
    replace(path, lambda draft: pq.write_table(table, draft))


def read(path: Path) -> tuple[list[dict[str, Any]], Made]:
    """Read a table."""
    try:
        table = pq.read_table(path, schema=SCHEMA)
        made = json.loads(pq.read_schema(path).metadata[KEY])
    except FileNotFoundError as error:
        raise FailureError(Kind.USAGE, f"{path} does not exist") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FailureError(Kind.USAGE, f"{path} is no table of the scoreboard: {error}") from error
    made["left_out"] = tuple(made["left_out"])
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows, Made(**made)


def commit() -> str:
    """Return the commit of the current directory, `unknown` if it is none of git's."""
    command = ("git", "describe", "--always", "--dirty", "--exclude", "*")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
