#!/usr/bin/env python3
"""
Makes the meshes of the scoreboard whose data may not be shipped, from files that you have.

README.md beside this script says where the files come from and what their terms are. Needs the
package ncmesh. The files that it writes are left out of the repository.

Examples:
  scenarios/meshes/convert.py orbit links.csv         # writes scenarios/meshes/orbit.csv
  scenarios/meshes/convert.py ninux netjson.json      # writes scenarios/meshes/ninux.csv

orbit: LINKS has noise_dbm, src, dst and delivery, the share of 300 broadcast frames that arrived.
  Links at NOISE_DBM are taken, loss = 1 - delivery. Nodes that no other node hears with
  LEAST_DELIVERY are left out.
ninux: a NetJSON NetworkGraph, read as every scenario's `topology.netjson`, where
  docs/reference/scenarios.md has the conversion. The largest component is kept.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

NOISE_DBM = "-10"
LEAST_DELIVERY = 0.1
HERE = Path(__file__).parent


def orbit(links: Path) -> str:
    """Returns a matrix of losses."""
    with links.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["noise_dbm"] == NOISE_DBM]
    delivery = {(row["src"], row["dst"]): float(row["delivery"]) for row in rows}
    heard = {src for (src, _), share in delivery.items() if share >= LEAST_DELIVERY}
    nodes = sorted(heard, key=int)
    lines = [f"from\\to,{','.join(f'o{int(node):02}' for node in nodes)}"]
    for src in nodes:
        shares = [delivery.get((src, dst), 0.0) for dst in nodes]
        cells = [f"{1 - share:.4g}" if share > 0 else "" for share in shares]
        lines.append(f"o{int(src):02},{','.join(cells)}")
    return "\n".join(lines) + "\n"


def ninux(graph: Path) -> str:
    """Returns a list of links."""
    import ncmesh
    from ncmesh.bench.instances import connected

    scenario = {
        "name": "ninux",
        "medium": {"phy": "802.11b", "bit_rate": "11M"},
        "topology": {"netjson": str(graph)},
    }
    loss = ncmesh.loss_matrix(scenario, 1)
    names = [node["id"] for node in json.loads(graph.read_text())["nodes"]]
    name = dict(enumerate(f"r{at:03}" for at in range(1, len(names) + 1)))
    kept = connected(1.0 - loss)
    pairs = [(a, b) for a in kept for b in kept if loss[a, b] < 1 and a != b]
    lines = [f"{name[a]},{name[b]},{loss[a, b]:.4g}" for a, b in pairs]
    return "\n".join(["from,to,loss", *lines]) + "\n"


def main() -> None:
    """Converts one file."""
    makers = {"orbit": orbit, "ninux": ninux}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    name = sys.argv[1]
    made = HERE / f"{name}.csv"
    made.write_text(makers[name](Path(sys.argv[2])))
    print(f"{made}: {len(made.read_text().splitlines()) - 1} lines")


if __name__ == "__main__":
    main()
