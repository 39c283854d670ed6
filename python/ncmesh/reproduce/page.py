"""The page of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncmesh.reproduce.claims import Claim
from ncmesh.reproduce.experiment import Experiment, Findings, Scale


@dataclass(frozen=True)
class Report:
    """An experiment with what it found."""

    experiment: Experiment
    findings: Findings
    runs: int
    """Runs and pieces."""
    took_s: float
    """Processor seconds of them, whenever they were made."""


@dataclass(frozen=True)
class Circumstances:
    """How all of it was made."""

    command: str
    version: str
    scale: Scale
    runs: int
    """Runs and pieces."""
    took_s: float
    """Processor seconds of them, each counted once."""


def page(title: str, reports: Sequence[Report], made: Circumstances) -> str:
    """In Markdown; plots lie beside it."""
    counts = [claim.agrees for report in reports for claim in report.findings.claims]
    lines = [
        f"# Reproduction: {title}",
        "",
        "Generated; do not edit. What differs and why: [README.md](README.md).",
        "",
        "| | |",
        "| --- | --- |",
        f"| command | `{made.command}` |",
        f"| ncmesh | {made.version} |",
        *_size(reports, made.scale),
        f"| runs | {made.runs}, {made.took_s / 60:.0f} minutes of processor time |",
        f"| claims | {len(counts)}: {sum(counts)} agree, {len(counts) - sum(counts)} differ |",
        "",
    ]
    for report in reports:
        lines += _section(report)
    return "\n".join(lines)


def _size(reports: Sequence[Report], scale: Scale) -> list[str]:
    """How large the experiments are; what is the same of several is said once."""
    sizes = [report.experiment.size(scale) for report in reports]
    names = dict.fromkeys(name for size in sizes for name in size)
    said = {name: dict.fromkeys(size[name] for size in sizes if name in size) for name in names}
    return [f"| {name} | {'; '.join(texts)} |" for name, texts in said.items()]


def _section(report: Report) -> list[str]:
    experiment = report.experiment
    return [
        f"## {experiment.name}: {experiment.title}",
        "",
        experiment.reading,
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
        *claims_table(report.findings.claims),
        "",
        f"{report.runs} runs, {report.took_s:.0f} s of processor time; numbers in "
        f"[{experiment.name}.csv]({experiment.name}.csv).",
        "",
    ]


def claims_table(claims: Sequence[Claim]) -> list[str]:
    """A row per claim."""
    head = ["| claim | paper | ours | spread | agrees from | |", "| --- | --- | --- | --- | --- | --- |"]
    rows = [f"| {c.text} | {c.paper} | {c.ours} | {c.spread} | {c.tolerance} | {c.verdict} |" for c in claims]
    return head + rows
