"""Meshes as graphs of NetworkX and as GraphML files."""

import math
import sys

import networkx as nx
import numpy as np
import pytest

import ncmesh
from ncmesh import graph


def same(a, b):
    assert dict(a.nodes(data=True)) == dict(b.nodes(data=True))
    assert {(x, y): p for x, y, p in a.edges(data="loss")} == {
        (x, y): p for x, y, p in b.edges(data="loss")
    }


@pytest.mark.parametrize("name", ["diamond", "building", "freifunk", "mesh"])
def test_a_shipped_mesh_survives_the_file(name, tmp_path):
    first = graph.to_networkx(name)
    graph.write_graphml(name, tmp_path / "mesh.graphml")
    again = graph.to_networkx(graph.read_graphml(tmp_path / "mesh.graphml"))
    same(first, again)
    assert name != "mesh" or all("x" in values for _, values in again.nodes(data=True))


def test_losses_are_those_of_the_scenario(diamond):
    of = graph.to_networkx(diamond)
    assert of.edges["s", "r1"]["loss"] == of.edges["r1", "s"]["loss"] == 0.5
    matrix = ncmesh.loss_matrix(diamond)
    names = list(of)
    for a, b, loss in of.edges(data="loss"):
        assert matrix[names.index(a), names.index(b)] == loss


def test_a_graph_carries_a_file():
    mesh = nx.grid_2d_graph(3, 2)
    mesh = nx.relabel_nodes(mesh, {at: f"n{at[0]}{at[1]}" for at in mesh})
    traffic = {"from": "n00", "to": ["n21"], "size": 20_000}
    result = ncmesh.run(graph.from_networkx(mesh, loss=0.2, traffic=traffic))
    assert result.receivers[0].verified
    assert result.scenario == "graph"


def test_one_way_links_and_positions_stay():
    mesh = nx.DiGraph(name="one-way")
    mesh.add_node(1, label="a", pos=np.array([1.0, 2.5]))
    mesh.add_node(2, name="b", x=3, y=4, z=5)
    mesh.add_edge(1, 2, loss=np.float64(0.25))
    of = graph.to_networkx(graph.from_networkx(mesh))
    assert dict(of.nodes(data=True)) == {
        "a": {"x": 1.0, "y": 2.5, "z": 0.0},
        "b": {"x": 3.0, "y": 4.0, "z": 5.0},
    }
    assert list(of.edges(data="loss")) == [("a", "b", 0.25)]


def edge(**values):
    return nx.Graph([("a", "b", values)])


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (edge(), "a - b has no `loss`"),
        (edge(loss=math.nan), "a - b: loss = nan: allowed is 0 to 1"),
        (edge(loss=1.5), "allowed is 0 to 1"),
        (edge(loss="much"), "loss = 'much'"),
        (nx.Graph([("a", "a", {"loss": 0})]), "an edge from a to itself"),
        (nx.MultiGraph([("a", "b", {"loss": 0}), ("a", "b", {"loss": 0})]), "parallel edges"),
        (nx.Graph([("<b>", "b", {"loss": 0})]), "a node called '<b>'"),
        (nx.Graph([(1, "1", {"loss": 0})]), "two nodes are called 1"),
    ],
)
def test_a_graph_that_is_no_mesh_says_why(mesh, message):
    with pytest.raises(ValueError, match=message):
        graph.from_networkx(mesh)


def test_half_a_position_is_none():
    mesh = edge(loss=0)
    mesh.add_node("a", x=1)
    with pytest.raises(ValueError, match="a has a position without"):
        graph.from_networkx(mesh)
    mesh.add_node("a", y=math.inf)
    with pytest.raises(ValueError, match="a: y = inf"):
        graph.from_networkx(mesh)


def test_every_cut_of_a_file_is_an_error(diamond, tmp_path):
    file = tmp_path / "mesh.graphml"
    graph.write_graphml(diamond, file)
    whole = file.read_bytes()
    for end in range(0, len(whole) - 10, 37):
        file.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"mesh\.graphml: no mesh in GraphML"):
            graph.read_graphml(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"mesh\.graphml"):
        graph.read_graphml(file)
    with pytest.raises(FileNotFoundError):
        graph.read_graphml(tmp_path / "none.graphml")


def test_a_file_that_is_too_long_is_not_parsed(diamond, tmp_path, monkeypatch):
    file = tmp_path / "mesh.graphml"
    graph.write_graphml(diamond, file)
    monkeypatch.setattr(graph, "LONGEST_FILE", 100)
    with pytest.raises(ValueError, match="longer than 100 bytes"):
        graph.read_graphml(file)


def test_without_networkx_the_extra_is_named(diamond, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ncmesh.MissingExtraError, match=r"pip install 'ncmesh\[networkx\]'"):
        graph.to_networkx(diamond)
