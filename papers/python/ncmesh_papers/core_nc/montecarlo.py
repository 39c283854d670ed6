"""Trials of the schemes, packet by packet, with ranks of real coefficients."""

from __future__ import annotations

from typing import Literal

from ncmesh_papers import _models
from ncmesh_papers.core_nc.arguments import Numbers

# Number of seeds.
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
    Return the transmissions of all nodes per packet of both flows, for each trial.

    A trial delivers a generation (1 to 256 packets) of each flow. Schemes that code use `field`
    (`gf2`, `gf16`, `gf256`). A trial ends when `both` destinations have their flow, as in the
    paper's simulations, or when `one` of them, D1, has its flow, as in the analysis; the other flow
    continues until then. The value is infinite for a trial that has not ended after a million
    transmissions. Each trial has its own random streams, named by the seed (0 to 2^63 - 1) and the
    trial's number; every field sees the same losses. Releases the GIL; Ctrl-C ends it.

    Raises `ValueError` for arguments out of range.
    """
    for name, value, least, most in (
        ("generation", generation, 1, 256),
        ("trials", trials, 1, 2**32),
        ("seed", seed, 0, SEEDS - 1),
    ):
        if not least <= value <= most:
            raise ValueError(f"{name} = {value}: allowed is {least} to {most}")
    counts = _models.cross_transmissions(scheme, e_x, e_oh, generation, field, until, trials, seed)
    return counts / (2 * generation)
