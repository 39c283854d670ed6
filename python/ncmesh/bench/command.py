"""`python -m ncmesh bench mesh`."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ncmesh.bench import compare, meshes, page, schemes, summary, table
from ncmesh.bench.bounds import Bounds
from ncmesh.bench.file import FILE
from ncmesh.bench.instances import Instance
from ncmesh.bench.mixed import MIXED
from ncmesh.bench.service import Row, Service
from ncmesh.bench.stream import STREAM
from ncmesh.bench.tunnel import TUNNEL
from ncmesh.campaign.command import add_worker_arguments, workers_of
from ncmesh.campaign.program import simulator_of
from ncmesh.campaign.schedule import execute
from ncmesh.campaign.store import Store
from ncmesh.failure import FailureError, Kind

SERVICES = {service.name: service for service in (FILE, TUNNEL, STREAM, MIXED)}
INSTANCES = 2
# Seeds of each instance.
DRAWS = 5
# `--quick`: about three minutes on two cores.
QUICK_MESHES = ("building", "freifunk", "line", "mesh-1", "hidden-2-0", "star-5", "dense-60-1")
QUICK_CASES = ("0.5 MB to 4", "UDP", "TCP", "two layers to 4")
QUICK_INSTANCES = 2
QUICK_DRAWS = 1
QUICK_LINK_POWERS = ("rayleigh",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    mesh = commands.add_parser("mesh", help="every scheme of a service on every mesh")
    mesh.set_defaults(perform=perform)
    what = mesh.add_argument_group("what to run")
    what.add_argument("--service", nargs="+", choices=list(SERVICES), help="[default: all]")
    what.add_argument(
        "--meshes", nargs="+", metavar="MESH", help="meshes or families of them [default: all]"
    )
    what.add_argument("--schemes", nargs="+", metavar="SCHEME", help="[default: all]")
    what.add_argument(
        "--program",
        type=simulator_of,
        metavar="PROGRAM",
        help="schemes of your own: a program (examples/own-scheme), or FILE.py:FUNCTION, a "
        "function that plans as for ncmesh.run; they are run, too",
    )
    cases = [case for service in SERVICES.values() for case in service.receivers]
    what.add_argument(
        "--cases", nargs="+", metavar="CASE", help=f"[default: all of {_in_help(_quoted(cases))}]"
    )
    what.add_argument(
        "--instances",
        type=_instances,
        metavar="N",
        help=f"groups of each mesh and case [default: {INSTANCES}]",
    )
    what.add_argument(
        "--draws",
        type=_instances,
        metavar="N",
        help=f"seeds of each instance [default: {DRAWS}]",
    )
    what.add_argument(
        "--link-power",
        nargs="+",
        choices=meshes.LINK_POWERS,
        help="what becomes of overlapping frames where losses are given [default: both]",
    )
    what.add_argument(
        "--quick",
        action="store_true",
        help="few meshes, one size of file, few instances, one seed: three minutes on two cores",
    )
    mesh.add_argument(
        "--floor",
        type=_share,
        metavar="SHARE",
        help="fail if the default scheme is worse than this share of another on any instance, in "
        f"the mean of {DRAWS} seeds",
    )
    mesh.add_argument(
        "--figures", type=Path, metavar="PARQUET", help="write the page of an earlier run anew"
    )
    mesh.add_argument(
        "--output",
        type=Path,
        default=Path("target/scoreboard"),
        metavar="DIR",
        help="where table, page and pictures are written, and runs kept [default: %(default)s]",
    )
    mesh.add_argument(
        "--scenarios",
        type=Path,
        default=Path("scenarios"),
        metavar="DIR",
        help="the folder `scenarios` of ncmesh [default: %(default)s]",
    )
    add_worker_arguments(mesh)


def perform(args: argparse.Namespace) -> None:
    """Make the runs that are missing, write the table and its page, and check the floor."""
    rows: Sequence[Row]
    if args.figures is not None:
        rows, made = table.read(args.figures)
        again = None
    else:
        rows, made, instances = _measure(args)
        again = partial(_again, args, instances)
        table.write(args.output / "scoreboard.parquet", rows, made)
    page.write(rows, made, args.output)
    print(f"{len(rows)} runs: {args.output / 'scoreboard.md'}")
    if args.floor is not None:
        check_floor(rows, made.defaults, args.floor, again)


def check_floor(
    rows: Sequence[Row],
    defaults: Mapping[str, str],
    floor: float,
    again: Callable[[compare.Cell], compare.Cell] | None = None,
) -> None:
    """
    Raise a failure if a default scheme is worse than `floor` of another on any instance.

    `again` runs an instance with all its seeds. Where it is given, one below the floor counts if
    it is below then, too.
    """
    found = []
    compared = 0
    for service, scheme in defaults.items():
        of = compare.cells(rows, service)
        compared += sum(scheme in cell.rows and len(cell.rows) > 1 for cell in of)
        for cell in of:
            ratio = cell.against_best(scheme) if scheme in cell.rows else None
            if ratio is None or ratio.mean >= floor:
                continue
            ratio = ratio if again is None else again(cell).against_best(scheme) or ratio
            print(
                f"below the floor: {scheme} {ratio.mean:.2f}x "
                f"({ratio.low:.2f} to {ratio.high:.2f}), {cell.title}"
            )
            if ratio.mean < floor:
                found.append(cell)
    if not compared:
        raise FailureError(Kind.USAGE, "--floor: no default scheme was run beside another")
    if found:
        message = (
            f"on {len(found)} of {compared} instances the default scheme is worse than {floor:g} "
            "of the best other one"
        )
        raise FailureError(Kind.OTHER, message)


def _again(
    args: argparse.Namespace, instances: Sequence[tuple[Service, Instance]], cell: compare.Cell
) -> compare.Cell:
    """Run an instance with all its seeds, by the schemes that it was run with."""
    first = next(
        (service, instance)
        for service, instance in instances
        if (service.name, instance.title) == (cell.service, cell.title)
    )
    rows = _run(_drawn([first], DRAWS), {cell.service: list(cell.rows)}, args)
    return compare.cells(rows, cell.service)[0]


def _drawn(
    instances: Sequence[tuple[Service, Instance]], draws: int
) -> list[tuple[Service, Instance]]:
    """Return instances with each of their seeds."""
    return [
        (service, replace(instance, draw=draw))
        for service, instance in instances
        for draw in range(draws)
    ]


def _measure(
    args: argparse.Namespace,
) -> tuple[list[Row], table.Made, list[tuple[Service, Instance]]]:
    """
    Make the runs of all instances, in the order of services, meshes, cases, numbers and schemes.

    Those of cases that depend on others come last.
    """
    services = [SERVICES[name] for name in args.service or SERVICES]
    names = {
        service.name: schemes.chosen(service.name, args.schemes, args.program)
        for service in services
    }
    services = [service for service in services if names[service.name]]
    if not services:
        raise FailureError(Kind.USAGE, "none of the schemes carries any of the services")
    cases = _cases(args, services)

    # Meshes whose data may not be shipped are left out if it is not there.
    if not args.scenarios.is_dir():
        message = f"{args.scenarios} is no folder: --scenarios names that of ncmesh's scenarios"
        raise FailureError(Kind.USAGE, message)
    sources = meshes.chosen(args.meshes or (QUICK_MESHES if args.quick else None))
    missing = [source for source in sources if source.missing(args.scenarios)]
    left_out = tuple(
        f"`{source.name}` is left out: `{source.needs}` is not in the folder of scenarios; "
        "`meshes/README.md` says how to make it"
        for source in missing
    )
    for reason in left_out:
        print(reason.replace("`", ""), file=sys.stderr)
    sources = [source for source in sources if source not in missing]
    if not sources:
        raise FailureError(Kind.USAGE, "the data of no mesh is there")
    powers = args.link_power or (QUICK_LINK_POWERS if args.quick else meshes.LINK_POWERS)
    made = meshes.meshes(sources, args.scenarios, powers)

    count = args.instances or (QUICK_INSTANCES if args.quick else INSTANCES)
    numbers = range(1, count + 1)
    instances = [
        (service, instance)
        for service in services
        for mesh in made
        for instance in service.instances(
            mesh, [case for case in service.receivers if case in cases], numbers
        )
    ]
    draws = args.draws or (QUICK_DRAWS if args.quick else DRAWS)
    plain = [of for of in instances if of[1].case not in of[0].loads]
    rows = _run(_drawn(plain, draws), names, args)
    # Some cases offer a share of what was carried at best.
    loaded = [_loaded(*of, rows) for of in instances if of[1].case in of[0].loads]
    rows += _run(_drawn(loaded, draws), names, args)
    defaults = {service.name: schemes.default(service.name) for service in services}
    return rows, table.Made(_command(args), left_out, defaults), plain + loaded


def _loaded(service: Service, of: Instance, rows: Sequence[Row]) -> tuple[Service, Instance]:
    """Return an instance that offers its share of the best goodput of the case it refers to."""
    load = service.loads[of.case]
    carried = replace(of, case=load.of).parameters
    by_scheme: dict[str, list[float]] = {}
    for row in rows:
        if row["service"] == service.name and carried.items() <= row.items():
            by_scheme.setdefault(row["scheme"], []).append(row["goodput_bps"])
    best = max(statistics.fmean(goodputs) for goodputs in by_scheme.values())
    return service, replace(of, rate_bps=max(1, round(load.share * best)))


def _cases(args: argparse.Namespace, services: Sequence[Service]) -> Sequence[str]:
    """Return the cases to run; a failure if one is of none of the services."""
    known = [case for service in services for case in service.receivers]
    if args.cases is None:
        return QUICK_CASES if args.quick else known
    for case in args.cases:
        if case not in known:
            message = f'no case is called "{case}"; there are: {_quoted(known)}'
            raise FailureError(Kind.USAGE, message)
    # The runs that others depend on are made, too.
    loads = {case: load for service in services for case, load in service.loads.items()}
    return [*args.cases, *(loads[case].of for case in args.cases if case in loads)]


def _run(
    instances: Sequence[tuple[Service, Instance]],
    names: Mapping[str, Sequence[str]],
    args: argparse.Namespace,
) -> list[Row]:
    """Make the runs, and print each instance as soon as all its schemes are there."""
    runs = [
        [service.run(of, scheme, args.program) for scheme in names[service.name]]
        for service, of in instances
    ]
    places = {run.key: place for place, of in enumerate(runs) for run in of}
    store, bounds = Store(args.output / "runs"), Bounds(args.output / "bounds.json")
    done = {row["run"]: row for row in store.table(places.keys()).to_pylist()}
    commit = table.commit()
    finished: list[list[Row]] = [[] for _ in instances]

    def finish(place: int) -> None:
        """Make the rows of an instance if all its runs are there."""
        found = [done[run.key] for run in runs[place] if run.key in done]
        if len(found) == len(runs[place]):
            service, of = instances[place]
            finished[place] = [table.row(service, of, row, bounds, commit) for row in found]
            tqdm.write(summary.block(of, finished[place], service.line))

    def add(row: Mapping[str, Any]) -> None:
        done[row["run"]] = {"error": None, **row}
        finish(places[row["run"]])

    for place in range(len(runs)):
        finish(place)
    by_key = {run.key: run for of in runs for run in of}
    with tqdm(
        desc="scoreboard", total=len(by_key), initial=len(done), unit="run", disable=None
    ) as bar:
        execute(by_key, store, workers_of(args), bar.update, add)
    return [row for of in finished for row in of]


def _command(args: argparse.Namespace) -> str:
    """Return the command line without where results are and runs are made."""
    words = ["python", "-m", "ncmesh", "bench", "mesh"]
    if args.quick:
        words.append("--quick")
    for option in ("service", "meshes", "schemes", "cases", "link_power"):
        values = getattr(args, option)
        if values:
            words += [f"--{option.replace('_', '-')}", *values]
    for option in ("instances", "draws", "program"):
        if getattr(args, option):
            words += [f"--{option}", str(getattr(args, option))]
    return shlex.join(words)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _in_help(text: str) -> str:
    """Return a text for argparse, which takes a percent sign for the start of a name."""
    return text.replace("%", "%%")


def _instances(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text}: allowed is 1 to 10000")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 10:
        raise argparse.ArgumentTypeError(f"{text}: allowed is above 0 and at most 10")
    return share
