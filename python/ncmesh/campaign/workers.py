"""Where runs are made: in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from ncmesh import extras
from ncmesh.failure import FailureError, Kind

# A scheduler that does not answer in this time is dead.
CONNECT_S = 10.0


@dataclass(frozen=True)
class Workers:
    """So many processes of this machine, or the Dask cluster of a scheduler."""

    jobs: int | None = None
    """Processes; as many as there are processors to use if it is not said."""
    dask: str | None = None
    """The scheduler's address, as in `tcp://host:8786`."""

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor]:
        """Start or join them; what is under way when the block fails is ended."""
        with _cluster(self.dask) if self.dask else _processes(self.jobs) as executor:
            yield executor


@contextlib.contextmanager
def _processes(jobs: int | None) -> Iterator[Executor]:
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        jobs or len(os.sched_getaffinity(0)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin_worker,
    )
    try:
        yield executor
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        # Waits for its thread: one that ends as the interpreter does may write to a closed pipe.
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    # Imported here: it takes a second, and not everybody has it.
    distributed = extras.load("distributed")
    _silence("distributed")
    try:
        extras.load("distributed.comm").get_address_host_port(address)
        client: Any = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"no Dask scheduler answers at {address}: {error}"
        raise FailureError(Kind.NO_SCHEDULER, message) from error
    with client:
        yield client.get_executor(pure=False)


def _silence(package: str) -> None:
    """Keep a package from logging, with tracebacks, what its exceptions say too."""
    for name in logging.root.manager.loggerDict:
        if name.split(".")[0] == package:
            logging.getLogger(name).setLevel(logging.CRITICAL)
