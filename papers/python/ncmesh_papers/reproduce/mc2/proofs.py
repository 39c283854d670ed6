"""Proofs that claims of MC2 contradict its own formulas and examples."""

from __future__ import annotations

import functools

from ncmesh_papers import mc2
from ncmesh_papers.reproduce.claims import GAIN, Claim, Proof
from ncmesh_papers.reproduce.mc2.examples import Example
from ncmesh_papers.reproduce.mc2.mesh import across, diamond

# The rate that the paper states for the diamond without loss, packets per slot (section 2.1).
LOSSLESS = 0.5
ACCURACY = 1e-6


def of_gain(example: Example, p: float, most: float) -> Proof:
    """Show that the formulas exceed the largest gain that agrees with the text, at `p`."""
    gain = example.formula("coded", p) / example.formula("single", p)
    return Proof(
        f"the formulas of section 2 give {GAIN.write(gain)} at p = {p:g}; the gain depends on p, "
        "and the text states none.",
        gain > most,
    )


def of_printed_conflicts(with_ours: Claim) -> Proof:
    """
    Show that section 4.1's conflicts give the lossless diamond another rate than the paper does.

    That refutes a claim only if the same claim agrees with conflicts that give the paper's rate.
    """
    printed = _lossless("audible")
    return Proof(
        f"with the conflicts of 4.1 the lossless diamond carries {printed:.3f} packets per slot, "
        f"where the paper has {LOSSLESS}: two relays that do not hear each other send to one "
        "receiver at once. With conflicts that give 0.5 the claim agrees.",
        with_ours.agrees
        and abs(printed - LOSSLESS) > ACCURACY
        and abs(_lossless("shared_hearer") - LOSSLESS) < ACCURACY,
    )


@functools.cache
def _lossless(conflict: mc2.Conflict) -> float:
    mesh = diamond(1.0, 1.0)
    return float(mc2.optimum(mesh.delivery, across(mesh), conflict=conflict)["total"])
