"""Processor time of the lab's daemons: its parts, and the claims about it."""

import re
import sys
from dataclasses import replace

import pytest

from ncmesh.campaign import Store
from ncmesh.failure import FailureError
from ncmesh_papers.reproduce.command import FULL
from ncmesh_papers.reproduce.experiment import Case, Rows
from ncmesh_papers.reproduce.lab import LabRun
from ncmesh_papers.reproduce.multirate import fig6_cpu, mesh
from ncmesh_papers.reproduce.multirate.fig6_cpu import (
    IO,
    MESSAGES,
    OFFERED_BPS,
    PARTS,
    QUEUES,
    SEALING,
)
from ncmesh_papers.reproduce.profiled import REST, Part, ProfiledRun, Sample, samples, shares

# As `perf script` prints them: two daemons, and the lab itself.
SCRIPT = """31
\tffffffff81a83bef security_inode_create
\tffffffff82000130 entry_SYSCALL_64_after_hwframe
\t           f8090 __libc_sendto
\t          4b5896 ncmesh_node::etherd::client::EtherClient::send::{{closure}}
\tffffffffffffffff [unknown]

31
\t          4b5896 chacha20::backends::avx2::inner
\t          4b5897 ncmesh_wire::seal::Sealer::seal
\t          4b5898 ncmesh_node::daemon::serve::{{closure}}

32
\t           f8090 malloc
\t          4b5896 ncmesh_engine_multirate::session::Session::replicate
\t          4b5898 ncmesh_node::daemon::serve::{{closure}}

32
\t          4b5896 ncmesh_engine_multirate::hearing::<impl Multirate>::hear_report
\t          4b5898 ncmesh_node::daemon::serve::{{closure}}

32
\t          4b5897 <ncmesh_engine_file::FileMulticast<S> as ncmesh_engine::FileEngine>::offer

30
\t          4b5897 ncmesh_lab::streams::source::Source::run

"""


def test_samples_are_read_and_counted_for_daemons_only():
    found = list(samples(SCRIPT))
    assert [sample.process for sample in found] == ["31", "31", "32", "32", "32", "30"]
    assert [sample.in_kernel for sample in found] == [True] + [False] * 5
    assert found[2].stack[0] == "malloc"
    of_daemons = shares(iter(found), PARTS, IO)
    assert of_daemons == {
        part: pytest.approx(0.2) for part in (SEALING, MESSAGES, QUEUES, IO, REST)
    }
    assert list(samples("")) == []
    assert shares(iter([Sample("1", ["main"], False)]), PARTS, IO) == {}


def test_runs_under_perf_are_other_runs():
    scenario = mesh.two_streams("a", 1.0)
    plain = LabRun(scenario, "multirate", 1, program=sys.executable)
    run = ProfiledRun(scenario, "multirate", 1, program=sys.executable, parts=PARTS, system=IO)
    divided = replace(run, parts=(Part(QUEUES, re.compile("multirate")),))
    assert len({plain.key, run.key, divided.key}) == 3
    assert run.key == replace(run).key


LAB = """#!{python}
import json, sys, tomllib
from pathlib import Path
table = tomllib.loads(Path(sys.argv[2]).read_text())
sent = table["stream"][0]["layers"][0]["rate"]
rates = {{"bob": 14e6 if sent < 2e7 else 1.8e7, "carol": 4e6, "dave": 1.7e6, "erin": 1.7e6}}
receivers = [{{"node": name, "rate_bps": bps}} for name, bps in rates.items()]
cpu = {{"alice": 0.02 + 1e-10 * sent, "bob": 0.02, "carol": 0.01, "dave": 0.01, "erin": 0.01}}
streams = [{{"group": "a", "from": "alice", "receivers": receivers}}]
print(json.dumps({{"streams": streams, "cpu": cpu, "lag_mean_ms": 0.01}}))
"""
PERF = """#!{python}
import subprocess, sys
if sys.argv[1] == "script":
    print({script!r})
else:
    assert sys.argv[1] == "record"
    sys.exit(subprocess.run(sys.argv[sys.argv.index("--") + 1:]).returncode)
"""


def program(path, text, **more):
    path.write_text(text.format(python=sys.executable, **more))
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A scale with a lab that answers at once, and a `perf`."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program(directory / "perf", PERF, script=SCRIPT)
    monkeypatch.setenv("PATH", str(directory), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return replace(FULL, lab=program(directory / "lab", LAB))


def rows_of(made, directory):
    store = Store(directory)
    directory.mkdir()
    store.append([run.perform() for run in made.values()])
    kept = {row["run"]: row for row in store.table().to_pylist()}
    return Rows({case: kept[run.key] for case, run in made.items()})


def test_processor_time_and_its_parts_are_judged(lab, tmp_path):
    made = fig6_cpu.EXPERIMENT.runs(lab)
    # The lab answers for simulated runs too: they are not tested here.
    made = {
        case: run
        if isinstance(run, LabRun)
        else LabRun(run.scenario, run.scheme, 9, program=lab.lab)
        for case, run in made.items()
    }
    assert len(made) == len(OFFERED_BPS) * (1 + fig6_cpu.LAB_RUNS + 1)
    rows = rows_of(made, tmp_path / "store")
    assert rows.rows[Case("14000000 (lab)", 1)]["lag_mean_ms"] == 0.01
    found = fig6_cpu.EXPERIMENT.findings(rows, lab)
    claims = {claim.text: claim for claim in found.claims}
    busiest = claims["every node's processor is below 3 % (lab)"]
    assert (busiest.ours, busiest.agrees) == (
        "alice 4.0 % of a core at 200 Mbit/s (runs: 4.0 to 4.0 %)",
        False,
    )
    grown = claims["processors do at most 2.5 % more at 200 Mbit/s than at 14 (lab)"]
    assert (grown.ours, grown.agrees) == ("alice 1.9 % more of a core", True)
    together = claims["queues, input and output, and messages, of all processor time (lab)"]
    assert (together.value, together.agrees) == (pytest.approx(0.6), False)
    assert [row["share of queues"] for row in found.table] == pytest.approx(
        [0.2] * len(OFFERED_BPS)
    )
    assert [row["cpu bob"] for row in found.table] == pytest.approx([0.02] * len(OFFERED_BPS))


def test_without_perf_only_the_parts_are_left_out(lab, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    made = fig6_cpu.EXPERIMENT.runs(lab)
    assert not any(isinstance(run, ProfiledRun) for run in made.values())
    assert len(made) == len(OFFERED_BPS) * (1 + fig6_cpu.LAB_RUNS)


@pytest.mark.usefixtures("lab")
def test_a_lab_that_fails_under_perf_says_why(tmp_path):
    failing = program(tmp_path / "fails", '#!{python}\nimport sys\nsys.exit("no daemons here")\n')
    run = ProfiledRun(mesh.two_streams("a", 1.0), "multirate", 1, program=failing, parts=PARTS)
    with pytest.raises(FailureError, match="no daemons here"):
        run.perform()
