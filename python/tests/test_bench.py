"""The scoreboard: bounds, instances, runs, table, page and floor."""

import dataclasses
import json
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ncmesh.__main__ import main
from ncmesh._ncmesh import loss_matrix
from ncmesh.bench import compare, meshes, page, schemes, table
from ncmesh.bench.air import Air
from ncmesh.bench.bound import (
    UnreachableError,
    least_load,
    least_seconds,
    least_transmissions,
    most_bps,
)
from ncmesh.bench.cliques import cliques
from ncmesh.bench.command import check_floor
from ncmesh.bench.file import FILE
from ncmesh.bench.instances import LEAST_DELIVERY, connected, group
from ncmesh.bench.layers import Limit, Stream, optimum, utility
from ncmesh.bench.stream import STREAM, offered, share_of_optimum, tree_transmissions, xi
from ncmesh.bench.tunnel import TUNNEL
from ncmesh.campaign.program import as_toml
from ncmesh.failure import FailureError, Kind

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# How they were made is in the file.
RECORDED = json.loads((Path(__file__).parent / "data" / "multicast_lp.json").read_text())["bounds"]


def mesh(name: str, link_power: str = "rayleigh") -> meshes.Mesh:
    (made,) = meshes.meshes(meshes.chosen([name]), SCENARIOS, [link_power])
    return made


def run(*arguments: object) -> int:
    return main(["bench", "mesh", "--scenarios", str(SCENARIOS), *map(str, arguments)])


# A program with a scheme of its own, which is another one by another name.
PROGRAM = """#!{python}
import json, sys, tomllib
from ncmesh import _ncmesh
words = sys.argv
if words[1] == "schemes":
    print(json.dumps([{{"name": name, "service": "file"}} for name in ("own", "cascade")]))
else:
    of = lambda option: words[words.index(option) + 1]
    assert of("--scheme") == "own"
    with open(words[2], "rb") as file:
        scenario = tomllib.load(file)
    limit = float(of("--timeout"))
    outcome = _ncmesh.simulate(scenario, int(of("--seed")), scheme="cascade", limit_s=limit)
    print(json.dumps({{**outcome, "scheme": "own"}}))
"""

PLANNER = """
from ncmesh import pacifier
def tree(loss, source, receivers):
    return pacifier.plan(loss, source, receivers)
def wrong(loss, source, receivers):
    return 1 / 0
def more(loss, source, receivers):
    return {}
"""


# ---- bounds


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda of: f"{of['mesh']}-{of['source']}")
def test_least_transmissions_are_those_of_another_implementation(recorded):
    of = mesh(recorded["mesh"])
    receivers = [of.names.index(name) for name in recorded["receivers"]]
    found = least_transmissions(of.delivery, of.names.index(recorded["source"]), receivers)
    assert found == pytest.approx(recorded["total"], rel=1e-3)
    assert found <= recorded["total"] + 1e-5


def test_least_transmissions_of_small_meshes():
    # A hop that loses half; a source that one of two relays hears.
    assert least_transmissions(np.array([[0, 0.5], [0.5, 0]]), 0, [1]) == pytest.approx(2)
    diamond = np.array([[0, 0.5, 0.5, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    assert least_transmissions(diamond, 0, [3]) == pytest.approx(1 / 0.75 + 1)


def test_goodput_is_bounded_by_the_time_that_packets_take():
    air = meshes.meshes(meshes.chosen(["line-2-0"]), SCENARIOS, ["rayleigh"])[0].air
    size = 1_000 * (air.mtu - 33)
    assert most_bps(2.5, air) == pytest.approx(8 * size / least_seconds(2.5, size, air))
    assert 1e6 < most_bps(2.5, air) < air.bit_rate / 2.5


def test_what_cannot_be_reached_has_no_bound():
    with pytest.raises(UnreachableError):
        least_transmissions(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]]), 0, [2])


