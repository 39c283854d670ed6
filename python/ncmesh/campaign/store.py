"""Results on disk: a directory of Parquet files that only ever grows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ncmesh.failure import FailureError, Kind

RECEIVER = pa.struct(
    [
        ("node", pa.string()),
        ("verified", pa.bool_()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("throughput_bps", pa.float64()),
    ]
)
TCP = pa.struct(
    [
        ("congestion", pa.string()),
        ("segment_bytes", pa.int64()),
        ("bytes", pa.int64()),
        ("segments", pa.int64()),
        ("retransmissions", pa.int64()),
        ("arrived", pa.int64()),
        ("loss", pa.float64()),
        ("rtt_s", pa.float64()),
        ("min_rtt_s", pa.float64()),
        ("finished_s", pa.float64()),
    ]
)
FLOW = pa.struct(
    [
        ("from", pa.string()),
        ("to", pa.string()),
        ("packet_bytes", pa.int64()),
        ("taken", pa.int64()),
        ("refused", pa.int64()),
        ("delivered", pa.int64()),
        ("disordered", pa.int64()),
        ("corrupt", pa.int64()),
        ("seconds", pa.float64()),
        ("throughput_bps", pa.float64()),
        ("packets_per_slot", pa.float64()),
        ("heard", pa.int64()),
        ("innovative", pa.int64()),
        ("mean_delay_s", pa.float64()),
        ("tcp", TCP),
    ]
)
CODING = pa.struct(
    [
        ("sent", pa.int64()),
        ("coded", pa.int64()),
        ("decoded", pa.int64()),
        ("undecodable", pa.int64()),
        ("repeated", pa.int64()),
        ("hold_s", pa.float64()),
    ]
)
STREAM_LAYER = pa.struct(
    [
        ("name", pa.string()),
        ("delivered", pa.int64()),
        ("rate_bps", pa.float64()),
        ("share", pa.float64()),
    ]
)
STREAM_RECEIVER = pa.struct(
    [
        ("node", pa.string()),
        ("rate_bps", pa.float64()),
        ("layers", pa.list_(STREAM_LAYER)),
        ("corrupt", pa.int64()),
        ("mean_delay_s", pa.float64()),
    ]
)
STREAM = pa.struct(
    [
        ("group", pa.string()),
        ("from", pa.string()),
        ("packet_bytes", pa.int64()),
        ("taken", pa.list_(pa.int64())),
        ("refused", pa.int64()),
        ("seconds", pa.float64()),
        ("receivers", pa.list_(STREAM_RECEIVER)),
    ]
)
# Packets of each flow that had arrived by then, of a run in the lab.
SAMPLES = pa.struct(
    [
        ("seconds", pa.list_(pa.float64())),
        ("delivered", pa.list_(pa.list_(pa.int64()))),
    ]
)
# A row is a run.
SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("scenario", pa.string()),
        ("scenario_hash", pa.string()),
        ("parameters", pa.string()),
        ("scheme", pa.string()),
        ("seed", pa.int64()),
        ("limit_s", pa.float64()),
        ("version", pa.string()),
        ("build", pa.string()),
        ("error", pa.string()),
        ("trace_hash", pa.string()),
        ("events", pa.int64()),
        ("bytes", pa.int64()),
        ("transmissions", pa.int64()),
        ("source_redundancy", pa.float64()),
        ("seconds", pa.float64()),
        ("forwarders", pa.list_(pa.string())),
        ("receivers", pa.list_(RECEIVER)),
        ("flows", pa.list_(FLOW)),
        ("coding", pa.map_(pa.string(), CODING)),
        ("streams", pa.list_(STREAM)),
        ("samples", SAMPLES),
        ("cpu", pa.map_(pa.string(), pa.float64())),
        ("profile", pa.map_(pa.string(), pa.float64())),
        ("lag_mean_ms", pa.float64()),
        ("node_transmissions", pa.map_(pa.string(), pa.int64())),
        ("took_s", pa.float64()),
    ]
)

# Columns that older files lack.
ADDED = ("flows", "coding", "streams", "samples", "cpu", "profile", "lag_mean_ms")


class Store:
    """The results in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextlib.contextmanager
    def open_for_writing(self) -> Iterator[None]:
        """Make the directory, and keep every other writer out of it."""
        with self._lock():
            for draft in self.directory.glob("*.draft"):
                draft.unlink(missing_ok=True)
            yield

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows in a file of their own, which is there whole or not at all."""
        table = pa.Table.from_pylist([_row(row) for row in rows], schema=SCHEMA)
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer)
        file = self.directory / f"{uuid.uuid4().hex}.parquet"
        draft = file.with_suffix(".draft")
        try:
            with draft.open("wb") as out:
                out.write(buffer.getvalue())
                out.flush()
                os.fsync(out.fileno())
            draft.replace(file)
            self._sync()
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise self._not_written(error) from error

    def table(self, runs: Collection[str] | None = None) -> pa.Table:
        """All rows, or those of some runs; see `SCHEMA`."""
        parts = [self._part(file, SCHEMA.names) for file in self._files()]
        table = pa.concat_tables([SCHEMA.empty_table(), *parts])
        if runs is None:
            return table
        return table.filter(pc.is_in(table["run"], pa.array(runs, pa.string())))

    def done(self) -> set[str]:
        """Keys of the runs that are there."""
        keys = (self._part(file, ["run"])["run"].to_pylist() for file in self._files())
        return set().union(*keys)

    def _lock(self) -> IO[str]:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with contextlib.ExitStack() as closing:
                lock = closing.enter_context((self.directory / ".lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                closing.pop_all()
        except BlockingIOError as error:
            message = f"{self.directory} is in use by another campaign"
            raise FailureError(Kind.IN_USE, message) from error
        except OSError as error:
            raise self._not_written(error) from error
        return lock

    def _files(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))

    def _part(self, file: Path, columns: list[str]) -> pa.Table:
        try:
            table = pq.ParquetFile(file).read(columns)
            for name in [
                name for name in ADDED if name in columns and name not in table.schema.names
            ]:
                table = table.append_column(name, pa.nulls(table.num_rows, SCHEMA.field(name).type))
            return table.select(columns).cast(pa.schema([SCHEMA.field(name) for name in columns]))
        except (OSError, ValueError, KeyError) as error:
            raise FailureError(Kind.FILE, f"{file} is no file of results: {error}") from error

    def _sync(self) -> None:
        directory = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _not_written(self, error: OSError) -> FailureError:
        message = f"cannot write results in {self.directory}: {error.strerror}"
        return FailureError(Kind.FILE, message)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    maps = {name: row.get(name) for name in ("node_transmissions", "coding")}
    return {**row, **{name: None if of is None else list(of.items()) for name, of in maps.items()}}
