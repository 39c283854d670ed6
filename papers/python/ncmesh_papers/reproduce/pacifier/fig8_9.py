"""Figures 8 and 9: the testbed, simulated and in the lab of real daemons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.claims import GAIN, SHARE, Claim, over_topologies, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.pacifier.comparison import RATIO, SOME_OF_TEN, ratios
from ncmesh_papers.reproduce.pacifier.fig7 import percentile_gain
from ncmesh_papers.reproduce.pacifier.setting import MEDIUM, VARIANTS, drawn
from ncmesh_papers.reproduce.pacifier.tables import per_topology, with_extremes_and_distributions

NODES, RECEIVERS = 22, 4
BOTH = ("MORE", "Pacifier")


def _testbed(group: int, link_power: str, scale: Scale) -> dict[str, Any]:
    """Return the building with a source and receivers drawn from the group's number."""
    source, *receivers = drawn(group, NODES, 1 + RECEIVERS)
    packet = {"symbol_size": 1460}
    with resources.as_file(resources.files("ncmesh_papers.reproduce") / "building.csv") as losses:
        matrix = str(Path(losses).resolve())
    return {
        "name": "pacifier-testbed",
        "medium": {**MEDIUM, "link_power": link_power},
        "topology": {"matrix": matrix},
        "traffic": {
            "from": source,
            "to": receivers,
            # 2.3 MB where the simulated networks carry 12 MB.
            "size": 23 * scale.file_bytes // 120,
        },
        "protocol": {"pacifier": packet, "more": packet},
    }


def _runs(link_power: str, scale: Scale) -> Mapping[Case, Run]:
    made: dict[Case, Run] = {}
    for k in scale.indices:
        testbed = _testbed(k, link_power, scale)
        for name in BOTH:
            chosen = VARIANTS[name]
            measured = {"measure": {"seconds": 600.0, "bytes": 1460, "period_s": 1.0}}
            simulated = Scenario({**testbed, **measured}).varied(chosen.settings)
            made[Case(name, k)] = Run(simulated, chosen.scheme, k, scale.limit_s, chosen.settings)
            if scale.lab:
                real = Scenario(testbed).varied(chosen.settings)
                run = LabRun(
                    real, chosen.scheme, k, scale.limit_s, chosen.settings, program=scale.lab
                )
                made[Case(f"{name} (lab)", k)] = run
    return made


def _claims(rows: Rows, more: str, pacifier: str) -> list[Claim]:
    named = {
        "average": (rows.average, (1.83, 2.44)),
        "best receiver's": (rows.best, (3.44, 3.59)),
        "worst receiver's": (rows.worst, (1.53, 1.83)),
    }
    claims = []
    for name, (values, expected) in named.items():
        gains = ratios(values(pacifier), values(more))
        claims.append(
            within(
                f"{name} throughput, {pacifier} over {more}",
                GAIN,
                expected,
                fmean(values(pacifier)) / fmean(values(more)),
                spread=over_topologies(gains),
                relative=RATIO,
            )
        )
    gains = ratios(rows.average(pacifier), rows.average(more))
    higher = sum(gain > 1 for gain in gains) / len(gains)
    text = f"groups in which {pacifier} is faster than {more}"
    claims.append(within(text, SHARE, 0.9, higher, absolute=SOME_OF_TEN))
    for percent, range_ in ((50, (2.58, 3.86)), (90, (1.85, 2.28)), (10, (2.28, 3.94))):
        claims.append(percentile_gain(rows, pacifier, more, percent, range_))
    return claims


def _findings(rows: Rows, scale: Scale) -> Findings:
    worlds = ["", " (lab)"] if scale.lab else [""]
    claims = []
    for world in worlds:
        claims += _claims(rows, f"MORE{world}", f"Pacifier{world}")
    variants = [f"{name}{world}" for world in worlds for name in BOTH]
    figure = with_extremes_and_distributions(rows, variants)
    return Findings(claims, per_topology(rows, variants), figure)


_TITLE = "The testbed: MORE and Pacifier in a building of 22 nodes"
_READING = (
    "The testbed's losses are not published. The building is synthetic, with the published "
    "statistics (1 to 6 hops, losses of 0 to 88 %, 29 % on average). Each topology is a draw of "
    "source and receivers; the paper's ranges are those of its two days. Gains are those of "
    "averages over groups."
)

EXPERIMENT = Experiment(
    name="pacifier-fig8-9",
    title=_TITLE,
    reading=(
        f"{_READING} The stronger of two overlapping frames may be received, as in the simulated "
        "networks; powers are those that cause the losses under Rayleigh fading."
    ),
    runs=partial(_runs, "rayleigh"),
    findings=_findings,
)
EQUAL_POWERS = Experiment(
    name="pacifier-fig8-9-equal",
    title=f"{_TITLE}; overlapping frames are lost",
    reading=f"{_READING} All frames are equally strong. Simulated only.",
    runs=lambda scale: _runs("equal", replace(scale, lab=None)),
    findings=lambda rows, scale: _findings(rows, replace(scale, lab=None)),
)
