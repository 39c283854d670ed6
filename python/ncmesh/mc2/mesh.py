"""A mesh as a matrix of delivery probabilities: links and paths of a flow, and who may send together."""

import itertools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncmesh.extra import load

if TYPE_CHECKING:
    import networkx as nx

Matrix = NDArray[np.float64]
Flow = tuple[int, int]
Link = tuple[int, int]

Conflict = Literal["audible", "shared_hearer"]
"""Who may not send in one slot: two nodes of which either hears the other; or also two that a third hears."""

MOST_SETS = 20_000
"""More sets of nodes that may send together make a program of minutes."""

HOP_COST = 1e-12
"""Of paths with the same product of deliveries, up to rounding, the one of fewer hops is better."""


def best_paths(delivery: ArrayLike, source: int, destination: int, k: int) -> list[list[int]]:
    """
    Find the `k` loop-free paths of the highest product of delivery probabilities, the best first (3.1).

    `delivery` is as with `optimum`. Each path is a list of nodes from `source` to `destination`. There are
    fewer than `k` where the mesh has no more; none if no path leads there.

    Raises `ValueError` as `optimum` does, `ImportError` without the extra `analysis`.
    """
    links = checked_delivery(delivery)
    [(source, destination)] = checked_flows([(source, destination)], len(links))
    return _best_paths(links, source, destination, checked_paths(k))


def _best_paths(delivery: Matrix, source: int, destination: int, k: int) -> list[list[int]]:
    nx = load("networkx")
    graph = _graph(delivery)
    if not nx.has_path(graph, source, destination):
        return []
    paths = nx.shortest_simple_paths(graph, source, destination, weight="cost")
    return list(itertools.islice(paths, k))


def links_of(delivery: Matrix, flow: Flow, paths: int | None) -> list[Link]:
    """All links over which packets of the flow may go on, or only those of its best `paths` paths."""
    source, destination = flow
    if paths is not None:
        best = _best_paths(delivery, source, destination, paths)
        return sorted({link for path in best for link in itertools.pairwise(path)})
    nx = load("networkx")
    graph = _graph(delivery)
    graph.remove_edges_from([*graph.in_edges(source), *graph.out_edges(destination)])
    useful = {source, *nx.descendants(graph, source)} & {destination, *nx.ancestors(graph, destination)}
    return sorted((i, j) for i, j in graph.edges if i in useful and j in useful)


def independent_sets(delivery: Matrix, senders: Iterable[int], conflict: Conflict) -> list[list[int]]:
    """The maximal sets of `senders` of which no two conflict; `ValueError` if there are too many."""
    nx = load("networkx")
    together = nx.Graph()
    together.add_nodes_from(senders)
    apart = conflicts(delivery, conflict)
    pairs = itertools.combinations(together.nodes, 2)
    together.add_edges_from((i, j) for i, j in pairs if not apart[i, j])
    sets = list(itertools.islice(nx.find_cliques(together), MOST_SETS + 1))
    if len(sets) > MOST_SETS:
        raise ValueError(
            f"delivery: over {MOST_SETS:,} sets of nodes may send together, too many for the optimum; "
            "restrict paths, or leave out nodes"
        )
    return [sorted(nodes) for nodes in sets]


def conflicts(delivery: Matrix, conflict: Conflict) -> NDArray[np.bool_]:
    """Which two nodes may not send in the same slot."""
    hears = delivery > 0
    audible = hears | hears.T
    if conflict == "audible":
        return audible
    shared = hears.astype(np.int64) @ hears.T.astype(np.int64) > 0
    return audible | shared


def checked_delivery(given: ArrayLike) -> Matrix:
    """The matrix with 0 on its diagonal; `ValueError` if it is none of delivery probabilities."""
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
    """Flows as pairs of plain integers; `ValueError` if a node is none, or both are the same."""
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
    """A number of paths; `ValueError` if it is none."""
    paths = operator.index(given)
    if paths < 1:
        raise ValueError(f"paths = {paths}: allowed is a whole number from 1")
    return paths


def _graph(delivery: Matrix) -> "nx.DiGraph":
    """The links as a directed graph, at costs that add up along a path."""
    graph = load("networkx").DiGraph()
    graph.add_nodes_from(range(len(delivery)))
    for i, j in np.argwhere(delivery > 0).tolist():
        graph.add_edge(i, j, cost=HOP_COST - np.log(delivery[i, j]))
    return graph
