"""
Meshes as graphs of NetworkX, and as GraphML files.

A node of a graph is a node of the mesh; its attributes `x`, `y`, `z` are its position in metres.
An edge is a link; its attribute `loss`, 0 to 1, is the share of frames it loses. A directed edge is
one direction, an undirected edge both. On several channels the attribute `channels` has the names
of those that join the two nodes, divided by commas, and `loss` is that of the best. Needs the extra
`networkx`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncmesh import _ncmesh, extras
from ncmesh.result import Scenario

MEDIUM = {"phy": "802.11b", "bit_rate": "11M"}
"""The medium of a mesh that says nothing of it."""

LONGEST_FILE = 64 << 20
"""Longest GraphML file that is read, bytes: as long as other files of a topology."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")


def to_networkx(scenario: Scenario, seed: int | None = None) -> Any:  # noqa: ANN401 (no types)
    """
    Return the mesh of a scenario as a `networkx.DiGraph`.

    Losses are those of frames of full length without interference, also where a scenario has a
    propagation model instead; `seed` draws its fading and placement. Raises `ScenarioError` for a
    wrong scenario, `MissingExtraError` without NetworkX.
    """
    graph = extras.load("networkx").DiGraph()
    nodes, links = _ncmesh.mesh(scenario, seed)
    names = [name for name, _ in nodes]
    for name, position in nodes:
        graph.add_node(name, **(dict(zip("xyz", position, strict=True)) if position else {}))
    for a, b, loss, channels in links:
        on = {"channels": ",".join(channels)} if channels else {}
        graph.add_edge(names[a], names[b], loss=loss, **on)
    return graph


def from_networkx(
    graph: Any,  # noqa: ANN401 (no types)
    *,
    loss: float | None = None,
    **tables: Any,  # noqa: ANN401 (tables of a scenario)
) -> dict[str, Any]:
    """
    Return a scenario, as a dict, with the nodes and links of a graph of NetworkX.

    A node's name is its attribute `name` or `label`, or else the node as text. Its position is `x`,
    `y` and `z`, or NetworkX's `pos`, m. `loss` counts for edges without the attribute; `channels`
    is ignored, since all links are on one channel then. `tables` are the rest of the scenario, as
    in `traffic={"from": "a", "to": ["b"], "size": "1MB"}`; without `medium` it is `MEDIUM`, without
    `name` the graph's.

    Raises `ValueError` for names that nodes may not have or that two nodes have, parallel edges, an
    edge from a node to itself, an edge without loss, and a loss or position that is no such number.
    """
    if graph.is_multigraph() and any(len(graph[a][b]) > 1 for a, b in graph.edges()):
        raise ValueError("graph: parallel edges; a mesh has at most one link from node to node")
    names = {node: _name(node, values) for node, values in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        twice = next(n for n in names.values() if list(names.values()).count(n) > 1)
        raise ValueError(f"graph: two nodes are called {twice}")

    # A scenario lists a pair of nodes once, with the loss of each direction; 1 is no link.
    losses: dict[tuple[str, str], float] = {}
    for a, b, values in graph.edges(data=True):
        if a == b:
            raise ValueError(f"graph: an edge from {names[a]} to itself")
        lost = _loss(f"{names[a]} - {names[b]}", values.get("loss", loss))
        losses[names[a], names[b]] = lost
        if not graph.is_directed():
            losses[names[b], names[a]] = lost
    links = [
        {"from": a, "to": b, "loss": lost, "loss_back": losses.get((b, a), 1.0)}
        for (a, b), lost in losses.items()
        if a < b or (b, a) not in losses
    ]
    nodes = [
        {"name": names[node], **_position(names[node], values)}
        for node, values in graph.nodes(data=True)
    ]
    own = {"name": str(graph.name or "graph"), "medium": dict(MEDIUM)}
    return {**own, **tables, "node": nodes, "link": links}


def read_graphml(
    path: str | os.PathLike[str],
    *,
    loss: float | None = None,
    **tables: Any,  # noqa: ANN401 (tables of a scenario)
) -> dict[str, Any]:
    """
    Return a scenario with the mesh of a GraphML file; arguments are those of `from_networkx`.

    Raises `OSError` if the file cannot be read, and `ValueError`, which names the file, if it is
    longer than `LONGEST_FILE`, no GraphML, or holds no mesh.
    """
    networkx = extras.load("networkx")
    with Path(path).open("rb") as file:
        text = file.read(LONGEST_FILE + 1)
    try:
        if len(text) > LONGEST_FILE:
            raise ValueError(f"longer than {LONGEST_FILE} bytes")
        graph = networkx.parse_graphml(text.decode("utf-8-sig"))
        return from_networkx(graph, loss=loss, **tables)
    except networkx.NetworkXError as error:
        raise ValueError(f"{path}: {error}") from error
    except (ValueError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        # A parser's error in XML is a SyntaxError; in GraphML it is any of these.
        raise ValueError(f"{path}: no mesh in GraphML: {error}") from error


def write_graphml(
    scenario: Scenario, path: str | os.PathLike[str], seed: int | None = None
) -> None:
    """
    Write the mesh of a scenario as a GraphML file, with positions and losses.

    `read_graphml` returns the same mesh by name. Errors are those of `to_networkx`, and `OSError`.
    """
    extras.load("networkx").write_graphml(to_networkx(scenario, seed), Path(path))


def _name(node: object, values: Mapping[str, Any]) -> str:
    name = str(values.get("name", values.get("label", node)))
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"graph: a node called {name!r}: allowed are 1 to 63 letters, digits, '.', '_', '-'"
        )
    return name


def _loss(edge: str, loss: Any) -> float:  # noqa: ANN401 (an attribute)
    if loss is None:
        raise ValueError(f"graph: {edge} has no `loss`; give edges one, or the argument `loss`")
    return _number(f"{edge}: loss", loss, 0.0, 1.0)


def _position(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    pos = values.get("pos", ())
    given = {**dict(zip("xyz", pos, strict=False)), **{k: values[k] for k in "xyz" if k in values}}
    if given and not {"x", "y"} <= given.keys():
        raise ValueError(f"graph: {name} has a position without `x` or `y`")
    return {axis: _number(f"{name}: {axis}", at, -1e9, 1e9) for axis, at in given.items()}


def _number(what: str, value: Any, low: float, high: float) -> float:  # noqa: ANN401 (any)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not low <= number <= high:
        raise ValueError(f"graph: {what} = {value!r}: allowed is {low:g} to {high:g}")
    return number
