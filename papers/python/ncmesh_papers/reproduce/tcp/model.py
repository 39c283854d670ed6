"""Section III: the factors that the model gives, and how far its approximations hold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ncmesh_papers import tcp_model
from ncmesh_papers.reproduce.claims import NUMBER, Claim, Proof, holds, refuted, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels
from ncmesh_papers.reproduce.tcp.setting import PACKET_BYTES

# The testbed's line; the paper names no round-trip time.
HOPS, RTT_S = 6, 0.03
PACKET_BITS = 8 * PACKET_BYTES
RTTS_S = np.logspace(-2.5, 0, 60)
ERRORS = (0.0, 0.001, 0.01, 0.05)
# Tolerances of a formula and of a fixed point.
FORMULA, FIXED_POINT = 1e-6, 0.05


def factors() -> dict[str, float]:
    """Return the gains on the testbed's line by each reading of the model."""
    given = (HOPS, RTT_S, PACKET_BITS)
    return {
        "tcp": float(tcp_model.gain(*given)),
        "tcp, fixed point": float(tcp_model.gain(*given, method="exact")),
        "tcp, per packet": float(tcp_model.gain(*given, loss="packet")),
        "tcp, 1 % channel losses": float(tcp_model.gain(*given, p_e=0.01, method="exact")),
        "udp": float(tcp_model.udp_gain(0.1)),
    }


def curves() -> dict[str, list[float]]:
    """Return gains by round-trip time, from the fixed point with each of the channel losses."""
    return {
        f"{p_e:g}": tcp_model.gain(HOPS, RTTS_S, PACKET_BITS, p_e=p_e, method="exact").tolist()
        for p_e in ERRORS
    }


def _pieces(_: Scale) -> Mapping[Hashable, Piece]:
    return {"factors": Piece(factors), "curves": Piece(curves)}


def _findings(rows: Rows, _: Scale) -> Findings:
    found, by_rtt = rows.computed["factors"], rows.computed["curves"]
    root = 2**0.5
    claims = [
        within("gain of TCP, eq. (14) over (15)", NUMBER, root, found["tcp"], relative=FORMULA),
        within("gain of UDP", NUMBER, 2.0, found["udp"], relative=FORMULA),
        within(
            f"gain of TCP, fixed point, {HOPS} hops, {1e3 * RTT_S:g} ms",
            NUMBER,
            root,
            found["tcp, fixed point"],
            relative=FIXED_POINT,
        ),
        _survives(
            "sqrt(2) where packets, not slots, are counted",
            found["tcp, per packet"],
            "eq. (5) is the share of slots with a collision; a packet meets one with a probability "
            "linear in the load, and then eqs. (14) and (15) give",
        ),
        _survives(
            "sqrt(2) with channel losses of 1 % a hop",
            found["tcp, 1 % channel losses"],
            "with losses of 1 % a hop beside the collisions the fixed point of the same equations "
            "gives",
        ),
    ]
    table: list[dict[str, Any]] = [
        {"rtt_s": float(rtt), **{f"gain, p_e = {p_e}": values[i] for p_e, values in by_rtt.items()}}
        for i, rtt in enumerate(RTTS_S)
    ]
    figure, (axes,) = panels(1)
    for p_e, values in by_rtt.items():
        axes.semilogx(1e3 * RTTS_S, values, label=f"channel losses {float(p_e):.1%}")
    axes.axhline(root, color="black", linestyle="--", label="sqrt(2)")
    axes.set_xlabel("round-trip time, ms")
    axes.set_ylabel("throughput with coding over without")
    axes.legend(fontsize="small")
    return Findings(claims, table, figure)


def _survives(text: str, gain: float, why: str) -> Claim:
    """Judge whether the paper's factor survives a correction of its model."""
    truth = _near(gain, 2**0.5)
    claim = holds(text, NUMBER.write(gain), truth)
    return refuted(claim, Proof(f"{why} {NUMBER.write(gain)}.", not truth))


def _near(value: float, expected: float) -> bool:
    return abs(value / expected - 1) <= FIXED_POINT


EXPERIMENT = Experiment(
    name="tcp-model",
    title="the model: sqrt(2) for TCP, 2 for UDP",
    reading=(
        "Computed by `ncmesh_papers.tcp_model`. Eq. (5) is the share of slots in which packets "
        "collide. A packet collides with a probability of about 2 lambda among 3 stations, and "
        "then the gain is 2^(1/3). The paper's factor does not survive a correction of the "
        "model."
    ),
    findings=_findings,
    pieces=_pieces,
    size=lambda _: {"model": f"{HOPS} hops, {PACKET_BYTES} bytes at 6 Mbit/s"},
)
