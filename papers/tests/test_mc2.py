"""MC2's analysis: closed forms against codes, the optimum against both and other programs."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import ncmesh
from ncmesh_papers import mc2


def diamond(p, q, n):
    delivery = np.zeros((n + 2, n + 2))
    delivery[0, 1:-1] = p
    delivery[1:-1, -1] = q
    return delivery


def hexagon(p, q):
    """Figure 1(a), links in both directions: 0-1-2-3 and 0-4-5-3."""
    delivery = np.zeros((6, 6))
    for i, j, both in [(0, 1, p), (0, 4, p), (1, 2, q), (2, 3, q), (4, 5, q), (5, 3, q)]:
        delivery[i, j] = delivery[j, i] = both
    return delivery


def mesh(rng, n, density=0.4):
    delivery = np.where(rng.random((n, n)) < density, rng.random((n, n)), 0.0)
    delivery[np.arange(n - 1), np.arange(1, n)] = rng.uniform(0.1, 1, n - 1)
    return delivery


# Closed forms


def test_the_lossless_diamond_has_one_half():
    assert mc2.diamond(1, 1, 2) == {"coded": 0.5, "naive": pytest.approx(1 / 3), "single": 0.5}
    assert mc2.hexagon(1, 1) == pytest.approx({"coded": 1 / 2, "naive": 1 / 3, "single": 1 / 3})


def test_one_relay_is_a_single_path():
    rates = mc2.diamond(0.3, 0.8, 1)
    assert rates == pytest.approx(dict.fromkeys(("coded", "naive", "single"), 0.24 / 1.1))


def test_shapes_broadcast():
    p, n = np.linspace(0, 1, 5), np.arange(1, 4)[:, None]
    rates = mc2.diamond(p, 0.8, n)
    assert {name: rate.shape for name, rate in rates.items()} == dict.fromkeys(rates, (3, 5))
    assert rates["coded"][1, 2] == mc2.diamond(0.5, 0.8, 2)["coded"]
    assert (rates["coded"] >= rates["naive"] - 1e-15).all()
    assert (rates["coded"] >= rates["single"] - 1e-15).all()
    assert isinstance(mc2.diamond(0.5, 0.8, 2)["single"], float)


def test_without_delivery_there_is_no_rate():
    for p, q in [(0, 0), (0, 0.5), (0.5, 0)]:
        assert set(mc2.diamond(p, q, 3).values()) == set(mc2.hexagon(p, q).values()) == {0.0}


def test_small_deliveries_stay_exact():
    rates = mc2.diamond(1e-12, 1.0, 3)
    assert rates["coded"] / rates["single"] == pytest.approx(3, rel=1e-9)


def test_gains_of_the_paper_hold_at_small_p_only():
    gains = {
        name: {
            p: rates["coded"] / rates["single"]
            for p in (1e-9, 0.5, 0.59, 1.0)
            for rates in [form(p, 0.8)]
        }
        for name, form in (("diamond", mc2.diamond), ("hexagon", mc2.hexagon))
    }
    assert gains["diamond"] == pytest.approx({1e-9: 2, 0.5: 1.258, 0.59: 1.201, 1.0: 1}, abs=1e-3)
    assert gains["hexagon"] == pytest.approx(
        {1e-9: 2, 0.5: 1.742, 0.59: 1.711, 1.0: 1.556}, abs=1e-3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.1, 0.5, 2), r"p = 1.1: allowed is 0 to 1"),
        ((0.5, np.nan, 2), r"q = nan: allowed is 0 to 1"),
        ((0.5, [0.5, -0.1], 2), r"q = -0.1: allowed is 0 to 1"),
        ((0.5, 0.5, 0), r"n = 0: allowed is a whole number from 1"),
        ((0.5, 0.5, 1.5), r"n = 1.5: allowed is a whole number from 1"),
        ((0.5, 0.5, np.inf), r"n = inf: allowed is a whole number from 1"),
        (([0.5, 0.1], [0.5] * 3, 1), r"shape mismatch"),
    ],
)
def test_invalid_diamonds_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mc2.diamond(*arguments)


def test_random_codes_reach_the_closed_form():
    """The source sends until the relays together have full rank, then they send until it does."""
    rng, generation, p, q = np.random.default_rng(1), 200, 0.4, 0.8
    slots = 0
    for seed in range(10):
        source = ncmesh.Encoder(generation, 1, seed=seed)
        source.load(rng.bytes(generation))
        relays = [ncmesh.Recoder(generation, 1, seed=100 * seed + i) for i in range(2)]
        both, destination = ncmesh.Decoder(generation, 1), ncmesh.Decoder(generation, 1)
        while not both.is_complete:
            packet, slots = source.encode(), slots + 1
            for relay in (relay for relay in relays if rng.random() < p):
                relay.receive(packet)
                both.receive(packet)
        while not destination.is_complete:
            packet, slots = relays[slots % 2].recode(), slots + 1
            if rng.random() < q:
                destination.receive(packet)
    assert 10 * generation / slots == pytest.approx(mc2.diamond(p, q, 2)["coded"], rel=0.03)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_relays_that_forward_everything_reach_the_naive_form(n):
    rng, sent, p, q = np.random.default_rng(n), 200_000, 0.4, 0.8
    heard = rng.random((n, sent)) < p
    slots = sent + rng.geometric(q, heard.sum()).sum()
    assert heard.any(axis=0).sum() / slots == pytest.approx(mc2.diamond(p, q, n)["naive"], rel=0.01)


# The program


@pytest.mark.parametrize("seed", range(12))
def test_the_diamond_is_its_closed_form(seed):
    rng = np.random.default_rng(seed)
    p, q, n = rng.uniform(0.02, 1), rng.uniform(0.02, 1), int(rng.integers(1, 7))
    best, rates = mc2.optimum(diamond(p, q, n), [(0, n + 1)]), mc2.diamond(p, q, n)
    some = 1 - (1 - p) ** n
    assert best["total"] == best["utility"] == pytest.approx(rates["coded"], abs=1e-7)
    assert best["activations"][0, 0] == pytest.approx(q / (some + q), abs=1e-6)
    one = mc2.optimum(diamond(p, q, n), [(0, n + 1)], paths=1)
    assert one["rates"] == pytest.approx([rates["single"]], abs=1e-7)
    assert one["activations"][0, 0] == pytest.approx(q / (p + q), abs=1e-6)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.5, 0.8), (0.1, 0.8), (0.9, 0.2), (0.3, 0.3)])
def test_the_hexagon_is_its_closed_form(p, q):
    rates = mc2.hexagon(p, q)
    assert mc2.optimum(hexagon(p, q), [(0, 3)])["total"] == pytest.approx(rates["coded"], abs=1e-7)
    assert mc2.optimum(hexagon(p, q), [(0, 3)], paths=1)["total"] == pytest.approx(
        rates["single"], abs=1e-7
    )


def test_the_printed_rule_lets_relays_send_at_once():
    best = mc2.optimum(diamond(1, 1, 2), [(0, 3)], conflict="audible")
    assert best["total"] == pytest.approx(2 / 3)
    assert ([1, 2], pytest.approx(1 / 3)) in best["schedule"]


def by_receiving_sets(delivery, flows, conflict):
    """The largest sum, from a program with a rate for every receiving set and every schedule."""
    n, hears = len(delivery), delivery > 0

    def apart(i, j):
        audible = hears[i, j] or hears[j, i]
        return audible or (conflict == "shared_hearer" and (hears[i] & hears[j]).any())

    subsets = [set(s) for size in range(n + 1) for s in itertools.combinations(range(n), size)]
    sets = [s for s in subsets if not any(apart(i, j) for i, j in itertools.combinations(s, 2))]
    columns = itertools.count()
    share = [next(columns) for _ in sets]
    flow_rate = [next(columns) for _ in flows]
    at_most, at_most_limits, exact, exact_limits = [], [], [dict.fromkeys(share, 1.0)], [1.0]
    sends = [{k: -1.0 for k, s in zip(share, sets, strict=True) if i in s} for i in range(n)]
    for c, (source, destination) in enumerate(flows):
        kept = [{} for _ in range(n)]
        kept[source][flow_rate[c]] = -1.0
        for i in range(n):
            alpha = next(columns)
            sends[i][alpha] = 1.0
            for hearers in (s for s in subsets if s and all(hears[i, j] for j in s)):
                exactly = math.prod(
                    delivery[i, j] if j in hearers else 1 - delivery[i, j] for j in range(n)
                )
                to = {j: next(columns) for j in hearers}
                at_most.append({**dict.fromkeys(to.values(), 1.0), alpha: -exactly})
                for j, column in to.items():
                    kept[i][column] = kept[i].get(column, 0) + 1.0
                    kept[j][column] = kept[j].get(column, 0) - 1.0
        exact += [row for node, row in enumerate(kept) if node != destination]
    at_most += sends
    size = next(columns)

    def matrix(rows):
        full = np.zeros((len(rows), size))
        for row, terms in zip(full, rows, strict=True):
            row[list(terms)] = list(terms.values())
        return full

    cost = np.zeros(size)
    cost[flow_rate] = -1
    exact_limits += [0.0] * (len(exact) - 1)
    at_most_limits = np.zeros(len(at_most))
    result = linprog(cost, matrix(at_most), at_most_limits, matrix(exact), exact_limits)
    assert result.success
    return -result.fun


@pytest.mark.parametrize("conflict", ["audible", "shared_hearer"])
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_equals_a_program_over_receiving_sets(seed, conflict):
    rng = np.random.default_rng(seed)
    delivery = mesh(rng, 5, density=0.5)
    flows = [(0, 4), (1, 3)][: 1 + seed % 2]
    best = mc2.optimum(delivery, flows, conflict=conflict)
    assert best["total"] == pytest.approx(by_receiving_sets(delivery, flows, conflict), abs=1e-6)


@pytest.mark.parametrize("utility", ["sum", "log"])
@pytest.mark.parametrize("seed", range(4))
def test_a_solution_obeys_every_constraint(seed, utility):
    rng = np.random.default_rng(seed)
    delivery, flows = mesh(rng, 9), [(0, 8), (2, 7), (1, 5)]
    best = mc2.optimum(delivery, flows, utility, conflict="audible")
    hears = delivery > 0
    assert sum(share for _, share in best["schedule"]) == pytest.approx(1)
    for nodes, _ in best["schedule"]:
        assert not any(hears[i, j] or hears[j, i] for i, j in itertools.combinations(nodes, 2))
    for node, sends in enumerate(best["activations"].sum(axis=0)):
        assert sends <= sum(share for nodes, share in best["schedule"] if node in nodes) + 1e-6
    for (source, destination), rate, links, sends in zip(
        flows, best["rates"], best["links"], best["activations"], strict=True
    ):
        surplus = links.sum(axis=1) - links.sum(axis=0)
        expected = np.zeros(9)
        expected[[source, destination]] = rate, -rate
        assert surplus == pytest.approx(expected, abs=1e-7)
        for i in range(9):
            hearers = np.flatnonzero(hears[i])
            for size in range(1, len(hearers) + 1):
                for some in map(list, itertools.combinations(hearers, size)):
                    assert (
                        links[i, some].sum()
                        <= sends[i] * (1 - np.prod(1 - delivery[i, some])) + 1e-7
                    )


def test_proportional_fairness_is_stationary():
    """No other rates have a positive sum of (other - fair) / fair."""
    rng = np.random.default_rng(3)
    delivery, flows = mesh(rng, 8), [(0, 7), (1, 6), (2, 5)]
    fair = mc2.optimum(delivery, flows, "log")
    assert fair["utility"] == pytest.approx(np.log(fair["rates"]).sum())
    assert fair["total"] == pytest.approx(fair["rates"].sum())
    for other in [mc2.optimum(delivery, flows)["rates"]] + [
        np.eye(3)[c] * mc2.optimum(delivery, [flow])["total"] for c, flow in enumerate(flows)
    ]:
        assert (other / fair["rates"]).sum() <= len(flows) + 1e-3


def test_fair_flows_that_are_alike_get_the_same():
    # Two diamonds share their relays, and all nodes hear each other.
    delivery = np.zeros((6, 6))
    delivery[:2, 2:4] = delivery[2:4, :2] = 0.5
    delivery[2:4, 4:] = delivery[4:, 2:4] = 0.8
    fair = mc2.optimum(delivery, [(0, 4), (1, 5)], "log")
    assert fair["rates"] == pytest.approx([mc2.diamond(0.5, 0.8)["coded"] / 2] * 2, rel=1e-3)


def test_fairness_serves_the_worse_flow_too():
    # Hops of 0.9 and 0.1 exclude each other: half of the slots each, or all for the better one.
    delivery = np.zeros((3, 3))
    delivery[0, 1], delivery[0, 2] = 0.9, 0.1
    flows = [(0, 1), (0, 2)]
    assert mc2.optimum(delivery, flows)["rates"] == pytest.approx([0.9, 0])
    assert mc2.optimum(delivery, flows, "log")["rates"] == pytest.approx([0.45, 0.05], rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_better_links_and_more_paths_never_cost_anything(seed):
    rng = np.random.default_rng(seed)
    delivery, flows = mesh(rng, 8), [(0, 7), (6, 2)]
    flows = flows if mc2.best_paths(delivery, 6, 2, 1) else flows[:1]
    better = np.where(delivery > 0, delivery + (1 - delivery) * rng.random(delivery.shape), 0.0)
    for utility in ("sum", "log"):
        whole = mc2.optimum(delivery, flows, utility)["utility"]
        assert mc2.optimum(better, flows, utility)["utility"] >= whole - 1e-6
        few = [mc2.optimum(delivery, flows, utility, paths=k)["utility"] for k in (1, 2, 4, 6)]
        assert np.all(np.diff([*few, whole]) >= -1e-6)


def test_the_best_paths_have_the_largest_products():
    rng = np.random.default_rng(5)
    delivery = mesh(rng, 6, density=0.6)
    found = mc2.best_paths(delivery, 0, 5, 4)
    every = [
        (0, *middle, 5) for size in range(5) for middle in itertools.permutations(range(1, 5), size)
    ]
    products = {
        path: math.prod(delivery[i, j] for i, j in itertools.pairwise(path)) for path in every
    }
    largest = sorted(
        (path for path in every if products[path] > 0), key=lambda path: -products[path]
    )
    assert [tuple(path) for path in found] == largest[:4]


def test_of_lossless_paths_the_shortest_is_best():
    assert mc2.best_paths(np.ones((4, 4)), 0, 3, 3) == [[0, 3], [0, 1, 3], [0, 2, 3]]
    assert mc2.best_paths(np.eye(3), 0, 2, 3) == []


def test_a_flow_without_a_path():
    delivery = np.zeros((4, 4))
    delivery[0, 1] = 0.5
    best = mc2.optimum(delivery, [(0, 1), (2, 3)])
    assert best["rates"] == pytest.approx([0.5, 0])
    assert mc2.optimum(delivery, [(2, 3)])["rates"].tolist() == [0.0]
    with pytest.raises(ncmesh.UnreachableError, match=r"flow \(2, 3\): no path"):
        mc2.optimum(delivery, [(0, 1), (2, 3)], "log")
    delivery[2, 3] = 1e-12
    with pytest.raises(ncmesh.UnreachableError, match=r"flow \(2, 3\): its rate is below 1e-09"):
        mc2.optimum(delivery, [(0, 1), (2, 3)], "log")


GOOD = np.full((3, 3), 0.5)


@pytest.mark.parametrize(
    ("delivery", "flows", "options", "message"),
    [
        (np.ones(3), [(0, 1)], {}, r"delivery: shape \[3\]; needed is n by n, n from 2"),
        (np.ones((3, 2)), [(0, 1)], {}, r"delivery: shape \[3, 2\]"),
        ([[0, np.nan], [0, 0]], [(0, 1)], {}, r"delivery\[0\]\[1\] = nan: allowed is 0 to 1"),
        ([[0, 0.5], [-0.5, 0]], [(0, 1)], {}, r"delivery\[1\]\[0\] = -0.5: allowed is 0 to 1"),
        (GOOD, [], {}, r"flows: name one at least"),
        (GOOD, [(0, 3)], {}, r"flow \(0, 3\): node 3: allowed is 0 to 2"),
        (GOOD, [(-1, 2)], {}, r"flow \(-1, 2\): node -1: allowed is 0 to 2"),
        (GOOD, [(1, 1)], {}, r"flow \(1, 1\): source and destination must differ"),
        (GOOD, [(0, 1)], {"utility": "max"}, r"utility = 'max': allowed is \"sum\", \"log\""),
        (
            GOOD,
            [(0, 1)],
            {"conflict": "none"},
            r"conflict = 'none': allowed is \"audible\", \"shared_hearer\"",
        ),
        (GOOD, [(0, 1)], {"paths": 0}, r"paths = 0: allowed is a whole number from 1"),
        (
            np.full((60, 60), 0.5),
            [(0, 1)] * 8,
            {},
            r"flows: their links are .*: allowed are 20,000",
        ),
    ],
)
def test_invalid_programs_are_refused(delivery, flows, options, message):
    with pytest.raises(ValueError, match=message):
        mc2.optimum(delivery, flows, **options)


def test_a_mesh_with_too_many_sets_is_refused():
    # 20 pairs of nodes, in each of which either may send: 2^20 sets.
    n = 42
    delivery = np.zeros((n, n))
    for i in range(1, n - 1, 2):
        delivery[i, i + 1] = delivery[i + 1, i] = 0.5
    flows = [pair for i in range(1, n - 1, 2) for pair in ((i, i + 1), (i + 1, i))]
    with pytest.raises(ValueError, match=r"over 20,000 sets of nodes may send together"):
        mc2.optimum(delivery, flows)


def test_the_diagonal_is_ignored():
    delivery = diamond(0.5, 0.8, 2)
    np.fill_diagonal(delivery, np.nan)
    assert mc2.optimum(delivery, [(0, 3)])["total"] == pytest.approx(mc2.diamond(0.5, 0.8)["coded"])
    assert np.isnan(delivery[0, 0])
