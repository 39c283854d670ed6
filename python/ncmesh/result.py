"""One simulated run of a file transfer, flows through a tunnel or streams, and its result."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ncmesh import _ncmesh, extras, summary
from ncmesh.outcome import Outcome

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

Scenario = Mapping[str, Any] | str | os.PathLike[str]
Planner: typing.TypeAlias = "Callable[[NDArray[np.float64], int, list[int]], Mapping[str, object]]"


class Result(Outcome):
    """
    Result of a run. A file transfer has receivers, a tunnel flows, live streams have streams.

    What the service does not have is empty or `None`. The fields are those of `Outcome`.
    """

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Result:
        """Return the result that `ncmesh.simulate` returned, or `ncmesh lab --json` printed."""
        return cls(**_arguments(cls, outcome))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as dicts, lists, text and numbers, with the names of the schema."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_arrow(self) -> pa.Table:
        """Return a table of one row per receiver, in which the run's own values are repeated."""
        # Imported here: it takes longer than all else.
        from ncmesh.arrow import per_receiver

        return per_receiver([self.to_dict()])

    def to_pandas(self) -> pd.DataFrame:
        """
        Return the table of `to_arrow` for pandas.

        Raises `MissingExtraError` without pandas: `pip install 'ncmesh[pandas]'`.
        """
        extras.load("pandas")
        table: pd.DataFrame = self.to_arrow().to_pandas()
        return table

    def to_polars(self) -> pl.DataFrame:
        """
        Return the table of `to_arrow` for Polars.

        Raises `MissingExtraError` without Polars: `pip install 'ncmesh[polars]'`.
        """
        table: pl.DataFrame = extras.load("polars").from_arrow(self.to_arrow())
        return table

    def plot(self, ax: Any = None) -> Any:  # noqa: ANN401 (of matplotlib)
        """
        Draw the rate of each receiver or flow, and return the axes.

        `ax` are axes of matplotlib; without them a figure is made. Raises `MissingExtraError`
        without matplotlib: `pip install 'ncmesh[plot]'`.
        """
        return summary.plot(self, ax)

    def _repr_html_(self) -> str:
        return summary.as_html(self)


# Fields whose names are keywords of Python have an underscore behind them there.


def _arguments(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a class of `ncmesh.outcome`."""
    hints = _hints(cls)
    names = {name.rstrip("_"): name for name in hints}
    return {names[key]: _read(hints[names[key]], value) for key, value in values.items()}


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(kind: Any, value: Any) -> Any:  # noqa: ANN401 (a type, and any JSON)
    if value is None:
        return None
    if isinstance(kind, types.UnionType):
        (kind,) = (choice for choice in kind.__args__ if choice is not types.NoneType)
    if dataclasses.is_dataclass(kind):
        return kind(**_arguments(kind, value))  # type: ignore[operator, arg-type]
    if typing.get_origin(kind) is tuple:
        return tuple(_read(kind.__args__[0], item) for item in value)
    if typing.get_origin(kind) is dict:
        return {key: _read(kind.__args__[1], item) for key, item in value.items()}
    return value


def _plain(value: Any) -> Any:  # noqa: ANN401 (any value of a result)
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name.rstrip("_"): _plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def run(
    scenario: Scenario,
    seed: int | None = None,
    *,
    scheme: str | None = None,
    mac: str | None = None,
    paths: int | None = None,
    set: Mapping[str, Any] | None = None,
    limit_s: float | None = None,
    progress: bool = False,
    plan: Planner | None = None,
) -> Result:
    """
    Simulate the file transfer, flows or streams of `scenario`.

    `seed` names all random draws; without it the scenario's own counts, which is 1 by default.
    `scenario` is a scenario file, or a dict of the same shape; file names in a dict are relative to
    the current directory. `scheme` carries the file, the flows if it is a tunnel scheme, the
    streams if it is a stream scheme; `auto`, the default, is the default scheme of the first of
    these that the scenario has. `mac` is the setting `medium.mac`, `paths` is `protocol.mc2.paths`;
    `set` changes other settings, keys joined by dots, as in `{"protocol.pacifier.knob": 0.5}`. The
    run ends with the transfer, or after `limit_s` seconds of the mesh's clock. `progress` shows a
    bar on standard error. Other threads run meanwhile.

    `plan` says who forwards a file, in place of a scheme: `plan(loss, source, receivers)` returns
    what `pacifier.plan` does for the same arguments, or at least its `forwarders`, those upstream
    first, and their `tx_credit`. `z` of the source is 1 without it, and a source without a child by
    `parent` waits for none. `loss` is what the source knows of the mesh when it plans, which it
    does at each turn of a generation. The file is then carried as by `pacifier`; `variant`,
    `generation`, `symbol_size` and `timeout_factor` are settings of `protocol.planned`.

    Rates and sizes are whole numbers, in bit/s and bytes, or text such as "2M". Scalars of NumPy
    count as numbers, arrays as lists.

    Raises `ScenarioError` for a wrong scenario, seed, scheme or setting, `UnreachableError` if no
    path leads to a receiver, `OSError` if the file to send cannot be read, `TypeError` for a limit
    that is no number, `ValueError` for a plan that cannot be followed, and what `plan` raises.
    """
    changes = dict(set or {})
    if paths is not None:
        changes["protocol.mc2.paths"] = paths
    with _shown(progress) as show:
        outcome = _ncmesh.simulate(
            scenario,
            seed,
            scheme=scheme,
            mac=mac,
            set=changes,
            limit_s=limit_s,
            progress=show,
            plan=plan,
        )
    return Result.of(outcome)


@contextlib.contextmanager
def _shown(progress: bool) -> Iterator[Callable[[float], None] | None]:
    """Return what draws the share of a run that is done, if it is to be drawn."""
    if not progress:
        yield None
        return
    form = "{l_bar}{bar}| {elapsed}<{remaining}"
    with tqdm(total=1.0, desc="simulating", bar_format=form) as bar:

        def show(share: float) -> None:
            bar.update(share - bar.n)

        yield show
        bar.update(1.0 - bar.n)
