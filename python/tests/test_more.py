"""Belts against the formulas of the MORE paper, written out anew."""

import heapq

import numpy as np
import pytest

import ncmesh


def etx_to(delivery, destination):
    """ETX of each node that has a path to the destination."""
    etx, queue = {}, [(0.0, destination)]
    while queue:
        at, node = heapq.heappop(queue)
        if node not in etx:
            etx[node] = at
            for before in np.flatnonzero(delivery[:, node]):
                heapq.heappush(queue, (at + 1 / delivery[before, node], int(before)))
    return etx


def load(delivery, order):
    """The expected transmissions of the nodes of a belt, the destination first, the source last."""
    arriving, z = {order[-1]: 1.0}, {}
    for place in range(len(order) - 1, 0, -1):
        i, nearer = order[place], order[:place]
        some = 1 - np.prod([1 - delivery[i, j] for j in nearer])
        z[i] = arriving.get(i, 0.0) / some if some > 0 else 0.0
        nobody_nearer = 1.0
        for j in nearer:
            arriving[j] = arriving.get(j, 0.0) + z[i] * nobody_nearer * delivery[i, j]
            nobody_nearer *= 1 - delivery[i, j]
    return z


def belt(delivery, source, destination, prune):
    """Nodes in order and their z, pruned and computed anew."""
    etx = etx_to(delivery, destination)
    nodes = [node for node in etx if node == source or etx[node] < etx[source]]
    order = sorted(nodes, key=lambda node: (etx[node], node))
    z = load(delivery, order)
    kept = [n for n in order if n in (source, destination) or z[n] >= prune * sum(z.values())]
    # A node with no way onward is of no use.
    for node in list(kept):
        if node != destination and not any(delivery[node, j] for j in kept[: kept.index(node)]):
            kept.remove(node)
    z = load(delivery, kept)
    return {node: at for node, at in etx.items() if z.get(node, 0) > 0}, z


def more(delivery, source, receivers, prune):
    belts = [belt(delivery, source, receiver, prune) for receiver in receivers]
    z, upstream = {}, {}
    for _, sent in belts:
        for node, count in sent.items():
            if count > 0:
                z[node] = max(z.get(node, 0.0), count)
    for node in z.keys() - {source}:
        upstream[node] = {source}
        for receiver, (_, sent) in zip(receivers, belts, strict=True):
            if sent.get(node, 0) > 0:
                etx = etx_to(delivery, receiver)
                here = (etx[node], node)
                upstream[node] |= {j for j in z if j in etx and (etx[j], j) > here}
    credit = {
        node: z[node] / sum(z[j] * delivery[j, node] for j in upstream[node]) for node in upstream
    }
    return z, credit


@pytest.mark.parametrize("prune", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(20))
def test_a_plan_follows_the_formulas(seed, prune):
    rng = np.random.default_rng(seed)
    n = 14
    loss = np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), 1.0)
    loss[np.arange(n - 1), np.arange(1, n)] = 0.4
    source, receivers = 0, [n - 1, n - 4, 5]
    plan = ncmesh.more.plan(loss, source, receivers, prune)
    z, credit = more(1 - loss, source, receivers, prune)
    assert plan["disconnected"] == plan["unreachable"] == []
    assert plan["z"] == pytest.approx(z, rel=1e-9)
    assert plan["tx_credit"] == pytest.approx(credit, rel=1e-9)
    assert set(plan["forwarders"]) == z.keys() - {source}


def test_two_relays_share_what_they_hear():
    # The source is heard by both relays at one half, the destination hears them surely.
    loss = np.ones((4, 4))
    loss[0, 1] = loss[0, 2] = 0.5
    loss[1, 3] = loss[2, 3] = 0.0
    plan = ncmesh.more.plan(loss, 0, [3], prune=0.0)
    # 4/3 transmissions until one of them has it. The lower id counts as nearer and takes what both
    # have.
    assert plan["z"] == pytest.approx({0: 4 / 3, 1: 2 / 3, 2: 1 / 3})
    assert plan["tx_credit"] == pytest.approx({1: 1.0, 2: 0.5})


def test_the_largest_threshold_is_where_a_receiver_is_cut_off():
    rng = np.random.default_rng(7)
    loss = np.where(rng.random((20, 20)) < 0.2, rng.random((20, 20)), 1.0)
    loss[np.arange(19), np.arange(1, 20)] = 0.5
    receivers = [19, 12]
    most = ncmesh.more.largest_threshold(loss, 0, receivers)
    assert 0 < most < 1
    assert ncmesh.more.plan(loss, 0, receivers, prune=most * (1 - 1e-9))["disconnected"] == []
    assert ncmesh.more.plan(loss, 0, receivers, prune=most * (1 + 1e-9))["disconnected"] != []


def test_a_receiver_without_a_path_is_named():
    loss = np.ones((3, 3))
    loss[0, 1] = 0.2
    assert ncmesh.more.plan(loss, 0, [1, 2])["unreachable"] == [2]


@pytest.mark.parametrize("prune", [1.1, -0.1, np.nan])
def test_a_threshold_is_a_share(prune):
    with pytest.raises(ValueError, match=r"prune = .*: allowed is 0 to 1"):
        ncmesh.more.plan(np.full((3, 3), 0.5), 0, [1], prune=prune)
