"""`python -m ncmesh reproduce`."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ncmesh import _ncmesh
from ncmesh.campaign import Campaign, Run, Store, Workers
from ncmesh.campaign.command import add_worker_arguments, perform, workers_of
from ncmesh.failure import FailureError, Kind
from ncmesh.reproduce import EXPERIMENTS, SCHEMES, Experiment
from ncmesh.reproduce.experiment import Case, Rows, Scale
from ncmesh.reproduce.lab import LabRun
from ncmesh.reproduce.page import Circumstances, Report, page
from ncmesh.reproduce.piece import Computed, Name, compute

# As in the papers. A run that takes longer has a receiver that never gets the file.
FULL = Scale(
    "full",
    topologies=10,
    receivers=9,
    file_bytes=12_000_000,
    limit_s=20_000.0,
    knobs=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    trials=1000,
    loss_step=0.05,
    slots=1_000_000,
    flow_s=90.0,
)
# The same in small: seconds, for a machine that checks every change.
QUICK = Scale(
    "quick",
    topologies=3,
    receivers=4,
    file_bytes=300_000,
    limit_s=1_000.0,
    knobs=(0.0, 1.0),
    trials=20,
    loss_step=0.35,
    slots=50_000,
    flow_s=5.0,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="experiments, or groups of them such as `pacifier`; `list` shows all",
    )
    parser.add_argument("--quick", action="store_true", help="the same in small: less than two minutes")
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    parser.add_argument(
        "--lab",
        nargs="?",
        const="ncmesh",
        metavar="PROGRAM",
        help="testbeds in the lab of real daemons too, in real time, by this program [default: ncmesh]",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="where pages, plots, tables and the results of runs are kept [default: reproduction]",
    )
    add_worker_arguments(parser)
    parser.set_defaults(perform=_reproduce)


def _reproduce(args: argparse.Namespace) -> None:
    if args.names == ["list"]:
        _list(args.json)
        return
    chosen = _chosen(args.names)
    scale = QUICK if args.quick else FULL
    if args.lab:
        scale = _with_lab(scale, args.lab)
    runs = {e.name: e.runs(scale) for e in chosen}
    workers = workers_of(args)
    rows = _rows(runs, Store(args.out / "runs"), workers)
    pieces = {(e.name, name): piece for e in chosen for name, piece in e.pieces(scale).items()}
    computed = compute(pieces, workers)
    reports = [_report(e, runs[e.name], rows, computed, scale, args.out) for e in chosen]
    made = Circumstances(
        command=shlex.join(["python", "-m", "ncmesh", *sys.argv[1:]]),
        version=_ncmesh.__version__,
        scale=scale,
        runs=len(rows) + len(computed),
        took_s=sum(row["took_s"] for row in rows.values()) + sum(c.took_s for c in computed.values()),
    )
    _write_pages(reports, made, args.out)
    _show(reports, args)


def _list(as_json: bool) -> None:
    if as_json:
        print(json.dumps([{"name": e.name, "title": e.title} for e in EXPERIMENTS.values()]))
        return
    for experiment in EXPERIMENTS.values():
        print(f"{experiment.name:16} {experiment.title}")


def _chosen(names: Sequence[str]) -> list[Experiment]:
    chosen: dict[str, Experiment] = {}
    for name in names:
        group = SCHEMES.get(name, name)
        found = {n: e for n, e in EXPERIMENTS.items() if n == name or n.startswith(f"{group}-")}
        if not found:
            message = f"no experiment is called {name}: `reproduce list` shows all"
            raise FailureError(Kind.USAGE, message)
        chosen |= found
    return list(chosen.values())


def _with_lab(scale: Scale, program: str) -> Scale:
    found = shutil.which(program)
    if found is None:
        message = f"there is no program {program}: name it, as in --lab target/release/ncmesh"
        raise FailureError(Kind.USAGE, message)
    return replace(scale, lab=found)


def _rows(
    runs: Mapping[str, Mapping[Case, Run]], store: Store, workers: Workers
) -> dict[str, dict[str, Any]]:
    """The rows of all runs, by key; what is missing is run."""
    every = {run.key: run for cases in runs.values() for run in cases.values()}
    simulated = {key: run for key, run in every.items() if not isinstance(run, LabRun)}
    perform(Campaign("reproduce", simulated), store, workers)
    if len(simulated) < len(every):
        # On the wall clock: one at a time, here.
        real = {key: run for key, run in every.items() if key not in simulated}
        perform(Campaign("lab", real), store, Workers(jobs=1))
    rows = {row["run"]: row for row in store.table(every.keys()).to_pylist()}
    for key, row in rows.items():
        if row["error"] is not None:
            raise FailureError(Kind.OTHER, f"{every[key]}: {row['error']}")
    return rows


def _report(
    experiment: Experiment,
    runs: Mapping[Case, Run],
    rows: Mapping[str, dict[str, Any]],
    computed: Mapping[Name, Computed],
    scale: Scale,
    out: Path,
) -> Report:
    own = {case: rows[run.key] for case, run in runs.items()}
    pieces = {name: made for (of, name), made in computed.items() if of == experiment.name}
    values = {name: made.value for name, made in pieces.items()}
    findings = experiment.findings(Rows(own, values), scale)
    table = pa.Table.from_pylist(list(findings.table))
    try:
        pa.csv.write_csv(table, out / f"{experiment.name}.csv")
        pq.write_table(table, out / f"{experiment.name}.parquet")
        findings.figure.savefig(out / f"{experiment.name}.png", dpi=80)
    except OSError as error:
        raise _not_written(out, error) from error
    took_s = sum(row["took_s"] for row in own.values()) + sum(made.took_s for made in pieces.values())
    return Report(experiment, findings, len(own) + len(pieces), took_s)


def _write_pages(reports: Sequence[Report], made: Circumstances, out: Path) -> None:
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.experiment.name.partition("-")[0], []).append(report)
    for group, own in groups.items():
        try:
            (out / f"{group}.md").write_text(page(group, own, made))
        except OSError as error:
            raise _not_written(out, error) from error


def _not_written(out: Path, error: OSError) -> FailureError:
    return FailureError(Kind.FILE, f"cannot write in {out}: {error.strerror or error}")


def _show(reports: Sequence[Report], args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps({"experiments": [_as_dict(report) for report in reports]}, indent=1))
        return
    for report in reports:
        print(f"{report.experiment.name}: {report.experiment.title}")
        for claim in report.findings.claims:
            print(f"  {claim.verdict:7} {claim.text}: paper {claim.paper}, ours {claim.ours}")
            if claim.spread:
                print(f"          {claim.spread}; agrees from {claim.tolerance}")
    print(f"pages, plots and tables are in {args.out}")


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "name": report.experiment.name,
        "title": report.experiment.title,
        "runs": report.runs,
        "took_s": report.took_s,
        "claims": [claim.to_dict() for claim in report.findings.claims],
    }
