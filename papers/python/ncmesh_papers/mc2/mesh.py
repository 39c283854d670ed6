"""A mesh as a matrix of delivery probabilities: links, paths and conflicts."""

import itertools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import networkx as nx

Matrix = NDArray[np.float64]
Flow = tuple[int, int]
Link = tuple[int, int]

Conflict = Literal["audible", "shared_hearer"]
"""
Nodes that may not send in one slot: two of which either hears the other, or also two that a third
hears.
"""

MOST_SETS = 20_000
"""Limit of the sets of nodes that may send together. More make a program of minutes."""

HOP_COST = 1e-12
"""Cost of a hop: among paths with the same product of deliveries the shorter one is better."""


def best_paths(delivery: ArrayLike, source: int, destination: int, k: int) -> list[list[int]]:
    """
    Find the `k` loop-free paths with the highest product of deliveries, best first (3.1).

    `delivery` is that of `optimum`. A path is a list of nodes from `source` to `destination`. The
    list is shorter than `k` where the mesh has fewer paths, and empty if there is none.

    Raises `ValueError` as `optimum` does.
    """
    links = checked_delivery(delivery)
    [(source, destination)] = checked_flows([(source, destination)], len(links))
    return _best_paths(links, source, destination, checked_paths(k))


def _best_paths(delivery: Matrix, source: int, destination: int, k: int) -> list[list[int]]:
    import networkx as nx  # Imported when needed: networkx takes a second.

    graph = _graph(delivery)
    if not nx.has_path(graph, source, destination):
        return []
    paths = nx.shortest_simple_paths(graph, source, destination, weight="cost")
    return list(itertools.islice(paths, k))


def links_of(delivery: Matrix, flow: Flow, paths: int | None) -> list[Link]:
    """Return all links that may carry the flow, or only those of its best `paths` paths."""
    source, destination = flow
    if paths is not None:
        best = _best_paths(delivery, source, destination, paths)
        return sorted({link for path in best for link in itertools.pairwise(path)})
    import networkx as nx  # Imported when needed: networkx takes a second.

    graph = _graph(delivery)
    graph.remove_edges_from([*graph.in_edges(source), *graph.out_edges(destination)])
    useful = {source, *nx.descendants(graph, source)} & {
        destination,
        *nx.ancestors(graph, destination),
    }
    return sorted((i, j) for i, j in graph.edges if i in useful and j in useful)


def independent_sets(
    delivery: Matrix, senders: Iterable[int], conflict: Conflict
) -> list[list[int]]:
    """Return the maximal sets of `senders` without conflicts; `ValueError` for too many."""
    import networkx as nx  # Imported when needed: networkx takes a second.

    together = nx.Graph()
    together.add_nodes_from(senders)
    apart = conflicts(delivery, conflict)
    pairs = itertools.combinations(together.nodes, 2)
    together.add_edges_from((i, j) for i, j in pairs if not apart[i, j])
    sets = list(itertools.islice(nx.find_cliques(together), MOST_SETS + 1))
    if len(sets) > MOST_SETS:
        raise ValueError(
            f"delivery: over {MOST_SETS:,} sets of nodes may send together, too many for the "
            "optimum; restrict paths, or leave out nodes"
        )
    return [sorted(nodes) for nodes in sets]


def conflicts(delivery: Matrix, conflict: Conflict) -> NDArray[np.bool_]:
    """Return for each pair of nodes whether they may not send in the same slot."""
    hears = delivery > 0
    audible = hears | hears.T
    if conflict == "audible":
        return audible
    shared = hears.astype(np.int64) @ hears.T.astype(np.int64) > 0
    return audible | shared


def checked_delivery(given: ArrayLike) -> Matrix:
    """Return the matrix with a zero diagonal; `ValueError` for entries outside 0 to 1."""
    delivery = np.array(given, dtype=np.float64)
    if delivery.ndim != 2 or delivery.shape[0] != delivery.shape[1] or len(delivery) < 2:
        raise ValueError(f"delivery: shape {list(delivery.shape)}; needed is n by n, n from 2")
    np.fill_diagonal(delivery, 0.0)
    wrong = np.argwhere(~((delivery >= 0) & (delivery <= 1)))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(f"delivery[{i}][{j}] = {delivery[i, j]:g}: allowed is 0 to 1")
    return delivery


def checked_flows(given: Iterable[Flow], nodes: int) -> list[Flow]:
    """Return flows as pairs of integers; `ValueError` for an unknown node or equal ends."""
    flows = [(operator.index(source), operator.index(destination)) for source, destination in given]
    for flow in flows:
        for node in flow:
            if not 0 <= node < nodes:
                raise ValueError(f"flow {flow}: node {node}: allowed is 0 to {nodes - 1}")
        if flow[0] == flow[1]:
            raise ValueError(f"flow {flow}: source and destination must differ")
    if not flows:
        raise ValueError("flows: name one at least")
    return flows


def checked_paths(given: int) -> int:
    """Return a number of paths; `ValueError` if it is below 1."""
    paths = operator.index(given)
    if paths < 1:
        raise ValueError(f"paths = {paths}: allowed is a whole number from 1")
    return paths


def _graph(delivery: Matrix) -> "nx.DiGraph":
    """Return the links as a directed graph with costs that add up along a path."""
    import networkx as nx  # Imported when needed: networkx takes a second.

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(delivery)))
    for i, j in np.argwhere(delivery > 0).tolist():
        graph.add_edge(i, j, cost=HOP_COST - np.log(delivery[i, j]))
    return graph
