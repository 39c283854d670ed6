"""Makes the runs that are missing and keeps what comes of them."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ncmesh._ncmesh import ScenarioError
from ncmesh.campaign.runs import Run
from ncmesh.campaign.store import Store
from ncmesh.campaign.workers import Workers
from ncmesh.failure import FailureError, Kind

# Results wait so long at most before they are written, so that a crash costs no more.
FLUSH_S = 5.0


def execute(
    runs: Mapping[str, Run],
    store: Store,
    workers: Workers,
    advance: Callable[[], object],
    show: Callable[[Mapping[str, Any]], object] = lambda _: None,
) -> None:
    """Make the `runs`, by key, that `store` lacks. Calls `advance` and `show(row)` after each."""
    with store.open_for_writing():
        done = store.done()
        missing = [run for key, run in runs.items() if key not in done]
        of_each_kind = {(run.scenario.hash, run.scheme): run for run in reversed(missing)}
        for run in reversed(of_each_kind.values()):
            run.check()
        if missing:
            with told_in_a_line(), workers.executor() as executor:
                _collect(executor, missing, store, advance, show)


def _collect(
    executor: Executor,
    runs: Sequence[Run],
    store: Store,
    advance: Callable[[], object],
    show: Callable[[Mapping[str, Any]], object],
) -> None:
    """Submit all, and write their rows as they come."""
    finished: queue.SimpleQueue[Future[dict[str, Any]]] = queue.SimpleQueue()
    rows: list[dict[str, Any]] = []
    written = time.monotonic()
    try:
        for run in runs:
            executor.submit(run.perform).add_done_callback(finished.put)
        left = len(runs)
        while left > 0:
            with contextlib.suppress(queue.Empty):
                rows.append(finished.get(timeout=FLUSH_S).result())
                left -= 1
                advance()
                show(rows[-1])
            if rows and time.monotonic() - written >= FLUSH_S:
                fresh, rows = rows, []
                store.append(fresh)
                written = time.monotonic()
    finally:
        if rows:
            store.append(rows)


@contextlib.contextmanager
def told_in_a_line() -> Iterator[None]:
    """Faults of workers, as failures."""
    try:
        yield
    except FailureError:
        raise
    except ScenarioError as error:
        raise FailureError(Kind.CONFIG, str(error)) from error
    except BrokenProcessPool as error:
        raise FailureError(Kind.OTHER, f"a worker process died; {_GO_ON}") from error
    except CancelledError as error:
        raise FailureError(Kind.NO_SCHEDULER, f"the Dask scheduler is gone; {_GO_ON}") from error
    except Exception as error:
        message = f"a run failed: {type(error).__name__}: {error}"
        raise FailureError(Kind.OTHER, message) from error


_GO_ON = "what was finished is kept: run it again to go on"
