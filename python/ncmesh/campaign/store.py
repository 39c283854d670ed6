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

from ncmesh.arrow import OUTCOME, row_of
from ncmesh.failure import FailureError, Kind

# Columns that a campaign adds to the result of a run.
OWN = pa.schema(
    [
        ("run", pa.string()),
        ("scenario_hash", pa.string()),
        ("parameters", pa.string()),
        ("limit_s", pa.float64()),
        ("build", pa.string()),
        ("error", pa.string()),
        ("took_s", pa.float64()),
        ("profile", pa.map_(pa.string(), pa.float64())),
    ]
)
# A row is a run.
SCHEMA = pa.schema([*OWN, *OUTCOME])


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
        table = pa.Table.from_pylist([row_of(row, SCHEMA) for row in rows], schema=SCHEMA)
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
            if "run" not in table.schema.names:
                raise KeyError("run")
            # An older version of ncmesh had fewer columns.
            for name in columns:
                if name not in table.schema.names:
                    nulls = pa.nulls(table.num_rows, SCHEMA.field(name).type)
                    table = table.append_column(name, nulls)
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