def test_a_clique_bounds_what_its_nodes_send():
    of = mesh("line-6-0")
    source, receiver = 0, len(of.names) - 1
    found = cliques(of)
    conflict = (of.delivery > 0) | (of.delivery.T > 0)
    for clique in found:
        assert all(conflict[a, b] for a in clique for b in clique if a != b)
    covered = {(a, b) for clique in found for a in clique for b in clique}
    assert covered >= {(int(a), int(b)) for a, b in np.argwhere(conflict)}
    load = least_load(of.delivery, source, [receiver], found)
    total = least_transmissions(of.delivery, source, [receiver])
    # Three nodes in a row hear each other.
    assert 1 < load <= 3 < total
    everyone = [range(len(of.names))]
    assert least_load(of.delivery, source, [receiver], everyone) == pytest.approx(total, rel=1e-3)


def test_layers_reach_receivers_as_far_as_the_channel_carries_them():
    # Two receivers beside the source; frames to the second are lost half of the time.
    delivery = np.array([[0, 1, 0.5], [0, 0, 0], [0, 0, 0]])
    streams = [Stream(0, [1, 2], [2.0, 6.0])]
    found = optimum(delivery, streams, [Limit([0], 8.0)], 0.1)
    ((near, far),) = found.rates
    # A frame serves both, so the far one gets half of each packet sent to the near one.
    assert near == pytest.approx([2.0, 6.0])
    assert far == pytest.approx([1.0, 3.0])
    with_more = optimum(delivery, streams, [Limit([0], 80.0)], 0.1)
    assert with_more.rates == [[pytest.approx([2.0, 6.0])] * 2]


def test_streams_offer_shares_of_what_a_tree_carries():
    # Over a line the tree is the line: the source, and a relay for each further hop.
    line = np.diag([0.5, 0.8], 1) + np.diag([0.5, 0.8], -1)
    assert tree_transmissions(line, 0, [2]) == pytest.approx(1 / 0.5 + 1 / 0.8)
    assert tree_transmissions(line, 1, [0, 2]) == pytest.approx(1 / 0.5)
    of = mesh("line-4-20")
    (case,) = STREAM.instances(of, ["2 of 3 layers fit of 3 sources"], [1])
    streams = offered(case)
    # The mesh has one node besides the receivers.
    assert [stream.source for stream in streams] == [of.names.index(case.source)]
    (alone,) = STREAM.instances(of, ["3 of 3 layers fit"], [1])
    (stream,) = offered(alone)
    whole = 1 / (
        of.air.seconds(1000) * tree_transmissions(of.delivery, stream.source, [*stream.receivers])
    )
    assert sum(stream.layers) == pytest.approx(0.6 * whole)
    rates = [8000 * sum(stream.layers)] * len(stream.receivers)
    best = utility([sum(stream.layers)] * len(rates), xi(stream))
    assert share_of_optimum(alone, {"rates_bps": rates}, best) == pytest.approx(1)
    half = {"rates_bps": [rate / 2 for rate in rates]}
    assert share_of_optimum(alone, half, best) == pytest.approx(0.52 / 1.02)


def test_time_follows_from_the_channel():
    air = Air.of({"phy": "802.11b", "bit_rate": "11M"})
    # Preamble, DIFS, 15.5 slots, and 1,536 bytes.
    assert air.frame_s == pytest.approx(192e-6 + 50e-6 + 310e-6 + 8 * 1536 / 11e6)
    assert least_seconds(2.0, 1467 * 10, air) == pytest.approx(20 * air.frame_s)


# ---- meshes and instances


@pytest.mark.parametrize(
    "name",
    [
        "building",
        "freifunk",
        "bremen",
        "stuttgart-2",
        "grid",
        "mesh-2",
        "line-2-40",
        "hidden-3-20-54M",
        "tree-2",
        "dense-60-1",
        "clustered",
    ],
)
def test_receivers_are_reached_both_ways(name):
    of = mesh(name)
    usable = np.minimum(of.delivery, of.delivery.T) >= LEAST_DELIVERY
    for number in (1, 2, 3):
        source, receivers = group(of, "file", number, 4)
        assert len(set(receivers)) == min(4, len(connected(of.delivery)) - 1)
        assert source not in receivers
        reached, edge = set(), {of.names.index(source)}
        while edge:
            reached |= edge
            edge = {int(j) for i in edge for j in np.flatnonzero(usable[i])} - reached
        assert {of.names.index(name) for name in receivers} <= reached


