import math
import signal
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

import ncmesh

# Until interrupted: no test waits for its end.
ENDLESS = {"traffic.size": "150MB"}


def test_a_run_is_the_same_from_a_file_and_from_a_dict(diamond, tmp_path):
    path = tmp_path / "diamond.toml"
    path.write_text(
        """
        name = "diamond"
        nodes = ["s", "r1", "r2", "d"]
        link = [
          { from = "s", to = "r1", loss = 0.5 }, { from = "s", to = "r2", loss = 0.5 },
          { from = "r1", to = "d", loss = 0.2 }, { from = "r2", to = "d", loss = 0.4 },
        ]
        medium = { phy = "802.11b", bit_rate = "11M" }
        traffic = { from = "s", to = ["d", "r1"], size = "100kB" }
        protocol = { link = { quick_hello_s = 0.2 } }
        """
    )
    run = ncmesh.run(diamond, 3)
    assert run == ncmesh.run(path, 3) == ncmesh.run(str(path), np.int64(3))
    assert run.trace_hash != ncmesh.run(diamond, 4).trace_hash
    assert ncmesh.Result.of(run.to_dict()) == run


def test_a_result_says_what_came_of_it(diamond):
    run = ncmesh.run(diamond, 3)
    assert (run.scenario, run.seed, run.scheme) == ("diamond", 3, "cascade")
    assert run == ncmesh.run(diamond, 3, scheme="auto")
    assert run.version == ncmesh.__version__
    assert [r.node for r in run.receivers] == ["d", "r1"]
    for receiver in run.receivers:
        assert receiver.verified
        assert receiver.bytes == run.bytes == 100_000
        assert receiver.throughput_bps == pytest.approx(8e5 / receiver.seconds)
        assert receiver.seconds <= run.seconds
    assert run.transmissions == sum(node.transmissions for node in run.nodes.values())
    assert set(run.nodes) == {"s", "r1", "r2", "d"}
    assert set(run.forwarders) <= {"r1", "r2"}
    assert run.source_redundancy > 1
    assert run.events > run.transmissions


def test_settings_reach_the_run(diamond):
    slow = ncmesh.run(diamond, 3, set={"medium.bit_rate": "1M", "traffic.to": ["d"]})
    assert [r.node for r in slow.receivers] == ["d"]
    assert slow.receivers[0].throughput_bps < 1e6
    settings = {"protocol.pacifier": {"variant": "tree", "knob": 1}}
    tree = ncmesh.run(diamond, 3, scheme="pacifier", set=settings)
    assert tree.trace_hash != ncmesh.run(diamond, 3, scheme="pacifier").trace_hash


def test_what_has_not_arrived_at_the_limit_has_no_throughput(diamond):
    cut = ncmesh.run(diamond, 3, limit_s=0.1)
    assert all(r.throughput_bps is None and r.seconds is None for r in cut.receivers)
    assert not any(r.verified for r in cut.receivers)
    assert cut.seconds == pytest.approx(0.1)


def test_a_table_has_a_row_per_receiver(diamond):
    table = ncmesh.run(diamond, 3, limit_s=0.1).to_arrow()
    assert table.num_rows == 2
    assert table.schema.field("receiver_seconds").type == pa.float64()
    assert table.column("receiver_node").to_pylist() == ["d", "r1"]
    assert table.column("version").to_pylist() == [ncmesh.__version__] * 2


