"""Experiments on MC2: generated and measured meshes, references, and all of them in small."""

import itertools
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import networkx as nx
import numpy as np
import pyarrow.csv
import pytest

import ncmesh
from ncmesh.campaign import Store
from ncmesh_papers import mc2, reproduce
from ncmesh_papers.__main__ import main
from ncmesh_papers.reproduce.command import FULL, QUICK
from ncmesh_papers.reproduce.experiment import Case, Rows
from ncmesh_papers.reproduce.mc2 import (
    examples,
    freifunk,
    ideal,
    mesh,
    naive,
    optimum,
    roofnet,
    setting,
    settling,
    table1,
)

SLOW, FAST = 5.5e6, 11e6
SEVERAL = [(roofnet.placed(number), roofnet.mesh(number, SLOW).delivery) for number in range(1, 11)]


def routes(delivery):
    """Return the hops of the shortest ETX routes between all pairs with a route."""
    links = np.argwhere((delivery > 0.05) & (delivery.T > 0.05))
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, 1 / (delivery[i, j] * delivery[j, i])) for i, j in links)
    paths = dict(nx.all_pairs_dijkstra_path(graph))
    return [len(path) - 1 for of in paths.values() for path in of.values() if len(path) > 1]


def ranks(values):
    return np.argsort(np.argsort(values))


# Generated meshes have Roofnet's published statistics.


def test_losses_of_generated_meshes_are_spread_evenly_without_a_threshold():
    for _, delivery in SEVERAL:
        assert delivery.shape == (38, 38)
        assert not delivery.diagonal().any()
        audible = delivery[delivery > 0]
        shares = np.histogram(audible, bins=5, range=(0, 1))[0] / len(audible)
        assert shares == pytest.approx(np.full(5, 0.2), abs=0.005)


def test_a_third_of_the_links_of_generated_meshes_is_asymmetric():
    def share(delivery):
        pairs = [(delivery[i, j], delivery[j, i]) for i, j in itertools.combinations(range(38), 2)]
        return fmean(abs(there - back) > 0.25 for there, back in pairs if there > 0 or back > 0)

    assert fmean(share(delivery) for _, delivery in SEVERAL) == pytest.approx(1 / 3, abs=0.05)


def test_routes_of_generated_meshes_are_as_long_as_roofnets():
    """Three hops on average."""
    hops = [routes(delivery) for _, delivery in SEVERAL]
    assert fmean(map(fmean, hops)) == pytest.approx(3, abs=0.3)
    assert min(map(len, hops)) > 0.9 * 38 * 37


def test_distance_tells_little_of_the_loss_in_generated_meshes():
    """For audible links; which links are audible depends on it."""
    found = []
    for placed, delivery in SEVERAL:
        audible = np.argwhere(delivery > 0)
        distances = [math.dist(placed.positions[i], placed.positions[j]) for i, j in audible]
        found.append(np.corrcoef(ranks(distances), ranks(delivery[delivery > 0]))[0, 1])
    assert -0.6 < fmean(found) < -0.2


def test_no_link_is_better_at_the_faster_rate():
    for number, (_, slow) in enumerate(SEVERAL, 1):
        fast = roofnet.mesh(number, FAST).delivery
        assert (fast <= slow).all()
        assert 0 < (fast > 0).sum() < (slow > 0).sum()


def test_generated_meshes_are_the_same_on_every_machine():
    placed = roofnet.placed(1)
    assert placed.positions[0] == pytest.approx((322.4746, 2118.5843), abs=1e-3)
    assert len({delivery.tobytes() for _, delivery in SEVERAL}) == 10


# Measured meshes.


def test_measured_meshes_are_as_the_communities_reported_them(scenarios):
    stuttgart, leipzig = (freifunk.mesh(name).delivery for name in freifunk.COMMUNITIES)
    assert (stuttgart.shape, leipzig.shape) == ((67, 67), (87, 87))
    assert stuttgart[stuttgart > 0].mean() < 0.8 < leipzig[leipzig > 0].mean()
    shipped = 1 - ncmesh.loss_matrix(scenarios / "freifunk.toml", 1)
    np.fill_diagonal(shipped, 0)
    # The scenario names the same nodes in the same order.
    assert leipzig == pytest.approx(shipped)


# References of the runs.


