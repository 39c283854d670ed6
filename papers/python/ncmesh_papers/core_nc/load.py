"""Throughput against offered load (CORE, section 5.6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ncmesh_papers.core_nc.arguments import Equations, Numbers, shares
from ncmesh_papers.core_nc.transmissions import efficiency

# Share of the channel that two sources get from a MAC that is fair to three senders.
FAIR = 2 / 3


def throughput(
    scheme: str,
    offered: ArrayLike,
    e: ArrayLike,
    generation: ArrayLike = 64,
    *,
    equations: Equations = "fixed",
    whole: bool = False,
) -> Numbers:
    """
    Return the packets of both flows delivered per transmission that the channel carries.

    `offered` is the load of both sources in the same unit: 1 is what a channel without loss
    carries. `e` is the loss of every link, overhearing included. `scheme` is one of `SCHEMES`,
    whose throughput follows the load up to the reciprocal of `efficiency` and stays there; or
    `forwarding`, which falls from what the relay can forward to what a fair MAC leaves it (fig. 5).

    Arrays broadcast. The other arguments and errors are those of `efficiency`; a load below 0 is a
    `ValueError`.
    """
    load: Numbers = np.asarray(offered, dtype=np.float64)
    if not (load >= 0).all():
        raise ValueError("offered: allowed is 0 and more")
    if scheme == "forwarding":
        carried = _forwarding(load, 1 - shares("e", e))
    else:
        most = 1 / efficiency(scheme, e, e, generation, equations=equations, whole=whole)
        carried = np.minimum(load, most)
    numbers: Numbers = carried[()]
    return numbers


def _forwarding(load: Numbers, success: Numbers) -> Numbers:
    """
    Return the throughput of a relay that gets what the sources leave of the channel.

    The sources need 1 / success transmissions for a packet that reaches the relay, and get at most
    their fair share of the channel. The relay forwards `success` packets with each transmission
    that is left.
    """
    reached = np.minimum(load, FAIR * success)
    forwarded: Numbers = np.minimum(reached, success - reached)
    return forwarded