def test_groups_are_drawn_from_mesh_service_and_number():
    of, other = mesh("freifunk"), mesh("freifunk", "equal")
    drawn = [group(of, "file", number, 4) for number in (1, 2, 3, 4)]
    assert drawn == [group(other, "file", number, 4) for number in (1, 2, 3, 4)]
    assert len({source for source, _ in drawn}) > 1
    assert group(of, "tunnel", 1, 1) != group(of, "stream", 1, 1)
    # The draw is the same on every machine and in every version.
    assert drawn[0] == ("l117", ["l055", "l105", "l203", "l211"])


def test_a_gateway_is_the_source_where_a_case_has_one():
    of = mesh("star-5")
    instances = TUNNEL.instances(of, ["5 TCP to one", "UDP"], range(1, 9))
    to_one = [instance for instance in instances if instance.case == "5 TCP to one"]
    assert {instance.source for instance in to_one} == {"n1"}
    assert {instance.receivers for instance in to_one} == {("n2", "n3", "n4", "n5", "n6")}
    assert len({instance.source for instance in instances if instance.case == "UDP"}) > 1
    # Clients do not hear each other.
    assert not of.delivery[1:, 1:].any()


def test_dense_meshes_are_dense_and_clusters_are_joined_by_single_links():
    for nodes in (30, 60, 100):
        neighbours = (mesh(f"dense-{nodes}-2").delivery > 0).sum() / nodes
        assert 0.3 * nodes < neighbours < 0.7 * nodes
    delivery = mesh("clustered").delivery
    part = np.arange(len(delivery)) // 12
    between = np.argwhere((delivery > 0) & (part[:, None] != part[None, :]))
    assert len(between) == 2 * 4
    # The same on every machine and in every version.
    assert delivery.sum() == pytest.approx(532.6716)


def test_a_mesh_has_other_rates_and_stays_the_same():
    slow, own, fast = (mesh(name) for name in ("building-2M", "building", "building-54M"))
    assert [of.air.bit_rate for of in (slow, own, fast)] == [2e6, 11e6, 54e6]
    assert np.array_equal(slow.delivery, own.delivery)
    assert np.array_equal(fast.delivery, own.delivery)


def test_seeds_of_draws_move_no_node():
    of = mesh("mesh-2")
    (instance,) = FILE.instances(of, ["0.5 MB to 4"], [1])
    draws = [dataclasses.replace(instance, draw=draw) for draw in range(3)]
    assert [draw.seed for draw in draws] == [1, 1001, 2001]
    matrices = [loss_matrix(of.scenario.table, draw.seed) for draw in draws]
    assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)
    assert not np.array_equal(of.delivery, mesh("mesh-1").delivery)


def test_a_mesh_that_moves_has_groups_and_no_bound(tmp_path):
    assert mesh("cars").moves
    arguments = ("--meshes", "cars", "--instances", 1, "--draws", 1, "--jobs", 1)
    more = ("--service", "tunnel", "--cases", "UDP", "--schemes", "auto", "forward")
    assert run(*arguments, *more, "--output", tmp_path) == 0
    rows = pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    assert [row["bound_bps"] for row in rows] == [None, None]
    assert "| cars | UDP | - |" in (tmp_path / "scoreboard.md").read_text()


def test_links_are_measured_as_daemons_do():
    made = meshes.meshes(meshes.chosen(["mesh-1"]), SCENARIOS, ["rayleigh", "equal"])
    # Where power follows from positions, there is one mesh.
    assert [of.link_power for of in made] == [None]
    assert not {"measure", "traffic"} & set(made[0].scenario.table)


def test_every_scheme_is_asked_for():
    assert {"cascade", "pacifier", "tree_flood"} <= set(schemes.of("file"))
    assert {"forward", "xor"} <= set(schemes.of("tunnel"))
    assert not set(schemes.of("file")) & set(schemes.of("tunnel"))
    assert schemes.default("file") == "cascade"
    assert schemes.default("stream") == "delta"
    names = ["more", "auto", "xor"]
    assert schemes.chosen("file", names) == ("cascade", "more")
    assert schemes.chosen("tunnel", names) == ("braid", "xor")


# ---- the command