@pytest.mark.parametrize("example", [examples.DIAMOND, examples.HEXAGON, examples.with_relays(6)])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_closed_forms_are_those_of_the_meshes_that_are_run(example, p):
    delivery = example.mesh(p).delivery
    ends = mesh.across(example.mesh(p))
    assert ends == [(example.paths[0][0], example.paths[0][-1])]
    best = [mc2.optimum(delivery, ends, paths=k)["total"] for k in (len(example.paths), 1)]
    assert best == pytest.approx([example.formula(way, p) for way in ("coded", "single")])
    found = naive.simulate(example.mesh(p), example.paths, 10_000, 1)
    assert found == pytest.approx(example.formula("naive", p), rel=0.05)


def test_p_goes_from_1_to_a_tenth():
    assert examples.deliveries(FULL) == [round(1 - k / 10, 1) for k in range(10)]
    assert examples.deliveries(QUICK) == [1.0, 0.3]


def test_when_a_series_settles():
    assert settling.settled_after([0, 0.5, 1, 1, 1, 1]) == 2
    assert settling.settled_after([1, 1, 1, 1.2, 1, 1, 1, 1]) == 4
    assert settling.settled_after([1.0] * 4) == 0
    assert settling.smooth([0, 5, 0, 0, 5, 5, 0]) == pytest.approx([2, 3, 2])


def test_a_slot_holds_a_frame_and_a_run_its_slots():
    diamond = examples.DIAMOND.mesh(1.0)
    run = diamond.run(mesh.across(diamond), 2, 1, mesh.Slots(100, 1000))
    (flow,) = run.outcome()["flows"]
    assert flow["packets_per_slot"] == pytest.approx(flow["delivered"] / 1000, rel=1e-3)


# Flows.


def test_instances_are_a_hundred_pairs_that_reach_each_other():
    for family in (setting.GENERATED, setting.STUTTGART):
        every = setting.instances(family, 1, FULL)
        assert len(every) == 100
        assert every == setting.instances(family, 1, FULL)
        assert len({(of.number, of.flows) for of in every}) > 90
        for of in every:
            graph = nx.DiGraph(np.argwhere(of.mesh.delivery >= setting.USED).tolist())
            ((source, destination),) = of.flows
            assert nx.has_path(graph, source, destination)
            assert nx.has_path(graph, destination, source)


def test_flows_of_an_instance_differ():
    for of in setting.instances(setting.GENERATED, 4, FULL):
        assert len(set(of.flows)) == 4


def test_shares_are_of_all_values():
    share = setting.share_above(1.2)
    assert share([1.0, 1.3, 1.2, 2.0]) == 0.5
    assert share([]) == 0.0


def transfers(single_path):
    """Table 1 with a lab where everything carries 1 Mbit/s except `single_path` at 80 % loss."""
    scale = replace(FULL, lab=sys.executable)
    rows = {case: {"flows": [{"throughput_bps": 1e6}]} for case in table1.EXPERIMENT.runs(scale)}
    rows |= {
        Case("lab, 80% loss, a single path", k): {"flows": of}
        for k, of in enumerate(single_path, 1)
    }
    return table1.EXPERIMENT.findings(Rows(rows), scale)


def test_transfers_in_the_lab_that_starve_are_in_no_mean():
    found = transfers([[]] * 4 + [[{"throughput_bps": 5e5}]])
    claims = {claim.text: claim for claim in found.claims}
    assert len(claims) == 8
    assert claims["gain over a single path at 80% loss, lab (closed form +59 %)"].value == 2.0
    (row,) = (row for row in found.table if (row["runs"], row["came_to_nothing"]) == (5, 4))
    assert (row["way"], row["throughput_bps"]) == ("a single path", 5e5)
    none = {claim.text: claim for claim in transfers([[]] * 5).claims}
    assert not none["gain over a single path at 80% loss, lab (closed form +59 %)"].agrees


