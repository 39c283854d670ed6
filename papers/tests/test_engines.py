"""ncmesh's engines against the optimum that the papers' models compute."""

import math

import numpy as np
import pytest

import ncmesh
from ncmesh_papers import mc2
from ncmesh_papers.multirate import optimum
from ncmesh_papers.reproduce.mc2 import mesh
from ncmesh_papers.reproduce.mc2.mesh import Mesh, Slots

Q = 0.8


def test_two_flows_that_share_a_bottleneck_share_it_as_the_optimum_does():
    """The optimum is proportionally fair."""
    delivery = np.zeros((5, 5))
    for end, p in ((0, 0.9), (1, 0.6), (2, 0.9), (3, 0.6)):
        delivery[end, 4] = delivery[4, end] = p
    flows, slots = [(0, 2), (1, 3)], Slots(4_000, 40_000)
    best = mc2.optimum(delivery, flows, utility="log", paths=2)["rates"]
    run = Mesh("two that cross", delivery).run(flows, 2, 1, slots)
    found = [
        flow.packets_per_slot for flow in ncmesh.run(run.scenario.table, 1, scheme="mc2").flows
    ]
    assert found == pytest.approx(list(best), rel=0.1)


@pytest.mark.parametrize("p", [0.1, 0.15])
def test_a_link_that_delivers_little_is_used_as_much_as_it_can_be(p):
    """A next hop that receives one frame in ten still counts as a link."""
    diamond = mesh.diamond(p, Q)
    run = diamond.run(mesh.across(diamond), 1, 1, Slots(4_000, 40_000))
    (flow,) = ncmesh.run(run.scenario.table, 1, scheme="mc2").flows
    assert 0.9 < flow.packets_per_slot / mc2.diamond(p, Q)["single"] < 1.1


def test_rates_over_cables_are_within_a_percent_of_the_optimum():
    wires = [("s", "a", 12), ("a", "b", 6), ("a", "c", 18)]
    alone = {
        "name": "cables",
        "sealed": False,
        "medium": {"phy": "802.11a", "bit_rate": "6M"},
        "nodes": ["s", "a", "b", "c"],
        "link": [{"from": a, "to": b, "wired": True, "rate": f"{rate}M"} for a, b, rate in wires],
        "protocol": {"multirate": {"v": 400}},
    }

    def streams(*sessions):
        offered = [
            {
                "group": f"g{number}",
                "from": "s",
                "packet": 1400,
                "layers": [{"name": "all", "rate": f"{rate}M"}],
                "receivers": [{"node": node, "utility": "log"} for node in nodes],
                "warm_up_s": 60,
                "seconds": 60,
            }
            for number, (nodes, rate) in enumerate(sessions)
        ]
        return ncmesh.run({**alone, "stream": offered}, 1, scheme="multirate").streams

    # Packets that these links carry, in Mbit/s: 100 us pass before each frame.
    carried = [10.6, 5.48, 15.4]
    network = {
        "links": [
            {"from": a, "to": b, "capacity": capacity, "wireless": True}
            for (a, b, _), capacity in zip(wires, carried, strict=True)
        ],
        "sessions": [
            {
                "source": "s",
                "receivers": ["a", "b", "c"],
                "tree": [0, 1, 2],
                "rate": 8,
                "arrivals": "constant",
            },
            {"source": "s", "receivers": ["c"], "tree": [0, 2], "rate": 6, "arrivals": "constant"},
        ],
    }
    best = optimum(network, {"name": "log", "xi": 1})["utility"]
    found = streams((["a", "b", "c"], 8), (["c"], 6))
    ours = sum(
        math.log1p(receiver.rate_bps / 1e6) for stream in found for receiver in stream.receivers
    )
    assert ours == pytest.approx(best, rel=0.01)