ONE = (
    *("--meshes", "line-2-20", "--link-power", "rayleigh"),
    *("--instances", 1, "--draws", 1, "--jobs", 1),
)


def test_one_instance_from_end_to_end(tmp_path, capsys):
    arguments = (*ONE, "--service", "file", "tunnel", "--cases", "0.5 MB to 4", "TCP")
    names = ("--schemes", "tree_flood", "auto", "forward")
    assert run(*arguments, *names, "--output", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "line-2-20, 0.5 MB to 4, 1: n2 to n1, n3" in printed
    rows = {
        row["scheme"]: row for row in pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    }
    assert set(rows) == {"tree_flood", "cascade", "braid", "forward"}
    flood = rows["tree_flood"]
    assert flood["unfinished"] == 0
    assert 0 < flood["mean_s"] <= flood["last_s"] < 10
    assert 1 < flood["bound"] <= flood["per_packet"] < 3
    assert flood["clique_bound_s"] <= flood["bound_s"] * (1 + 1e-6)
    assert flood["data_bytes"] > 500_000 > flood["control_bytes"] > 0
    forward = rows["forward"]
    assert 100_000 < forward["goodput_bps"] < forward["clique_bound_bps"]
    assert 0 < forward["bound_bps"] <= forward["clique_bound_bps"] * (1 + 1e-6)
    text = (tmp_path / "scoreboard.md").read_text()
    assert "--schemes tree_flood auto forward" in text.replace(" \\\n  ", " ")
    for picture in ("file-0.5-mb-to-4.png", "file-means.png", "bound-0.5-mb-to-4.png"):
        assert f"(scoreboard/{picture})" in text
        assert (tmp_path / "scoreboard" / picture).stat().st_size > 1_000

    # A second command makes no run again. --figures writes the same page from the table.
    before = sorted((tmp_path / "runs").glob("*.parquet"))
    assert run(*arguments, *names, "--output", tmp_path) == 0
    assert sorted((tmp_path / "runs").glob("*.parquet")) == before
    figures = tmp_path / "scoreboard.parquet"
    assert run("--figures", figures, "--output", tmp_path / "anew") == 0
    assert (tmp_path / "anew" / "scoreboard.md").read_text() == text


def test_an_instance_is_run_with_several_seeds(tmp_path, capsys):
    cases = ("UDP", "UDP at 50 %", "5 TCP from one")
    arguments = (*ONE, "--draws", 3, "--service", "tunnel", "--cases", *cases)
    assert run(*arguments, "--schemes", "auto", "forward", "--output", tmp_path) == 0
    assert capsys.readouterr().out.count("line-2-20, UDP, 1: ") == 3
    rows = pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    assert len(rows) == 3 * 2 * 3
    assert {(row["draw"], row["seed"]) for row in rows} == {(0, 1), (1, 1001), (2, 2001)}
    # All seeds offer the same rate.
    assert len({row["rate_bps"] for row in rows if row["case"] == "UDP at 50 %"}) == 1
    shared = [row for row in rows if row["case"] == "5 TCP from one"]
    assert all(0.5 <= row["fairness"] <= 1 for row in shared)
    assert all(row["score"] <= row["goodput_bps"] / 2 * (1 + 1e-9) for row in shared)
    assert "each is run with 3 seeds" in (tmp_path / "scoreboard.md").read_text()


def test_other_loads_of_tunnels(tmp_path):
    cases = ("UDP at 50 %", "4 TCP", "20 short TCP", "ping", "ping beside UDP")
    arguments = (*ONE, "--service", "tunnel", "--cases", *cases, "--schemes", "auto", "forward")
    assert run(*arguments, "--output", tmp_path) == 0
    rows = pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    of = {(row["case"], row["scheme"]): row for row in rows}
    # The case that the rate depends on is run, too: half of the best goodput is offered to both.
    best = max(row["goodput_bps"] for row in rows if row["case"] == "UDP")
    for scheme in ("braid", "forward"):
        half = of["UDP at 50 %", scheme]
        assert half["rate_bps"] == round(best / 2)
        assert half["goodput_bps"] == pytest.approx(best / 2, rel=0.05)
        four = of["4 TCP", scheme]
        assert 0 <= four["least_bps"] < four["goodput_bps"] / 4
        assert four["bound_bps"] is None
        assert 0.05 < of["20 short TCP", scheme]["delay_s"] < 10
        idle, busy = of["ping", scheme]["delay_s"], of["ping beside UDP", scheme]["delay_s"]
        assert 0.002 < idle < busy < 2
        assert of["ping", scheme]["score"] == pytest.approx(1 / idle)
    text = (tmp_path / "scoreboard.md").read_text()
    for case in cases:
        assert f"\n| {case} | " in text
    assert sorted(file.name for file in (tmp_path / "scoreboard").iterdir()) == [
        "tunnel-means.png",
        "tunnel-udp.png",
    ]


def test_services_side_by_side(tmp_path):
    cases = ("file and ping", "all at once")
    assert run(*ONE, "--service", "mixed", "--cases", *cases, "--output", tmp_path) == 0
    rows = pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    of = {(row["case"], row["scheme"]): row for row in rows}
    assert len(of) == 2 * len(schemes.of("mixed"))
    ours = schemes.default("mixed")
    assert ours == "cascade+braid+delta"
    for (case, _), row in of.items():
        assert 1 < row["last_s"] < 300
        assert (row["goodput_bps"] is None) == (case == "file and ping") == bool(row["delay_s"])
    ping = of["file and ping", ours]
    parts = (8 * 500_000 / ping["last_s"], 1 / ping["delay_s"])
    assert ping["score"] == pytest.approx((parts[0] * parts[1]) ** 0.5)
    both = of["all at once", ours]
    assert both["goodput_bps"] > 1e5
    assert both["least_base_share"] > 0.5
    assert "## Services side by side" in (tmp_path / "scoreboard.md").read_text()
    assert all(0.3 < of["all at once", scheme]["fairness"] <= 1 for _, scheme in of)


def test_a_file_beside_another_file(tmp_path):
    args = ("--service", "mixed", "--cases", "two files", "--output", tmp_path)
    assert run(*ONE, *args) == 0
    rows = pq.read_table(tmp_path / "scoreboard.parquet").to_pylist()
    assert {row["scheme"] for row in rows} == set(schemes.of("mixed"))
    for row in rows:
        assert (row["unfinished"], row["goodput_bps"]) == (0, None)
        # The score is a geometric mean, which the slower file bounds from below.
        assert row["score"] >= 8 * 500_000 / row["last_s"]
        assert 0.5 <= row["fairness"] <= 1


def test_what_may_not_be_shipped_is_named(tmp_path, capsys):
    (tmp_path / "meshes").mkdir()
    code = main(["bench", "mesh", "--scenarios", str(tmp_path), "--meshes", "orbit"])
    error = capsys.readouterr().err.splitlines()
    assert code == Kind.USAGE
    assert "orbit is left out: meshes/orbit.csv is not in" in error[0]
    assert error[1] == "error: the data of no mesh is there"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--meshes", "moon"), 'no mesh is called "moon"; there are: building, building-rates, '),
        (("--schemes", "best"), 'no scheme is called "best"; there are: auto, cascade'),
        (("--service", "stream", "--schemes", "xor"), "none of the schemes carries any"),
        (("--cases", "9 MB"), 'no case is called "9 MB"; there are: "0.5 MB to 4"'),
        (("--figures", "none.parquet"), "none.parquet does not exist"),
        (("--figures", __file__), "is no table of the scoreboard"),
        (("--scenarios", "none"), "none is no folder"),
    ],
)
def test_wrong_input_is_told_in_a_line(tmp_path, capsys, arguments, message):
    assert run("--output", tmp_path, *arguments) == Kind.USAGE
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_help_names_cases_with_a_percent_sign(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--help")
    assert not stopped.value.code
    assert '"UDP at 90 %"' in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("arguments", [("--instances", 0), ("--floor", "x"), ("--jobs", -1)])
def test_wrong_numbers_are_told(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == Kind.USAGE
    assert "allowed is" in capsys.readouterr().err


# ---- page and floor


def row(scheme: str, number: int, last_s: float, **other: Any) -> dict[str, Any]:
    """Returns a row of the table."""
    return {
        **dict.fromkeys(table.SCHEMA.names),
        "service": "file",
        "mesh": "hill",
        "family": "hill",
        "link_power": "rayleigh",
        "case": "0.5 MB to 4",
        "instance": number,
        "source": "a",
        "receivers": ["b", "c"],
        "scheme": scheme,
        "version": "1",
        "commit": "abc",
        "score": 1 / last_s,
        "last_s": last_s,
        "mean_s": last_s,
        "unfinished": 0,
        "per_packet": 3.0,
        "bound": 2.0,
        "bound_s": 1.0,
        "clique_bound_s": 0.5,
        "control_bytes": 10,
        "data_bytes": 1e3,
        **other,
    }


ROWS = [
    row("ours", 1, 4.0),
    row("theirs", 1, 8.0),
    row("ours", 2, 10.0, unfinished=1),
    row("theirs", 2, 5.0),
]
CASES = "'0.5 MB to 4' '5 MB to 4' '0.5 MB to all' UDP TCP 'two layers to 4'"
COMMAND = f"python -m ncmesh bench mesh --cases {CASES} --instances 1"
MADE = table.Made(COMMAND, ("`orbit` is left out",), {"file": "ours"})


def test_the_page_has_every_instance(tmp_path):
    page.write(ROWS, MADE, tmp_path)
    text = (tmp_path / "scoreboard.md").read_text()
    assert "4 runs of 2 instances on 1 meshes" in text
    assert "`orbit` is left out." in text
    # 2x and 0.5x: the geometric mean is 1.
    assert "| file | 0.5 MB to 4 | `ours` | 2 | 1 | 1.00x, 0.50x | 1 |" in text
    assert "| hill, 0.5 MB to 4, 2 | a to b, c | 0.50x | `theirs` |" in text
    assert "| `ours` | 1.00x, 1 of 2 |" in text
    shown = text.split("```sh\n")[1].split("```")[0]
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(COMMAND)
    assert shown.count("\\\n") == 1
    assert not [line for line in text.splitlines() if len(line) > 100 and line[0] not in "|!"]


def test_the_floor_fails_when_the_default_is_slower(capsys):
    check_floor(ROWS, MADE.defaults, 0.5)
    with pytest.raises(FailureError, match="on 1 of 2 instances the default scheme is worse") as of:
        check_floor(ROWS, MADE.defaults, 0.9)
    assert of.value.kind == Kind.OTHER
    assert "ours 0.50x (0.50 to 0.50), hill, 0.5 MB to 4, 2" in capsys.readouterr().out
    with pytest.raises(FailureError, match="no default scheme was run beside another"):
        check_floor(ROWS, {"file": "auto"}, 0.9)


def drawn(*ratios: float) -> compare.Cell:
    """Returns an instance whose draws have these ratios of `ours` to `theirs`."""
    own = [row("ours", 2, 1.0, score=ratio) for ratio in ratios]
    (cell,) = compare.cells([*own, *(row("theirs", 2, 1.0) for _ in ratios)], "file")
    return cell


def test_an_instance_below_the_floor_counts_by_the_mean_of_its_draws(capsys):
    check_floor(ROWS, MADE.defaults, 0.9, lambda _: drawn(0.5, 1.8, 2.25))
    assert "ours 1.27x (0.17 to 9.50), hill, 0.5 MB to 4, 2" in capsys.readouterr().out
    with pytest.raises(FailureError, match="on 1 of 2 instances"):
        check_floor(ROWS, MADE.defaults, 0.9, lambda _: drawn(0.5, 0.8))


def test_chance_and_loss_are_told_apart():
    by_chance, lost = drawn(0.7, 1.1, 0.9, 1.0, 0.8), drawn(0.7, 0.72, 0.69, 0.71, 0.7)
    ratio = by_chance.against_best("ours")
    # t of four degrees of freedom; the logarithms deviate by 0.179.
    assert (ratio.mean, ratio.high / ratio.mean) == pytest.approx((0.889, 1.249), abs=2e-3)
    assert [cell for _, cell in compare.below([by_chance, lost], "ours", 0.95)] == [lost]
    # The best other one is that of all draws, not of each.
    rows = [*by_chance.rows["ours"], *by_chance.rows["theirs"]]
    rows += [row("third", 2, 1.0, score=score) for score in (5.0, 0.01, 0.01, 0.01, 0.01)]
    (cell,) = compare.cells(rows, "file")
    assert cell.best_other("ours") == "theirs"


def test_receivers_that_do_not_finish_count_as_the_limit():
    of = mesh("line-2-20")
    (instance,) = FILE.instances(of, ["0.5 MB to 4"], [1])
    found = FILE.read(instance, {"error": "n3 cannot be reached from n1"})
    assert (found["last_s"], found["mean_s"], found["unfinished"]) == (600.0, 600.0, 2)
    slow = dataclasses.replace(of, scenario=of.scenario.varied({"medium.bit_rate": "1M"}))
    (instance,) = FILE.instances(slow, ["0.5 MB to 4"], [1])
    assert FILE.read(instance, {"error": "x"})["last_s"] == pytest.approx(6_600.0)


def test_a_scheme_that_carries_nothing_has_a_ratio():
    nothing = [row("ours", 1, 1.0, score=0.0), row("theirs", 1, 1.0, score=0.0)]
    (cell,) = compare.cells(nothing, "file")
    assert cell.against_best("ours").mean == 1.0
    (cell,) = compare.cells([nothing[0], row("theirs", 1, 1.0)], "file")
    assert cell.against_best("ours").mean == pytest.approx(compare.LEAST_RATIO)
    assert cell.against_best("theirs").mean == pytest.approx(compare.MOST_RATIO)
    (cell,) = compare.cells([nothing[0]], "file")
    assert cell.against_best("ours") is None


def test_schemes_of_a_program_are_run_beside_the_others(tmp_path, capsys):
    program = tmp_path / "own"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    where = ("--output", tmp_path / "board", "--jobs", 1, "--program", program)
    what = ("--meshes", "line-2-0", "--cases", "0.5 MB to 4", "--instances", 1, "--draws", 1)
    assert run(*where, *what, "--schemes", "own", "cascade", "--link-power", "equal") == 0
    rows, _ = table.read(tmp_path / "board" / "scoreboard.parquet")
    own, cascade = sorted(rows, key=lambda row: row["scheme"] == "cascade")
    assert (own["scheme"], cascade["scheme"]) == ("own", "cascade")
    # The program got the same scenario, so the same run is in its row.
    differ = {key for key in own if own[key] != cascade[key]}
    assert differ == {"run", "scheme", "took_s"}

    assert run(*where, *what, "--schemes", "other") == Kind.USAGE
    assert "own" in capsys.readouterr().err
    assert run(*where[:-1], tmp_path / "none", *what) == Kind.FILE


def test_a_function_that_plans_is_run_beside_the_schemes(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(PLANNER)
    what = ("--meshes", "line-2-0", "--cases", "0.5 MB to 4", "--instances", 1, "--draws", 1)
    where = ("--output", tmp_path / "board", "--jobs", 1, "--link-power", "equal", "--program")
    assert run(*where, f"{file}:tree", *what, "--schemes", "tree", "pacifier") == 0
    rows, _ = table.read(tmp_path / "board" / "scoreboard.parquet")
    pacifier, tree = sorted(rows, key=lambda row: row["scheme"])
    assert (pacifier["scheme"], tree["scheme"]) == ("pacifier", "tree")
    # The function makes the same plan, and draws are others.
    assert tree["seed"] == pacifier["seed"]
    assert tree["last_s"] == pytest.approx(pacifier["last_s"], rel=0.5)

    assert run(*where, f"{file}:wrong", *what, "--schemes", "wrong") == Kind.OTHER
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert run(*where, f"{file}:missing", *what) == Kind.USAGE
    assert "it has no function missing" in capsys.readouterr().err
    assert run(*where, f"{file}:more", *what) == Kind.USAGE
    assert "rename the function" in capsys.readouterr().err
    assert run(*where, f"{tmp_path / 'none.py'}:tree", *what) == Kind.FILE


def test_a_table_is_written_as_toml():
    deep = {"a b": [1, 2.5, True, 'é"\n'], "t": {"x": [{"y": 1e-9}], "empty": {}}}
    assert tomllib.loads(as_toml(deep)) == deep
