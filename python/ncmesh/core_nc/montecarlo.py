"""The schemes of the analysis in trials, packet by packet, with ranks of real coefficients."""

from __future__ import annotations

from typing import Literal

from ncmesh import _ncmesh
from ncmesh.core_nc.arguments import Numbers

# The seeds that there are.
SEEDS = 2**63


def simulate(
    scheme: str,
    e_x: float,
    e_oh: float,
    *,
    generation: int = 64,
    field: str = "gf256",
    until: Literal["both", "one"] = "both",
    trials: int = 1000,
    seed: int = 1,
) -> Numbers:
    """
    Transmissions of all nodes per packet of both flows, of each trial.

    A trial brings a generation (1 to 256 packets) of each flow through the cross, coded over `field` (`gf2`,
    `gf16`, `gf256`) where `scheme`, one of `SCHEMES`, codes. It ends when `both` destinations have their
    flow, as the paper's simulations do, or when the `one` D1 has, the other flow going on until then: the
    view of the analysis. It is infinite where that has not happened after a million transmissions. Each trial
    has random streams of its own, named by the seed (0 to 2^63 - 1) and its number; losses are the same for
    every field. Runs without the GIL; Ctrl-C ends it.

    Raises `ValueError` for arguments that are none of these.
    """
    for name, value, least, most in (
        ("generation", generation, 1, 256),
        ("trials", trials, 1, 2**32),
        ("seed", seed, 0, SEEDS - 1),
    ):
        if not least <= value <= most:
            raise ValueError(f"{name} = {value}: allowed is {least} to {most}")
    counts = _ncmesh.cross_transmissions(scheme, e_x, e_oh, generation, field, until, trials, seed)
    return counts / (2 * generation)
