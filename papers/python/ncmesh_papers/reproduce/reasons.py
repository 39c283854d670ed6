"""
Reads why claims differ: `reasons/PAPER.toml`, which people write.

Each entry says what stands behind a difference, why in a sentence or two, and which claims it
explains, as patterns of `EXPERIMENT: CLAIM`. Links in the sentences are relative to the page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from importlib import resources

from ncmesh_papers.reproduce.results import Record


@dataclass(frozen=True)
class Reason:
    """Why some claims differ."""

    behind: str
    """Reason for the difference, in a few words."""
    because: str
    """Why, in a sentence or two of Markdown."""
    claims: tuple[str, ...]
    """Patterns of `EXPERIMENT: CLAIM`, as of a shell."""

    def explains(self, experiment: str, claim: str) -> bool:
        """Return whether this is the reason for a claim."""
        name = f"{experiment}: {claim}"
        return any(re.fullmatch(translate(pattern), name) for pattern in self.claims)


def of(paper: str) -> list[Reason]:
    """Read the reasons for a paper; none for a paper without a file."""
    file = resources.files("ncmesh_papers.reproduce") / "reasons" / f"{paper}.toml"
    if not file.is_file():
        return []
    table = tomllib.loads(file.read_text())
    return [Reason(one["behind"], one["because"], tuple(one["claims"])) for one in table["reason"]]


def differing(records: Mapping[str, Record]) -> list[tuple[str, str]]:
    """Return experiment and text of every claim with the verdict `differs`."""
    return [
        (name, claim["claim"])
        for name, record in records.items()
        for claim in record.claims
        if claim["verdict"] == "differs"
    ]
