"""
`python -m ncmesh_papers reproduce`: runs experiments and judges the papers' claims.

The command makes the runs that are missing (`ncmesh.campaign`), computes the pieces, and writes for
each experiment its picture and its numbers, and for each paper its results and its page.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ncmesh.campaign import Campaign, Run, Store, Workers
from ncmesh.campaign.command import add_worker_arguments, jobs, perform, workers_of
from ncmesh.failure import FailureError, Kind
from ncmesh_papers._models import __version__
from ncmesh_papers.reproduce import CHEAP, EXPERIMENTS, SCHEMES, Experiment, beside, results
from ncmesh_papers.reproduce.experiment import Case, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.page import page
from ncmesh_papers.reproduce.piece import Computed, Name, compute
from ncmesh_papers.reproduce.results import Record

# The papers' scale. A run that takes longer than the limit has a receiver that never gets the file.
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
# A small scale that takes seconds, to test that every experiment runs.
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
NO_STATEMENT = "quick scale: these verdicts are no statement about the paper"


@dataclass(frozen=True)
class Report:
    """An experiment and its findings."""

    experiment: Experiment
    findings: Findings
    runs: int
    """Runs and pieces."""
    took_s: float
    """Processor time of runs and pieces in seconds, whenever they were made."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="experiments, or groups such as `pacifier`; `cheap` are those that take seconds, "
        "`list` shows all",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run at a small scale, in less than two minutes; the verdicts are no statement about "
        "the paper",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--check",
        nargs="?",
        type=Path,
        const=Path("papers/pages"),
        metavar="DIR",
        help="compare the verdicts with those recorded in DIR [default: papers/pages]; exit code 1 "
        "if one has changed",
    )
    parser.add_argument(
        "--lab",
        nargs="?",
        const="ncmesh",
        metavar="PROGRAM",
        help="also run testbeds in the lab of real daemons, in real time, with this program "
        "[default: ncmesh]",
    )
    parser.add_argument(
        "--lab-jobs",
        type=jobs,
        default=1,
        metavar="N",
        help="number of labs at a time; they run in real time, so all of them together must not "
        "take all processor time [default: 1]",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="where pages, pictures, tables and the results of runs are kept "
        "[default: reproduction]",
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

    # Make the missing runs, and compute what needs no mesh.
    runs = {e.name: e.runs(scale) for e in chosen}
    workers = workers_of(args)
    rows = _rows(runs, Store(args.out / "runs"), workers, Workers(args.lab_jobs))
    pieces = {(e.name, name): piece for e in chosen for name, piece in e.pieces(scale).items()}
    computed = compute(pieces, workers)

    # Judge, and write pictures, tables and pages.
    reports = [_report(e, runs[e.name], rows, computed, scale, args.out) for e in chosen]
    command = shlex.join(["python", "-m", "ncmesh_papers", *sys.argv[1:]])
    commit = results.source_commit()
    records = {r.experiment.name: _record(r, scale, command, commit) for r in reports}
    _write_pages(records, args.out)
    changes = _changes(records, args.check, with_lab=scale.lab is not None)
    _show(reports, changes, scale, args)
    if changes:
        message = f"verdicts that are not those recorded in {args.check}: {len(changes)}"
        raise FailureError(Kind.OTHER, message)


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
        if name == "cheap":
            found = {n: EXPERIMENTS[n] for n in CHEAP}
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
    runs: Mapping[str, Mapping[Case, Run]], store: Store, workers: Workers, labs: Workers
) -> dict[str, dict[str, Any]]:
    """Make the runs that are missing and return the rows of all runs by key."""
    every = {run.key: run for cases in runs.values() for run in cases.values()}
    simulated = {key: run for key, run in every.items() if not isinstance(run, LabRun)}
    perform(Campaign("reproduce", simulated), store, workers)
    if len(simulated) < len(every):
        # Labs run in real time, on this machine, and not beside simulations.
        real = {key: run for key, run in every.items() if key not in simulated}
        perform(Campaign("lab", real), store, labs)
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
    """Judge an experiment, and write its picture and its numbers."""
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
    runs_took_s = sum(row["took_s"] for row in own.values())
    took_s = runs_took_s + sum(made.took_s for made in pieces.values())
    return Report(experiment, findings, len(own) + len(pieces), took_s)


def _record(report: Report, scale: Scale, command: str, commit: str | None) -> Record:
    return Record(
        version=__version__,
        commit=commit,
        committed_as=None,
        command=command,
        scale=scale.name,
        size=dict(report.experiment.size(scale)),
        runs=report.runs,
        took_s=round(report.took_s, 1),
        claims=[claim.record() for claim in report.findings.claims],
    )


def _by_paper(records: Mapping[str, Record]) -> dict[str, dict[str, Record]]:
    papers: dict[str, dict[str, Record]] = {}
    for name, record in records.items():
        papers.setdefault(name.partition("-")[0], {})[name] = record
    return papers


def _write_pages(records: Mapping[str, Record], out: Path) -> None:
    """Write results and page of each paper. Results of its other experiments stay."""
    for paper, new in _by_paper(records).items():
        merged = results.merge(results.read(out, paper), new, EXPERIMENTS)
        try:
            results.write(out, paper, merged)
            beside.write(new, out)
            (out / f"{paper}.md").write_text(page(paper, merged, EXPERIMENTS))
        except OSError as error:
            raise _not_written(out, error) from error


def _not_written(out: Path, error: OSError) -> FailureError:
    return FailureError(Kind.FILE, f"cannot write in {out}: {error.strerror or error}")


def _changes(
    records: Mapping[str, Record], recorded_in: Path | None, *, with_lab: bool
) -> list[str]:
    """Return the verdicts that are not those recorded, one a line; none without `--check`."""
    if recorded_in is None:
        return []
    lines = []
    for paper, found in _by_paper(records).items():
        lines += results.changes(results.read(recorded_in, paper), found, with_lab=with_lab)
    return lines


def _show(
    reports: Sequence[Report], changes: Sequence[str], scale: Scale, args: argparse.Namespace
) -> None:
    if args.json:
        answer = {"scale": scale.name, "experiments": [_as_dict(report) for report in reports]}
        print(json.dumps(answer | ({"changes": changes} if args.check else {}), indent=1))
        return
    for report in reports:
        print(f"{report.experiment.name}: {report.experiment.title}")
        for claim in report.findings.claims:
            print(f"  {claim.verdict:7} {claim.text}: paper {claim.paper}, ours {claim.ours}")
            if claim.spread:
                print(f"          {claim.spread}; agrees within {claim.tolerance}")
            if claim.verdict == "paper":
                print(f"          {claim.proof}")
    print(f"pages, pictures and tables are in {args.out}")
    if args.check:
        print("\n".join(f"changed: {line}" for line in changes) or "every verdict is as recorded")
    if scale.name == "quick":
        print(NO_STATEMENT)


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "name": report.experiment.name,
        "title": report.experiment.title,
        "runs": report.runs,
        "took_s": report.took_s,
        "claims": [claim.to_dict() for claim in report.findings.claims],
    }
