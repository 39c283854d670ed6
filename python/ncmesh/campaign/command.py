"""`python -m ncmesh campaign`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from tqdm import tqdm

from ncmesh.arrow import per_receiver
from ncmesh.campaign import picture
from ncmesh.campaign.file import Campaign, load
from ncmesh.campaign.schedule import execute
from ncmesh.campaign.store import Store
from ncmesh.campaign.workers import Workers
from ncmesh.failure import FailureError, Kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="make the runs that are missing")
    add_worker_arguments(run)
    run.set_defaults(perform=_run)
    status = commands.add_parser("status", help="show what is there and what is missing")
    status.set_defaults(perform=_status)
    export = commands.add_parser("export", help="write a row per run and receiver")
    export.set_defaults(perform=_export)
    plot = commands.add_parser("plot", help="draw the rates of its runs")
    plot.set_defaults(perform=_plot)
    for command in (run, status, export, plot):
        command.add_argument("file", type=Path, metavar="FILE", help="the campaign, in TOML")
        command.add_argument(
            "--results",
            type=Path,
            metavar="DIR",
            help="where results are [default: FILE with .results for its ending]",
        )
    export.add_argument("output", type=Path, metavar="OUTPUT", help="a file .csv or .parquet")
    plot.add_argument("output", type=Path, metavar="OUTPUT", help="a file .pdf, .png or .svg")
    plot.add_argument(
        "--x", metavar="KEY", help="parameter of the horizontal axis [default: the first numeric]"
    )


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """Say where runs can be made."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=jobs, metavar="N", help="number of processes [default: one per processor]"
    )
    where.add_argument("--dask", metavar="ADDRESS", help="the Dask cluster of this scheduler")


def workers_of(args: argparse.Namespace) -> Workers:
    """Where the command line says that runs are made."""
    return Workers(args.jobs, args.dask)


def jobs(text: str) -> int:
    """A number of processes."""
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"{text}: allowed is 1 to 4096")
    return int(text)


def _campaign(args: argparse.Namespace) -> tuple[Campaign, Store]:
    return load(args.file), Store(args.results or args.file.with_suffix(".results"))


def _run(args: argparse.Namespace) -> None:
    campaign, store = _campaign(args)
    perform(campaign, store, workers_of(args))
    _show(campaign, store)


def perform(campaign: Campaign, store: Store, workers: Workers) -> None:
    """Make what is missing of a campaign, with a progress bar on a terminal."""
    done = len(store.done() & campaign.runs.keys())
    with tqdm(
        desc=campaign.name, total=len(campaign.runs), initial=done, unit="run", disable=None
    ) as bar:
        execute(campaign.runs, store, workers, bar.update)


def _status(args: argparse.Namespace) -> None:
    _show(*_campaign(args))


def _show(campaign: Campaign, store: Store) -> None:
    rows = store.table(campaign.runs.keys())
    print(f"{campaign.name}: {rows.num_rows} of {len(campaign.runs)} runs are there")
    failed = Counter(error for error in rows["error"].to_pylist() if error is not None)
    for error, count in failed.most_common(5):
        print(f"  {count} ended early: {error}")


def _export(args: argparse.Namespace) -> None:
    campaign, store = _campaign(args)
    table = _exported(store.table(campaign.runs.keys()))
    try:
        if args.output.suffix == ".csv":
            pa.csv.write_csv(table, args.output)
        elif args.output.suffix == ".parquet":
            pq.write_table(table, args.output)
        else:
            message = f"{args.output}: the name must end in .csv or .parquet"
            raise FailureError(Kind.USAGE, message)
    except OSError as error:
        raise FailureError(Kind.FILE, f"cannot write {args.output}: {error}") from error


def _plot(args: argparse.Namespace) -> None:
    campaign, store = _campaign(args)
    rows = store.table(campaign.runs.keys()).to_pylist(maps_as_pydicts="lossy")
    picture.draw(rows, campaign.name, args.output, args.x)


def _exported(runs: pa.Table) -> pa.Table:
    """A row per run and receiver, with a column per parameter in place of `parameters`."""
    runs = runs.sort_by([("scheme", "ascending"), ("seed", "ascending")])
    rows = runs.to_pylist()
    columns = per_receiver(rows, runs.schema).drop_columns(["parameters"])
    varied = [json.loads(row["parameters"]) for row in rows for _ in row["receivers"] or [None]]
    # A run lacks the parameters that do not concern its scheme.
    for key in dict.fromkeys(key for values in varied for key in values):
        columns = columns.append_column(key, _column([values.get(key) for values in varied]))
    return columns


def _column(values: list[Any]) -> pa.Array:
    """Numbers as they are; what is of several kinds, or no single value, as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds == {str} or kinds == {bool}:
        return pa.array(values)
    return pa.array([None if value is None else json.dumps(value) for value in values])
