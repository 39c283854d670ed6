"""`python -m ncmesh`: campaigns of many runs, and the scoreboard."""

from __future__ import annotations

import argparse
import sys

import ncmesh
from ncmesh.bench import command as bench
from ncmesh.campaign import command as campaign
from ncmesh.failure import FailureError, Kind


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m ncmesh", description=__doc__)
    parser.add_argument("--version", action="version", version=ncmesh.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    campaign.add_arguments(
        commands.add_parser("campaign", help="many runs, of which only what is missing is run")
    )
    bench.add_arguments(
        commands.add_parser("bench", help="the scoreboard: every scheme on every measured mesh")
    )
    args = parser.parse_args(arguments)
    try:
        args.perform(args)
    except FailureError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return failure.kind
    except KeyboardInterrupt:
        print("error: interrupted; what was finished is kept", file=sys.stderr)
        return Kind.INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
