"""The scoreboard's optimum of layers is that of the paper's problem, on wired trees."""

import random

import numpy as np
import pytest

from ncmesh.bench.layers import Limit, Stream, optimum
from ncmesh_papers.multirate import optimum as of_trees

XI = 0.2
LAYERS = (0.5, 0.4, 0.6)


def tree(seed):
    """A tree of seven nodes with a receiver at each leaf: links with capacities, and receivers."""
    draw = random.Random(seed)
    links = [
        {"from": str(draw.randrange(node)), "to": str(node), "capacity": draw.uniform(0.2, 2.0)}
        for node in range(1, 7)
    ]
    inner = {link["from"] for link in links}
    return links, [str(node) for node in range(1, 7) if str(node) not in inner]


@pytest.mark.parametrize("seed", range(5))
def test_layers_over_wired_trees_are_those_of_the_papers_problem(seed):
    links, receivers = tree(seed)
    session = {
        "source": "0",
        "rate": sum(LAYERS),
        "receivers": receivers,
        "tree": list(range(len(links))),
    }
    network = {"links": links, "sessions": [session]}
    (rates,) = of_trees(network, {"name": "log", "xi": XI})["rates"]

    # A wire is a node of its own between the two that it joins, with one neighbour; only wires have
    # a limit.
    delivery = np.zeros((7 + len(links),) * 2)
    for wire, link in enumerate(links, start=7):
        delivery[int(link["from"]), wire] = 1.0
        delivery[wire, int(link["to"])] = 1.0
    limits = [Limit([wire], link["capacity"]) for wire, link in enumerate(links, start=7)]
    found = optimum(delivery, [Stream(0, [int(r) for r in receivers], LAYERS)], limits, XI)
    (layers,) = found.rates
    assert [sum(of) for of in layers] == pytest.approx(list(rates.values()), abs=0.12)
    best = sum(np.log(XI + rate) for rate in rates.values())
    assert best - 1e-4 <= found.utility <= best + 0.01 * len(receivers)
    for of in layers:
        # No layer before the one below it is whole, in shares.
        assert all(of[n] / LAYERS[n] <= of[n - 1] / LAYERS[n - 1] + 1e-6 for n in (1, 2))
