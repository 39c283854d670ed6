"""Traffic of OGMs, OLSRv2 and Babel on a drawn mesh at rest, from their specifications.

Every protocol sends over the same radios as the simulator: 802.11b at 11 Mbit/s with the long
preamble, 36 bytes of MAC header, LLC and FCS for each frame, broadcast without acknowledgment.
Losses are those of the links, without collisions. `docs/results/scale.md` states the formulas.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREAMBLE_US, MAC_BYTES, BITS_PER_US = 192, 36, 11
UDP_IPV4, UDP_IPV6 = 28, 48

# B.A.T.M.A.N. IV as in Linux: struct batadv_ogm_packet is 24 bytes; TVLVs follow for translation
# table (16), distributed ARP table (4) and multicast (8). Forwarded OGMs wait up to 100 ms to share
# a frame of 512 bytes, and cost 30 of 255 for each hop.
OGM_S = 1.0
OGM_BYTES = 24 + 16 + 4 + 8
OGM_WAIT_S = 0.1
OGM_MOST = 512 // OGM_BYTES
OGM_HOP = -math.log(1 - 30 / 255)

# OLSRv2, RFC 7181 section 5 and RFC 6130 section 5: intervals, and jitter of a quarter of HELLO's,
# half of which a forwarded message waits on average (RFC 5148).
HELLO_S, TC_S, FORWARD_WAIT_S = 2.0, 5.0, 0.25
# RFC 5444: packet header 4, message header 12, message TLVs (HELLO: validity, interval and
# willingness, 4 each; TC: validity and interval, 4 each, and CONT_SEQ_NUM, 6), head of the address
# block 4, 4 for each address TLV, and for each address its 2 last bytes and the values of the TLVs.
HELLO_BYTES, HELLO_EACH = 4 + 12 + 12 + 4 + 3 * 4, 2 + 1 + 1 + 4
TC_BYTES, TC_EACH = 12 + 14 + 4 + 2 * 4, 2 + 1 + 2
# A link is used if it delivers half in both directions.
OLSR_DELIVERY = 0.5
FLOODS = 3

# Babel, RFC 8966 appendix B: Hello every 4 s, IHU every third Hello, Updates every fourth. Hello 8,
# IHU 16 (link-local address), Router-Id 12 and Update 20 (host route in a common /64), and a packet
# header of 4.
BABEL_HELLO_S, BABEL_IHU_S, BABEL_UPDATE_S = 4.0, 12.0, 16.0
BABEL_PACKET, BABEL_HELLO, BABEL_IHU, BABEL_ROUTE = 4, 8, 16, 12 + 20
BABEL_MOST = 1500 - UDP_IPV6
# A neighbour gets an IHU if it is heard at all.
BABEL_DELIVERY = 0.1

Neighbours = list[dict[int, float]]
"""By sender: receiver and delivery."""


@dataclass(frozen=True)
class Cost:
    """Bytes that each node sends in a second."""

    payload: list[float]
    """Bytes, without those of the MAC."""
    airtime: list[float]
    """Share of time."""


def airtime_s(payload: float) -> float:
    """Airtime of a broadcast frame. Mean sizes need not be whole."""
    return 1e-6 * (PREAMBLE_US + (payload + MAC_BYTES) * 8 / BITS_PER_US)


def frames(rate: float, payload: float) -> float:
    """Airtime in a second of `rate` frames that carry `payload` bytes in all."""
    return rate * airtime_s(payload / rate) if rate > 0 else 0.0


def neighbours(mesh: dict[str, Any]) -> Neighbours:
    found: Neighbours = [{} for _ in mesh["positions"]]
    for a, b, delivery in mesh["links"]:
        found[a][b] = delivery
    return found


def around(mesh: dict[str, Any], cost: Cost) -> list[float]:
    """Share of time that the frames of all nodes take which a node senses, itself included."""
    return [sum(cost.airtime[other] for other in senses) for senses in mesh["senses"]]


def ogms(mesh: dict[str, Any]) -> Cost:
    """B.A.T.M.A.N. IV: every node passes every OGM on that its best neighbour passed to it."""
    links = neighbours(mesh)
    forwarded = [0.0] * len(links)
    for originator in range(len(links)):
        arrival, parent = best_paths(links, originator)
        for node, probability in arrival.items():
            if node == originator:
                continue
            forwarded[node] += probability
            # An OGM heard from its originator is passed on in any case, to tell it of the link.
            if parent[node] != originator:
                forwarded[node] += links[originator].get(node, 0.0)
    payload, airtime = [], []
    for heard in forwarded:
        rate = heard / OGM_S
        shared = max(rate / (1 + OGM_WAIT_S * rate), rate / OGM_MOST)
        payload.append((1 / OGM_S + rate) * OGM_BYTES)
        own = frames(1 / OGM_S, OGM_BYTES / OGM_S)
        airtime.append(own + frames(shared, rate * OGM_BYTES))
    return Cost(payload, airtime)


def best_paths(links: Neighbours, root: int) -> tuple[dict[int, float], dict[int, int]]:
    """By node: the probability that a flood arrives over the best path, and the hop before it."""
    arrival, parent = {root: 1.0}, {root: root}
    done: set[int] = set()
    open_ = [(0.0, root)]
    best = {root: 0.0}
    while open_:
        cost, node = heapq.heappop(open_)
        if node in done:
            continue
        done.add(node)
        for other, delivery in links[node].items():
            further = cost + OGM_HOP - math.log(delivery)
            if further < best.get(other, math.inf):
                best[other], parent[other] = further, node
                arrival[other] = arrival[node] * delivery
                heapq.heappush(open_, (further, other))
    return arrival, parent


def olsr(mesh: dict[str, Any]) -> Cost:
    """OLSRv2: HELLOs list the neighbours; multipoint relays flood TCs of nodes that are relays."""
    links = neighbours(mesh)
    near = [
        {b for b, d in row.items() if min(d, links[b].get(a, 0.0)) >= OLSR_DELIVERY}
        for a, row in enumerate(links)
    ]
    relays = [multipoint_relays(near, node) for node in range(len(near))]
    selectors = [{b for b in near[a] if a in relays[b]} for a in range(len(near))]
    messages, carried = flooded(links, relays, selectors)
    payload, airtime = [], []
    for node, around_it in enumerate(near):
        hello = UDP_IPV4 + HELLO_BYTES + HELLO_EACH * len(around_it)
        # Messages that wait at the same time share a packet.
        rate = messages[node] / FLOODS / TC_S
        packets = rate / (1 + FORWARD_WAIT_S * rate)
        tcs = carried[node] / FLOODS / TC_S + packets * (UDP_IPV4 + 4)
        payload.append(hello / HELLO_S + tcs)
        airtime.append(frames(1 / HELLO_S, hello / HELLO_S) + frames(packets, tcs))
    return Cost(payload, airtime)


def multipoint_relays(near: list[set[int]], node: int) -> set[int]:
    """Neighbours that together reach all nodes two hops away (greedy, RFC 7181 appendix B)."""
    left = set().union(*(near[other] for other in near[node])) - near[node] - {node}
    relays: set[int] = set()
    while left:
        best = max(sorted(near[node] - relays), key=lambda other: len(near[other] & left))
        relays.add(best)
        left -= near[best]
    return relays


def flooded(
    links: Neighbours, relays: list[set[int]], selectors: list[set[int]]
) -> tuple[list[int], list[int]]:
    """Number and bytes of the TCs that each node sends in `FLOODS` rounds of TCs of all nodes."""
    draw = random.Random(1)
    messages, carried = [0] * len(links), [0] * len(links)
    for originator in range(len(links)):
        if not selectors[originator]:
            continue
        length = TC_BYTES + TC_EACH * len(selectors[originator])
        for _ in range(FLOODS):
            heard = {originator}
            queue = [originator]
            for sender in queue:
                messages[sender] += 1
                carried[sender] += length
                for other, delivery in links[sender].items():
                    # The first copy decides: a node relays for those that chose it.
                    if other not in heard and draw.random() < delivery:
                        heard.add(other)
                        if other in relays[sender]:
                            queue.append(other)
    return messages, carried


def babel(mesh: dict[str, Any]) -> Cost:
    """Babel at rest: no triggered updates, no requests."""
    links = neighbours(mesh)
    routes = len(links) * BABEL_ROUTE
    dumps = math.ceil(routes / BABEL_MOST)
    update = routes + dumps * (UDP_IPV6 + BABEL_PACKET)
    payload, airtime = [], []
    for row in links:
        heard = sum(1 for delivery in row.values() if delivery >= BABEL_DELIVERY)
        hello = UDP_IPV6 + BABEL_PACKET + BABEL_HELLO
        hello += heard * BABEL_IHU * BABEL_HELLO_S / BABEL_IHU_S
        payload.append(hello / BABEL_HELLO_S + update / BABEL_UPDATE_S)
        airtime.append(
            frames(1 / BABEL_HELLO_S, hello / BABEL_HELLO_S)
            + frames(dumps / BABEL_UPDATE_S, update / BABEL_UPDATE_S)
        )
    return Cost(payload, airtime)


MODELS: dict[str, Callable[[dict[str, Any]], Cost]] = {
    "B.A.T.M.A.N. IV": ogms,
    "OLSRv2": olsr,
    "Babel": babel,
}
