"""`python -m ncmesh_papers`: runs the papers' figures anew."""

from __future__ import annotations

import argparse
import sys

import ncmesh_papers
from ncmesh.failure import FailureError, Kind
from ncmesh_papers.reproduce import command


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m ncmesh_papers", description=__doc__)
    parser.add_argument("--version", action="version", version=ncmesh_papers.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    summary = "run a paper's figures anew and compare them with its claims"
    command.add_arguments(commands.add_parser("reproduce", help=summary))
    args = parser.parse_args(arguments)
    try:
        args.perform(args)
    except FailureError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return failure.kind
    except KeyboardInterrupt:
        print("error: interrupted; finished runs are kept", file=sys.stderr)
        return Kind.INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
