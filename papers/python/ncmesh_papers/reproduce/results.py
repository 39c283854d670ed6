"""
Recorded results of a paper: one JSON file beside its page.

`reproduce` writes `PAPER.results.json`, renders the page from it, and with `--check` compares new
verdicts with it. An experiment's record holds its claims with their verdicts, its scale, and the
version and commit that it was made with. Results of experiments that are not run again stay as they
are, each with its own commit.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ncmesh.failure import FailureError, Kind

# Claims about the lab of real daemons name it; without `--lab` they are not computed.
LAB = re.compile(r"\blab\b")


@dataclass(frozen=True)
class Record:
    """Results of one experiment."""

    version: str
    """Version of ncmesh."""
    commit: str | None
    """Commit of the sources that made it, with `+` if they had uncommitted changes."""
    committed_as: str | None
    """Commit that added the results, where the commit of the sources was not noted."""
    command: str
    scale: str
    """`full` or `quick`."""
    size: Mapping[str, str]
    """Number of runs, their length and their seeds, in words."""
    runs: int
    took_s: float
    """Processor time, in seconds."""
    claims: Sequence[Mapping[str, str]]

    @property
    def made(self) -> str:
        """Version and commit as a phrase."""
        if self.commit is not None:
            return f"made with ncmesh {self.version} at commit {self.commit}"
        if self.committed_as is not None:
            return f"made with ncmesh {self.version}, committed as {self.committed_as}"
        return f"made with ncmesh {self.version} at an unknown commit"

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each claim."""
        return {claim["claim"]: claim["verdict"] for claim in self.claims}


def source_commit() -> str | None:
    """Return the commit of this package's sources; `None` outside a git checkout."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=here, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "--short", "HEAD")
    if commit is None or git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return f"{commit}+" if git("status", "--porcelain", "--untracked-files=no") else commit


def path(directory: Path, paper: str) -> Path:
    """Return the name of a paper's results file."""
    return directory / f"{paper}.results.json"


def read(directory: Path, paper: str) -> dict[str, Record]:
    """Read a paper's records by experiment; an empty dict if there is no file."""
    file = path(directory, paper)
    if not file.exists():
        return {}
    try:
        table = json.loads(file.read_text())
        return {name: Record(**record) for name, record in table["experiments"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FailureError(Kind.FILE, f"{file}: no results of `reproduce`: {error}") from error


def write(directory: Path, paper: str, records: Mapping[str, Record]) -> None:
    """Write a paper's records."""
    table = {"experiments": {name: asdict(record) for name, record in records.items()}}
    path(directory, paper).write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def merge(
    before: Mapping[str, Record], new: Mapping[str, Record], order: Iterable[str]
) -> dict[str, Record]:
    """Replace records by new ones, in the experiments' order; drop those of another scale."""
    scales = {record.scale for record in new.values()}
    kept = {name: record for name, record in before.items() if record.scale in scales}
    merged = {**kept, **new}
    return {name: merged[name] for name in order if name in merged}


def changes(
    recorded: Mapping[str, Record], found: Mapping[str, Record], *, with_lab: bool
) -> list[str]:
    """
    Return a line for each claim of `found` whose verdict is not the recorded one.

    A claim that only one side has is a change too, except claims about the lab without `with_lab`.
    """
    lines = []
    for name, record in found.items():
        if name not in recorded:
            lines.append(f"{name}: no results are recorded")
            continue
        if recorded[name].scale != record.scale:
            message = f"{name}: recorded at scale {recorded[name].scale}, run at {record.scale}"
            raise FailureError(Kind.USAGE, message)
        before, now = recorded[name].verdicts, record.verdicts
        for text in dict.fromkeys([*before, *now]):
            if text not in now and LAB.search(text) and not with_lab:
                continue
            was, is_ = before.get(text, "not recorded"), now.get(text, "not computed")
            if was != is_:
                lines.append(f"{name}: {text}: recorded {was}, now {is_}")
    return lines
