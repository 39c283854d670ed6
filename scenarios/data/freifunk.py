#!/usr/bin/env python3
"""Makes the losses of a Freifunk community and a scenario of its nodes from two batman-adv tables.

Usage: freifunk.py Leipzig[/PLACE] LINKS.csv LOSSES.csv [NODES.csv SCENARIO.toml]

LINKS has src, dst, tq (0 to 1, one line per direction of a Wi-Fi link). NODES has id, lat, lon.

- The largest connected component is kept, or the one at this place by size. Its nodes are named
  by the community's letter and their id in the table, as in l002.
- TQ is taken as delivery probability: loss = 1 - tq. batman-adv derives it from the share of
  broadcast originator messages that a neighbour echoes, scaled down if the link back is bad. On
  asymmetric links it therefore understates delivery. It was measured at the low broadcast rate.
- If two nodes share several links (several radios), the best counts.
- Positions are metres east and north of the component's mean position, if they are known.
"""

import csv
import math
import os
import sys
from collections import defaultdict
from datetime import date

# Days of the snapshots.
DATES = {
    "Leipzig": date(2020, 3, 3),
    "Stuttgart": date(2020, 3, 3),
    "Aachen": date(2020, 5, 13),
    "Bremen": date(2020, 5, 13),
}

SCENARIO = """\
# The largest Wi-Fi component of Freifunk {community} on {date}. data/README.md and
# data/freifunk.py have source, licence and conversion.
name = "freifunk"
description = "Freifunk {community}, {count} routers of a community network, losses by batman-adv"

[medium]
phy = "802.11b"
bit_rate = "11M"

[topology]
links = "data/{losses}"

[traffic]
from = "{source}"
to = [{receivers}]
size = "1M"
"""


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def component(delivery, place):
    """Returns the nodes of the component at this place by size, 1 for the largest."""
    near = defaultdict(set)
    for a, b in delivery:
        near[a].add(b)
        near[b].add(a)
    left, found = set(near), []
    while left:
        reached, edge = set(), {min(left)}
        while edge:
            reached |= edge
            edge = {b for a in edge for b in near[a]} - reached
        left -= reached
        found.append(reached)
    found.sort(key=len, reverse=True)
    return sorted(found[place - 1], key=int)


def hops(delivery, nodes, source):
    """Returns hops of the shortest ETX path to each node reached both ways (Bellman and Ford)."""
    best = {source: (0.0, 0)}
    for _ in nodes:
        for (a, b), p in delivery.items():
            back = delivery.get((b, a), 0.0)
            if a in best and p * back > 0:
                way = (best[a][0] + 1 / (p * back), best[a][1] + 1)
                if b not in best or way < best[b]:
                    best[b] = way
    return {node: count for node, (_, count) in best.items()}


def receivers(delivery, nodes, source):
    """The first node at each distance of 1, 2, 4 and the most hops."""
    count = hops(delivery, nodes, source)
    wanted = [1, 2, 4, max(count.values())]
    return [next(node for node in nodes if count.get(node) == distance) for distance in wanted]


def positions(rows, nodes):
    known = {r["id"]: (float(r["lat"]), float(r["lon"])) for r in rows if r["lat"]}
    known = {node: known[node] for node in nodes if node in known}
    lat0 = sum(lat for lat, _ in known.values()) / len(known)
    lon0 = sum(lon for _, lon in known.values()) / len(known)
    metres = 6_371_000 * math.pi / 180
    east = metres * math.cos(math.radians(lat0))
    return {n: ((lon - lon0) * east, (lat - lat0) * metres) for n, (lat, lon) in known.items()}


def read_delivery(links_path):
    delivery = {}
    for row in read(links_path):
        ends = row["src"], row["dst"]
        delivery[ends] = max(delivery.get(ends, 0.0), float(row["tq"]))
    return delivery


def write_losses(community, delivery, name, losses_path):
    with open(losses_path, "w") as file:
        file.write(
            f"# Freifunk {community}, {DATES[community]}. "
            "Licence (MIT) and source: README.md here.\n"
            "from,to,loss\n"
        )
        for (a, b), p in sorted(
            delivery.items(), key=lambda item: (int(item[0][0]), int(item[0][1]))
        ):
            if a in name and p > 0:
                file.write(f"{name[a]},{name[b]},{round(1 - p, 4):g}\n")


def write_scenario(community, delivery, name, losses_path, nodes_path, scenario_path):
    nodes = list(name)
    source = min(
        nodes,
        key=lambda node: (
            -len(hops(delivery, nodes, node)),
            -max(hops(delivery, nodes, node).values()),
            int(node),
        ),
    )
    targets = ", ".join(f'"{name[node]}"' for node in receivers(delivery, nodes, source))
    place = positions(read(nodes_path), nodes)
    losses = os.path.basename(losses_path)
    with open(scenario_path, "w") as file:
        file.write(
            SCENARIO.format(
                community=community,
                date=f"{DATES[community]:%-d %B %Y}",
                count=len(nodes),
                losses=losses,
                source=name[source],
                receivers=targets,
            )
        )
        for node in nodes:
            file.write(f'\n[[node]]\nname = "{name[node]}"\n')
            if node in place:
                file.write(f"x = {place[node][0]:.1f}\ny = {place[node][1]:.1f}\n")


def main(community, links_path, losses_path, nodes_path=None, scenario_path=None):
    delivery = read_delivery(links_path)
    community, _, place = community.partition("/")
    nodes = component(delivery, int(place or 1))
    name = {node: f"{community[0].lower()}{int(node):03d}" for node in nodes}
    write_losses(community, delivery, name, losses_path)
    if scenario_path:
        write_scenario(community, delivery, name, losses_path, nodes_path, scenario_path)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