def test_file_names_are_relative_to_the_current_directory(diamond, tmp_path, monkeypatch):
    (tmp_path / "loss.csv").write_text("from,to,loss\ns,d,0.1\nd,s,0.1\ns,r1,0\nr1,s,0\n")
    monkeypatch.chdir(tmp_path)
    del diamond["link"]
    diamond["topology"] = {"links": "loss.csv"}
    assert ncmesh.run(diamond, 1).receivers[0].verified


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"set": {"medium.bit_rate": "fast"}}, 'override `medium.bit_rate="fast"`'),
        ({"set": {"medium.phy": "802.11z"}}, "802.11z"),
        ({"set": {"protocol.pacifier.knob": 2}}, "knob = 2: allowed is 0 to 1"),
        ({"set": {"traffic.to": ["s"]}}, "a receiver must not be the source"),
        ({"set": {"medium.cw_min": object()}}, "object"),
        ({"mac": "token_ring"}, "token_ring|medium.mac"),
        ({"scheme": "pigeons"}, 'no file scheme is called "pigeons"; there are: auto, cascade, '),
        ({"seed": -1}, "seed -1: allowed is a whole number"),
        ({"seed": 2**63}, "allowed is a whole number"),
        ({"seed": "one"}, "seed one"),
        ({"seed": 1.5}, "seed 1.5"),
        ({"limit_s": 0}, "limit_s = 0: allowed is above 0"),
        ({"limit_s": math.nan}, "limit_s = NaN"),
        ({"scenario": {"name": "empty"}}, "missing field `medium`"),
        ({"scenario": "none.toml"}, "none.toml: no such file; scenarios that are built in"),
        ({"scenario": 7}, "int"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_line(diamond, change, message):
    request = {"scenario": diamond, "seed": 1, **change}
    with pytest.raises(ncmesh.ScenarioError, match=message) as raised:
        ncmesh.run(**request)
    assert isinstance(raised.value, ValueError)
    assert "\n" not in str(raised.value)
    if "limit_s" not in change:
        with pytest.raises(ncmesh.ScenarioError, match=message):
            ncmesh.check(**request)


def test_a_loss_matrix_is_what_nodes_know_at_the_start(diamond):
    loss = ncmesh.loss_matrix(diamond, 1)
    assert loss.shape == (4, 4)
    assert (loss[0, 1], loss[1, 3], loss[2, 3], loss[0, 3]) == (0.5, 0.2, 0.4, 1.0)
    probes = {"seconds": 200, "bytes": 1500, "period_s": 0.1}
    measured = ncmesh.loss_matrix({**diamond, "measure": probes}, 1)
    # 1,000 of 2,000 probes are lost, give or take 22.
    assert 0.4 < measured[0, 1] < 0.6
    assert measured[0, 1] != 0.5
    assert measured[0, 3] == 1.0
    assert (measured == ncmesh.loss_matrix({**diamond, "measure": probes}, 1)).all()
    faster = ncmesh.loss_matrix(diamond, 1, set={"link": [{"from": "s", "to": "d", "loss": 0.25}]})
    assert faster[0, 3] == 0.25


def test_check_agrees_to_what_can_be_run(diamond):
    ncmesh.check(diamond, 1, scheme="pacifier", set={"protocol.pacifier.knob": 0})


def test_a_dict_without_traffic_has_nothing_to_run(diamond):
    del diamond["traffic"]
    with pytest.raises(ncmesh.ScenarioError, match=r"no \[traffic\]"):
        ncmesh.run(diamond, 1)


def test_a_receiver_out_of_reach_is_an_error_of_its_own(diamond):
    diamond["link"] = [link for link in diamond["link"] if link["to"] != "d"]
    with pytest.raises(ncmesh.UnreachableError, match="d cannot be reached from s"):
        ncmesh.run(diamond, 1)


def test_a_file_that_is_not_there_is_an_os_error(diamond):
    diamond["traffic"] = {"from": "s", "to": ["d"], "file": "none.bin"}
    with pytest.raises(OSError, match=r"none\.bin"):
        ncmesh.run(diamond, 1)


OTHER_THREADS = """
import os, sys, threading, ncmesh, json
scenario, pipes = json.loads(sys.argv[1]), sys.argv[2:]
runs = []
def simulate(pipe):
    scenario["traffic"] = {"from": "s", "to": ["d"], "file": pipe}
    runs.append(ncmesh.run(dict(scenario), 1))
threads = [threading.Thread(target=simulate, args=[pipe]) for pipe in pipes]
for thread in threads:
    thread.start()
# Both runs now read their pipes, inside the simulator. A run that held the GIL would wait for ever.
writers = [open(pipe, "wb") for pipe in pipes]
for writer in writers:
    writer.write(bytes(1000))
    writer.close()
for thread in threads:
    thread.join()
assert [run.bytes for run in runs] == [1000, 1000]
"""


def test_runs_go_on_side_by_side_while_other_threads_work(diamond, tmp_path):
    import json
    import os

    pipes = [str(tmp_path / name) for name in ("one", "two")]
    for pipe in pipes:
        os.mkfifo(pipe)
    program = [sys.executable, "-c", OTHER_THREADS, json.dumps(diamond), *pipes]
    subprocess.run(program, check=True, timeout=120)


class StoppedError(Exception):
    pass


def test_a_signal_ends_a_run(diamond):
    def stop(*_):
        raise StoppedError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(StoppedError):
            ncmesh.run(diamond, 1, set=ENDLESS)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_a_run(diamond):
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ncmesh.run(diamond, 1, set=ENDLESS)
    timer.join()