def test_all_of_it_is_reproduced_in_small(tmp_path, capsys):
    rows = {"mc2-fig2": 18, "mc2-fig4": 18, "mc2-fig6": 9, "mc2-fig7": 6, "mc2-fig8": 32}
    rows |= {"mc2-optimum": 20, "mc2-table1": 6}
    names = tuple(rows)
    quick = str(Path(__file__).parent / "quick")
    options = ["--quick", "--json", "--jobs", "1", "--check", quick, "--out", str(tmp_path)]
    command = ["reproduce", *names, *options]
    assert main(command) == 0
    found = {e["name"]: e["claims"] for e in json.loads(capsys.readouterr().out)["experiments"]}
    assert tuple(found) == names
    assert set(names) <= reproduce.EXPERIMENTS.keys()
    for name in found:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert pyarrow.csv.read_csv(tmp_path / f"{name}.csv").num_rows == rows[name]
    # Formulas and the optimum give the same at any scale.
    verdicts = {c["claim"]: c["verdict"] for claims in found.values() for c in claims}
    assert verdicts["gain at q = 1, p = 1e-06, n = 6"] == "agrees"
    assert verdicts["gain at q = 1 at most 1/(2p) + 1/2"] == "agrees"
    assert verdicts["C(4, 1) = 0 always"] == "agrees"
    fair = [
        verdict for claim, verdict in verdicts.items() if "at the optimum: log-utility" in claim
    ]
    assert fair == ["agrees"] * 6
    for run in Store(tmp_path / "runs").table().to_pylist():
        assert all(flow["corrupt"] == 0 for flow in run["flows"])
        assert all(flow["innovative"] <= flow["heard"] for flow in run["flows"])


# Credits alone, without an engine.


@pytest.mark.parametrize("schedule", ["best", "greedy"])
@pytest.mark.parametrize("p", [0.2, 0.5, 1.0])
def test_credits_alone_reach_the_closed_form(p, schedule):
    simple = mesh.diamond(p, 0.8)
    (rate,) = ideal.simulate(simple.delivery, mesh.across(simple), 2, 3.0, schedule, 20_000, 1)
    assert rate == pytest.approx(mc2.diamond(p, 0.8)["coded"], rel=0.03)


def test_credits_alone_never_exceed_the_optimum_in_random_meshes():
    """Up to chance: 16,000 slots carry about 4,000 packets, whose root is 1.6 %."""
    for number in (1, 2, 3):
        random = optimum.random_mesh(number)
        flow = mesh.across(random)
        best = mc2.optimum(random.delivery, flow, paths=2)["total"]
        (rate,) = ideal.simulate(random.delivery, flow, 2, 3.0, "best", 20_000, number)
        assert 0.9 * best < rate < 1.05 * best


def test_no_flow_of_the_measured_mesh_stands_still():
    """Regression: nodes that a relay cannot read but that hear the relay disturbed it."""
    slots = mesh.Slots(4_000, 10_000)
    stuttgart = setting.STUTTGART.mesh(3)
    run = stuttgart.run([(51, 3)], 2, 3, slots)
    (flow,) = ncmesh.run(run.scenario.table, 3, scheme="mc2").flows
    best = mc2.optimum(stuttgart.delivery, [(51, 3)], paths=2)["total"]
    assert flow.innovative / slots.measured > 0.5 * best


def test_a_link_that_goes_one_way_carries_a_flow():
    """Regression: its sender never hears what the next hop holds and took its queue for full."""
    delivery = np.zeros((3, 3))
    delivery[0, 1], delivery[1, 2], delivery[2, 1] = 0.9, 0.6, 0.6
    slots = mesh.Slots(1_000, 10_000)
    run = mesh.Mesh("line", delivery).run([(0, 2)], 1, 1, slots)
    (flow,) = ncmesh.run(run.scenario.table, 1, scheme="mc2").flows
    assert flow.innovative / slots.measured > 0.9 * mc2.optimum(delivery, [(0, 2)])["total"]


@pytest.mark.parametrize("name", ["random mesh 11", "grid of nine"])
def test_detours_and_early_requests_leave_nine_tenths_of_the_optimum(name):
    """Regression: a tenth of the packets took a detour in the mesh, or came twice in the grid."""
    of = next(of for of in optimum.instances(FULL) if of.mesh.name == name and of.paths == 4)
    slots = mesh.Slots(4_000, 20_000)
    run = of.mesh.run(of.flows, of.paths, of.number, slots)
    flows = ncmesh.run(run.scenario.table, of.number, scheme="mc2").flows
    utility: mc2.Utility = "log" if len(flows) > 1 else "sum"
    best = mc2.optimum(of.mesh.delivery, of.flows, utility, paths=of.paths)["rates"]
    shares = [
        flow.innovative / slots.measured / rate for flow, rate in zip(flows, best, strict=True)
    ]
    assert math.exp(fmean(map(math.log, shares))) > 0.9
