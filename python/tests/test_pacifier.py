"""Plans against the paper's equations, written out anew."""

import heapq

import numpy as np
import pytest

import ncmesh


def tree(delivery, source, receivers):
    """Parents and ETX of the union of the shortest paths."""
    n = len(delivery)
    etx, before, queue = {}, {}, [(0.0, source, source)]
    while queue:
        at, node, parent = heapq.heappop(queue)
        if node in etx:
            continue
        etx[node], before[node] = at, parent
        for to in range(n):
            if to not in etx and to != node and delivery[node, to] > 0:
                heapq.heappush(queue, (at + 1 / delivery[node, to], to, node))
    parent = {}
    for receiver in receivers:
        node = receiver
        while node != source:
            parent[node] = before[node]
            node = before[node]
    return parent, etx


def credit(delivery, source, receivers, knob):
    """Equations 1 to 4, with the knob of III-C.2."""
    parent, etx = tree(delivery, source, receivers)
    forwarders = sorted(set(parent.values()) - {source}, key=etx.__getitem__)
    z, expected = {}, {}
    for j in [source, *forwarders]:
        got = sum(z[i] * delivery[i, j] for i in z)
        owed = []
        for k in (child for child, up in parent.items() if up == j):
            load = min(got, 1) - sum(z[i] * delivery[i, k] for i in z) if j != source else 1.0
            if load > 0:
                owed.append(load / delivery[j, k])
        z_j = min(owed) + knob * (max(owed) - min(owed)) if owed else 0.0
        if j != source:
            expected[j] = z_j / got
        z[j] = z_j
    return forwarders, z, expected, parent


@pytest.mark.parametrize("knob", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_a_plan_follows_the_equations(seed, knob):
    rng = np.random.default_rng(seed)
    n = 25
    loss = np.where(rng.random((n, n)) < 0.25, rng.random((n, n)), 1.0)
    loss[np.arange(n - 1), np.arange(1, n)] = 0.5
    source, *receivers = rng.permutation(np.arange(n // 2, n))[:6]
    loss[n - 1, 0] = 0.9
    plan = ncmesh.pacifier.plan(loss, source, receivers, knob)
    forwarders, z, expected, parent = credit(1 - loss, source, receivers, knob)
    assert plan["forwarders"] == forwarders
    assert plan["parent"] == parent
    assert plan["z"] == pytest.approx(z, rel=1e-12, abs=1e-12)
    assert plan["tx_credit"] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert plan["unreachable"] == []


def test_the_faintest_link_counts_and_the_diagonal_does_not():
    loss = np.array([[np.nan, 1 - 1e-9, 1], [1, 5.0, 0.5], [1, 1, -1]])
    plan = ncmesh.pacifier.plan(loss, 0, [2])
    assert plan["parent"] == {1: 0, 2: 1}
    assert plan["z"] == pytest.approx({0: 1e9, 1: 2.0}, rel=1e-6)


def test_a_receiver_without_a_path_is_named():
    loss = np.ones((3, 3))
    loss[0, 1] = 0.2
    assert ncmesh.pacifier.plan(loss, 0, (1, 2))["unreachable"] == [2]


@pytest.mark.parametrize("knob", [1.1, -0.1, np.nan, np.inf])
def test_a_knob_is_a_share(knob):
    with pytest.raises(ValueError, match=r"knob = .*: allowed is 0 to 1"):
        ncmesh.pacifier.plan(np.full((3, 3), 0.5), 0, [1], knob=knob)
