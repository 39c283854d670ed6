"""Figure 6, c and d: processor time of the nodes as more is offered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import fmean

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import SHARE, Claim, Spread, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.multirate.fig6_mesh import MBIT, SCHEME
from ncmesh_papers.reproduce.multirate.mesh import rates, two_streams
from ncmesh_papers.reproduce.plots import panels
from ncmesh_papers.reproduce.profiled import REST, Part, ProfiledRun, can_profile

OFFERED_BPS = (14_000_000, 50_000_000, 100_000_000, 200_000_000)
# The paper's bound, as a share of one core.
SMALL = 0.03
# Tolerance of what arrives as more is offered.
SAME = 0.1
# The paper's share of queues, input and output, and messages; and our tolerance.
PRINTED, NEAR = 0.15, 0.05
# Longest duration: runs take real time, or simulate millions of packets.
LONGEST_S = 20.0
LAB_RUNS = 3

QUEUES, IO, MESSAGES, SEALING = "queues", "input and output", "messages", "sealing"
PARTS = (
    Part(SEALING, re.compile(r"ncmesh_wire::seal|chacha20|poly1305")),
    Part(
        MESSAGES,
        re.compile(
            r"multirate.*::((hear|handle|fill)_(report|announcement)|announce_again)"
            r"|ncmesh_(stack|engine)::(link|route|toolkit::flood)::"
        ),
    ),
    Part(QUEUES, re.compile(r"ncmesh_engine_multirate::")),
    Part(
        IO,
        re.compile(
            r"ncmesh_node::(etherd|radio|stream)::|tokio::(net|runtime::io)::|\bmio::"
            r"|std::sys::net|epoll_wait"
        ),
    ),
)
# The paper's three, in its order.
ITS_PARTS = (QUEUES, IO, MESSAGES)


def _seconds(scale: Scale) -> float:
    return min(scale.flow_s, LONGEST_S)


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made: dict[Case, Run] = {}
    for offered in OFFERED_BPS:
        scenario = two_streams("a", _seconds(scale), offered)
        made[Case(f"{offered}", 1)] = Run(scenario, SCHEME, 1)
        if scale.lab is None:
            continue
        for k in scale.indices[:LAB_RUNS]:
            made[Case(f"{offered} (lab)", k)] = LabRun(scenario, SCHEME, k, program=scale.lab)
        if can_profile():
            profiled = ProfiledRun(scenario, SCHEME, 1, program=scale.lab, parts=PARTS, system=IO)
            made[Case(f"{offered} (profile)", 1)] = profiled
    return made


def _totals(rows: Rows, world: str, offered: int) -> list[float]:
    """Return the bit/s that arrive at all receivers, for each run."""
    found = (rows.rows.get(Case(f"{offered}{world}", k)) for k in rows.topologies)
    return [sum(rates(row).values()) for row in found if row is not None]


def _cpu(rows: Rows, offered: int) -> dict[str, list[float]]:
    """Return each node's shares of a core in each run; an empty dict without a lab."""
    found = (rows.rows.get(Case(f"{offered} (lab)", k)) for k in rows.topologies)
    runs = [dict(row["cpu"] or {}) for row in found if row is not None]
    return {node: [run[node] for run in runs] for node in runs[0]} if runs else {}


def _profile(rows: Rows, offered: int) -> dict[str, float]:
    """Return the shares of the daemons' processor time by part; an empty dict without `perf`."""
    row = rows.rows.get(Case(f"{offered} (profile)", 1))
    return dict(row["profile"] or {}) if row is not None else {}


def _worlds(scale: Scale) -> list[str]:
    return ["", " (lab)"] if scale.lab else [""]


def _claims(rows: Rows, scale: Scale) -> list[Claim]:
    claims = []
    for world in _worlds(scale):
        # Bob gets everything of 14 Mbit/s; from 50 on A_max limits Bob's rate.
        text = f"what arrives in all, of streams of 200 Mbit/s beside those of 50{world}"
        few, many = (_totals(rows, world, OFFERED_BPS[at]) for at in (1, -1))
        spread = over_topologies(many)
        claims.append(within(text, MBIT, fmean(few), fmean(many), spread=spread, relative=SAME))
    if scale.lab:
        claims += _claims_of_nodes(rows)
    return [*claims, *_claims_of_parts(rows)]


