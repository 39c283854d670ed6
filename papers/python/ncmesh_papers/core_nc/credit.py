"""The number of packets that a source sends at once (CORE, section 6.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ncmesh_papers.core_nc.arguments import Numbers, packets, shares


def decode_probability(g: ArrayLike, r: ArrayLike, x: ArrayLike, *, whole: bool = True) -> Numbers:
    """
    Return the probability that the relay gets at least `g` of the g / r * x packets sent (eq. 35).

    `r` is the share of packets that arrive, above 0 and up to 1; `x` is the factor of extra credit,
    0 or more. Every packet that arrives counts as innovative. `whole` rounds the number of packets
    sent down, as printed. Without it the number stays fractional and the sum becomes the
    regularised incomplete beta function I_r(g, n - g + 1), which is smooth in x.

    Arrays broadcast. Raises `ValueError` for arguments out of range.
    """
    generation, success, extra = np.broadcast_arrays(
        packets("g", g), shares("r", r), np.asarray(x, np.float64)
    )
    if (success == 0).any():
        raise ValueError("r = 0: allowed is above 0, up to 1")
    if not ((extra >= 0) & np.isfinite(extra)).all():
        raise ValueError("x: allowed is 0 and more")
    sent = generation / success * extra
    if whole:
        # Quotients such as 57 / 0.57 may be just below a whole number.
        sent = np.floor(sent + 1e-9)
    missed = np.zeros(sent.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Logarithms of the terms: each term is the previous one times (n - i + 1) / i * r / (1 -
        # r).
        term = sent * np.log(1 - success)
        for i in range(int(generation.max(initial=0))):
            if i > 0:
                term = term + np.log((sent - i + 1) / i) + np.log(success / (1 - success))
            missed += np.where(i < generation, np.exp(term), 0.0)
    found = np.where(sent < generation, 0.0, np.where(success == 1, 1.0, 1 - missed))
    numbers: Numbers = np.clip(found, 0.0, 1.0)[()]
    return numbers
