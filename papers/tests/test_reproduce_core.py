"""Experiments on CORE's testbed: scenario, timing of generations, runs in the lab."""

import sys
from dataclasses import replace

import pytest

from ncmesh.campaign import Store
from ncmesh_papers.reproduce.claims import Spread
from ncmesh_papers.reproduce.command import FULL
from ncmesh_papers.reproduce.core import daemons, fig9, fig10, testbed
from ncmesh_papers.reproduce.experiment import Case, Rows


def test_generations_are_timed_from_end_to_end():
    # The second and the third end within one sample.
    seconds, delivered = [0.0, 1.0, 2.0, 3.0, 4.0], [0, 63, 64, 193, 255]
    assert testbed.durations(seconds, delivered) == [1.0, 0.0]
    assert testbed.durations(seconds, [0, 1, 2, 3, 4]) == []


@pytest.mark.parametrize("access", testbed.ACCESS)
def test_core_carries_most_in_the_cross(access):
    found = {scheme: testbed.run(scheme, access, 0.3, 5.0, seed=1) for scheme in testbed.SCHEMES}
    rates = {scheme: of.throughput_bps for scheme, of in found.items()}
    assert rates["core"] > 1.2 * max(rate for scheme, rate in rates.items() if scheme != "core")
    assert found["core"].transmissions < found["forwarding"].transmissions
    assert all(of.generations_s for of in found.values())


def test_the_optimum_falls_with_loss_from_the_most_that_any_scheme_reaches():
    values = {"core": 10.0, "core_no_recoding": 8.0, "cope": 12.0, "forwarding": 6.0}
    computed = {
        (scheme, "slotted", e, seed): testbed.Measured(value * (1 - e) + seed, 2.0, ())
        for scheme, value in values.items()
        for e in testbed.LOSSES
        for seed in (0, 2)
    }
    rows = Rows({}, computed)
    # Two values d apart have a standard deviation of d / sqrt 2.
    assert testbed.throughput(rows, "core", "slotted", 0.5) == Spread(
        pytest.approx(6 - 2**0.5), 6.0, pytest.approx(6 + 2**0.5), "± a standard deviation"
    )
    optimum = fig9._optimum(rows, testbed.SIMULATED[0])
    assert optimum == pytest.approx([13.0 * (1 - e) for e in testbed.LOSSES])


def test_in_the_lab_points_take_turns():
    assert daemons.lab_runs(daemons.LAB.losses, FULL) == {}
    made = daemons.lab_runs(daemons.LAB.losses, replace(FULL, lab=sys.executable))
    assert len(made) == 4 * 3 * daemons.LAB_RUNS
    assert [case.topology for case in made] == sorted(case.topology for case in made)
    run = made[Case("lab, 30% loss, forwarding", 2)]
    assert (run.scheme, run.seed, run.parameters) == ("forward", 2, {"loss": 0.3})
    assert {link["loss"] for link in run.scenario.table["link"]} == {0.3}
    # Figure 10 uses the runs of figure 9.
    of_fig10 = daemons.lab_runs((0.5,), replace(FULL, lab=sys.executable))
    assert {run.key for run in of_fig10.values()} < {run.key for run in made.values()}


LAB = """#!{python}
import json, sys, tomllib
from pathlib import Path
command, file, *rest = sys.argv[1:]
loss = tomllib.loads(Path(file).read_text())["link"][0]["loss"]
scheme = rest[rest.index("--scheme") + 1]
assert rest[rest.index("--sample") + 1] == "0.02"
carried = {{"core_nc": 4e6, "cope": 3e6, "forward": 2e6}}[scheme] * (1 - loss) / (1 + loss / 10)
flow = {{"protocol": "udp", "throughput_bps": carried / 2, "from": "s1", "to": "d1"}}
flow["seconds"] = 25.0
count = int(carried / 2e4)
samples = {{"seconds": [0.0, 1.0, 2.0], "delivered": [[0, count, 2 * count]] * 2}}
outcome = {{"flows": [flow, flow], "transmissions": 6 * count, "seconds": 26.0, "samples": samples}}
print(json.dumps(outcome))
"""


def test_lab_runs_are_judged_like_simulated_ones(tmp_path):
    program = tmp_path / "lab"
    program.write_text(LAB.format(python=sys.executable))
    program.chmod(0o755)
    scale = replace(FULL, topologies=2, lab=str(program))
    made = daemons.lab_runs(daemons.LAB.losses, scale)
    store = Store(tmp_path / "store")
    store.directory.mkdir()
    store.append([run.perform() for run in made.values()])
    kept = {row["run"]: row for row in store.table().to_pylist()}
    simulated = {
        (scheme, world.name, e, seed): testbed.Measured(1e6 * (1 - e), 2.0, (1.0, 1.1))
        for world in testbed.SIMULATED
        for scheme in world.schemes
        for e in world.losses
        for seed in (1, 2)
    }
    rows = Rows({case: kept[run.key] for case, run in made.items()}, simulated)
    found = fig9.EXPERIMENT.findings(rows, scale)
    of_lab = [row for row in found.table if row["access"] == "lab"]
    assert len(of_lab) == 4 * 3
    assert of_lab[0]["throughput_bps"] == pytest.approx(4e6)
    assert of_lab[0]["transmissions_per_packet"] == pytest.approx(1.5)
    found_in = {
        claim.text.removesuffix(", lab"): claim for claim in found.claims if "lab" in claim.text
    }
    gap = found_in["CORE is within 0.43 dB of (1 - e) s at all losses"]
    assert (gap.ours, gap.verdict) == ("at most 0.21 dB, at 50%", "agrees")
    order = found_in["CORE carries more than forwarding and COPE-like at all losses"]
    assert (order.ours, order.verdict) == ("at all 4", "agrees")
    times = fig10.EXPERIMENT.findings(Rows(rows.rows, simulated), scale)
    assert [row["generations"] for row in times.table if row["access"] == "lab"] == [4, 4, 0]
    assert (
        daemons.sizes(scale)["testbed in the lab"] == "2 runs of 25 s of each point, in real time"
    )