def _claims_of_nodes(rows: Rows) -> list[Claim]:
    cpu = {offered: _cpu(rows, offered) for offered in OFFERED_BPS}
    means = {
        offered: {node: fmean(of) for node, of in nodes.items()} for offered, nodes in cpu.items()
    }
    busiest, offered, node = max(
        (share, offered, node) for offered, nodes in means.items() for node, share in nodes.items()
    )
    least, most = min(cpu[offered][node]), max(cpu[offered][node])
    said = (
        f"{node} {100 * busiest:.1f} % of a core at {offered / 1e6:g} Mbit/s "
        f"(runs: {100 * least:.1f} to {100 * most:.1f} %)"
    )
    small = holds("every node's processor is below 3 % (lab)", said, busiest < SMALL)
    grown = {
        node: means[OFFERED_BPS[-1]][node] - share for node, share in means[OFFERED_BPS[0]].items()
    }
    text = "processors do at most 2.5 % more at 200 Mbit/s than at 14 (lab)"
    most_grown = max(grown, key=lambda node: grown[node])
    said = f"{most_grown} {100 * grown[most_grown]:.1f} % more of a core"
    return [small, holds(text, said, grown[most_grown] <= SMALL)]


def _claims_of_parts(rows: Rows) -> list[Claim]:
    profiles = [found for offered in OFFERED_BPS if (found := _profile(rows, offered))]
    if not profiles:
        return []
    its = [sum(found[part] for part in ITS_PARTS) for found in profiles]
    text = "queues, input and output, and messages, of all processor time (lab)"
    together = within(
        text,
        SHARE,
        PRINTED,
        fmean(its),
        spread=Spread(min(its), fmean(its), max(its), "least, mean and most over rates"),
        absolute=NEAR,
    )
    own = [found[QUEUES] + found[MESSAGES] for found in profiles]
    text = "queues and messages without input and output take no more than that (lab)"
    said = f"{SHARE.write(min(own))} to {SHARE.write(max(own))}"
    return [together, holds(text, said, max(own) <= PRINTED + NEAR)]


def _figure(rows: Rows, scale: Scale) -> Figure:
    cpu = {offered: _cpu(rows, offered) for offered in OFFERED_BPS if scale.lab}
    profiles = {offered: found for offered in OFFERED_BPS if (found := _profile(rows, offered))}
    figure, axes = panels(1 + bool(cpu) + bool(profiles))
    offered = [bps / 1e6 for bps in OFFERED_BPS]
    for world in _worlds(scale):
        totals = [fmean(_totals(rows, world, bps)) / 1e6 for bps in OFFERED_BPS]
        axes[0].plot(offered, totals, marker="o", label=f"all{world}")
    axes[0].set_ylabel("arrives in all, Mbit/s")
    for node in cpu.get(OFFERED_BPS[0], {}):
        axes[1].plot(
            offered, [100 * fmean(cpu[bps][node]) for bps in OFFERED_BPS], marker="o", label=node
        )
        axes[1].set_ylabel("processor, % of a core (lab)")
    below = [0.0] * len(profiles)
    for part in next(iter(profiles.values()), {}):
        shares = [100 * found[part] for found in profiles.values()]
        axes[-1].bar([f"{bps / 1e6:g}" for bps in profiles], shares, bottom=below, label=part)
        axes[-1].set_ylabel("of all daemons' processor time, % (lab)")
        below = [low + share for low, share in zip(below, shares, strict=True)]
    for panel in axes:
        panel.set_xlabel("offered by each stream, Mbit/s")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _findings(rows: Rows, scale: Scale) -> Findings:
    table = [
        {
            "offered_bps": offered,
            **{
                f"arrives_bps{world}": fmean(_totals(rows, world, offered))
                for world in _worlds(scale)
            },
            **{f"cpu {node}": fmean(shares) for node, shares in _cpu(rows, offered).items()},
            **{f"share of {part}": share for part, share in _profile(rows, offered).items()},
        }
        for offered in OFFERED_BPS
    ]
    return Findings(_claims(rows, scale), table, _figure(rows, scale))


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiment, for the page."""
    lab = f", in the lab {LAB_RUNS}" if scale.lab else ""
    return {
        "scale": f"{scale.name}: one run of {2 * _seconds(scale):g} s for each rate{lab}",
        "seeds": "1",
    }


EXPERIMENT = Experiment(
    name="mmu-fig6-cpu",
    title="Processors as more is offered",
    reading=(
        "Streams of 14 to 200 Mbit/s through the mesh of mmu-fig6. Processor time needs the lab: "
        "user and system time of each daemon over the whole run, as shares of one core. `perf` "
        "samples its parts in one more run of each rate, for all daemons together: *queues* is "
        "the engine; *messages* are reports, announcements, hellos and link states without their "
        "sockets; *input and output* is the kernel's work for a daemon and the code around its "
        f"sockets; *sealing* is encryption, which the paper's nodes do not have; *{REST}* is the "
        "loop, its timers and the other engines. The paper counts user-level time only, and its "
        "rest is Click's."
    ),
    runs=_runs,
    findings=_findings,
    size=size,
)
