"""Experiments on TCP over coded paths: networks, metrics, and all of them in small."""

import json
import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.csv
import pytest

from ncmesh.campaign import Store
from ncmesh_papers import reproduce
from ncmesh_papers.__main__ import main
from ncmesh_papers.reproduce.command import FULL
from ncmesh_papers.reproduce.experiment import Case, Rows
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.tcp import fig6, setting
from ncmesh_papers.reproduce.tcp.metrics import coding_ratio, effect


def test_every_hop_of_a_path_is_in_range_and_the_mesh_is_as_large_as_the_papers():
    for network in (setting.ONE_FLOW, setting.FOUR_FLOWS, setting.MESH):
        for path in network.paths:
            lengths = [math.dist(network.nodes[a], network.nodes[b]) for a, b in pairwise(path)]
            assert max(lengths) < setting.RANGE_M, path
    assert len(setting.FLOOR) == 20
    assert [len(setting.parts(hops)) for hops in (2, 3, 4, 5)] == [15, 10, 5, 2]


def test_a_scenario_has_a_flow_for_each_path_and_a_route_for_each_pair():
    table = setting.FOUR_FLOWS.scenario(90.0).table
    assert [(flow["from"], flow["to"]) for flow in table["flow"]] == [
        ("a", "g"),
        ("g", "a"),
        ("b", "f"),
        ("f", "b"),
    ]
    assert sorted(map(sorted, table["protocol"]["xor"]["routes"])) == [
        [1, 3, 4, 5, 7],
        [2, 3, 4, 5, 6],
    ]


def row(bps, segments, arrived, rtt_s, coded):
    tcp = {"segments": segments, "arrived": arrived, "rtt_s": rtt_s}
    flows = [{"throughput_bps": bps, "tcp": tcp}, {"throughput_bps": bps, "tcp": tcp}]
    return {"flows": flows, "coding": [("b", {"sent": 10, "coded": coded})]}


def test_metrics_are_those_of_eq_16_to_18():
    rows = Rows(
        {
            Case("line: not coded", 1): row(100.0, 10, 8, 0.02, 0),
            Case("line: not coded", 2): row(300.0, 10, 6, 0.04, 0),
            Case("line: 1 ms", 1): row(300.0, 10, 9, 0.03, 2),
            Case("line: 1 ms", 2): row(300.0, 10, 8, None, 4),
        }
    )
    found = effect(rows, "line", "1 ms")
    assert found.gain == pytest.approx(0.5)
    # Losses of 0.3 on average became 0.15, round trips of 30 ms remained so.
    assert found.loss_reduction == pytest.approx(0.5)
    assert found.rtt_increase == pytest.approx(0.0)
    assert (found.spread.low, found.spread.high) == (pytest.approx(1.5), pytest.approx(1.5))
    assert coding_ratio(rows, "line", "1 ms", "b") == pytest.approx(0.3)


def test_in_the_lab_there_are_fewer_and_shorter_runs():
    chosen = (fig6.NETWORKS, fig6.LAB_TREATMENTS)
    assert setting.lab_runs(*chosen, FULL) == {}
    made = setting.lab_runs(*chosen, replace(FULL, lab=sys.executable))
    assert len(made) == 3 * 4 * setting.LAB_RUNS
    run = made[Case("line of 7, 2 flows, lab: 1.5 ms", 2)]
    assert isinstance(run, LabRun)
    assert [flow["seconds"] for flow in run.scenario.table["flow"]] == [setting.LAB_S] * 2
    assert run.scenario.table["protocol"]["xor"]["hold_time_s"] == 0.0015


LAB = """#!{python}
import json, sys
tcp = {{"congestion": "reno", "segments": 100, "retransmissions": 4, "arrived": 96}}
tcp |= {{"loss": 0.04, "rtt_s": 0.02}}
flow = {{"protocol": "tcp", "throughput_bps": 2e5, "from": "a", "to": "g", "tcp": tcp}}
flow |= {{"packet_bytes": 1020, "seconds": 20.0}}
coding = {{"b": {{"sent": 10, "coded": 3, "ratio": 0.3, "stopped": []}}}}
print(json.dumps({{"flows": [flow], "coding": coding, "transmissions": 300, "seconds": 20.5}}))
"""


def test_the_kernels_tcp_is_reported_like_the_simulators(tmp_path):
    program = tmp_path / "lab"
    program.write_text(LAB.format(python=sys.executable))
    program.chmod(0o755)
    made = setting.lab_runs(
        fig6.NETWORKS, [setting.BASELINE, setting.held(1.5)], replace(FULL, lab=str(program))
    )
    store = Store(tmp_path / "store")
    store.directory.mkdir()
    store.append([run.perform() for run in made.values()])
    kept = {row["run"]: row for row in store.table().to_pylist()}
    rows = Rows({case: kept[run.key] for case, run in made.items()})
    name = setting.in_lab(setting.ONE_FLOW.name)
    found = effect(rows, name, "1.5 ms")
    assert (found.gain, found.loss_reduction, found.rtt_increase) == (0.0, 0.0, 0.0)
    assert coding_ratio(rows, name, "1.5 ms", "b") == pytest.approx(0.3)
    tcp = rows.rows[Case(f"{name}: 1.5 ms", 1)]["flows"][0]["tcp"]
    assert (tcp["arrived"], tcp["loss"], tcp["rtt_s"]) == (96, pytest.approx(0.04), 0.02)


def test_all_of_it_is_reproduced_in_small(tmp_path, capsys):
    quick = str(Path(__file__).parent / "quick")
    options = ["--quick", "--json", "--jobs", "1", "--check", quick, "--out", str(tmp_path)]
    command = ["reproduce", "xor", *options]
    assert main(command) == 0
    found = {e["name"]: e for e in json.loads(capsys.readouterr().out)["experiments"]}
    assert found.keys() == {name for name in reproduce.EXPERIMENTS if name.startswith("tcp-")}
    for name, experiment in found.items():
        assert len(experiment["claims"]) >= 5, name
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert pyarrow.csv.read_csv(tmp_path / f"{name}.csv").num_rows >= 6, name
    verdicts = {c["claim"]: c["verdict"] for c in found["tcp-model"]["claims"]}
    assert verdicts["gain of TCP, eq. (14) over (15)"] == verdicts["gain of UDP"] == "agrees"
    page = (tmp_path / "tcp.md").read_text()
    assert "Scale quick: 3 runs of 5 s;" in " ".join(page.split())
    # No packet is corrupt, and only treatments that allow coding have coded packets.
    for run in Store(tmp_path / "runs").table().to_pylist():
        assert all(flow["corrupt"] == 0 for flow in run["flows"])
        coded = sum(counts["coded"] for _, counts in run["coding"])
        treatment = json.loads(run["parameters"])["treatment"]
        assert coded == 0 or ("held only" not in treatment and treatment != setting.NOT_CODED)
