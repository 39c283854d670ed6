"""Campaigns on real Dask clusters of several worker processes."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from distributed import LocalCluster

from ncmesh import campaign
from ncmesh.__main__ import main
from ncmesh.failure import FailureError, Kind


@pytest.fixture
def cluster():
    with LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_lost_or_doubled_when_a_worker_is_killed(campaign_file, cluster):
    campaign_file.write_text(f'{campaign_file.read_text()}\ntraffic.size = ["3MB"]')
    loaded = campaign.load(campaign_file)
    store = campaign.Store(campaign_file.with_suffix(".results"))
    advanced = []

    def advance() -> None:
        advanced.append(1)
        if len(advanced) == 2:
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    campaign.execute(loaded.runs, store, campaign.Workers(dask=cluster.scheduler_address), advance)
    rows = store.table()
    assert sorted(rows["run"].to_pylist()) == sorted(loaded.runs)
    assert len(advanced) == len(loaded.runs)
    here = campaign.Store(campaign_file.with_suffix(".here"))
    campaign.execute(loaded.runs, here, campaign.Workers(jobs=1), lambda: None)
    hashes = [
        dict(zip(t["run"].to_pylist(), t["trace_hash"].to_pylist(), strict=True))
        for t in (rows, here.table())
    ]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:{port}", "nonsense", "smoke://127.0.0.1:8786"]
)
def test_a_scheduler_that_does_not_answer_is_told(campaign_file, capsys, monkeypatch, address):
    monkeypatch.setattr("ncmesh.campaign.workers.CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code = main(["campaign", "run", str(campaign_file), "--dask", address.format(port=port)])
    error = capsys.readouterr().err
    assert code == Kind.NO_SCHEDULER
    assert error.startswith("error: no Dask scheduler answers at ")
    assert error.count("\n") == 1


def test_a_scheduler_that_dies_ends_the_campaign_with_what_is_finished(endless):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    port = address.rpartition(":")[2]
    daemon = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [
            *daemon,
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            port,
            "--no-dashboard",
        ],
        **quiet,
    )
    worker = subprocess.Popen(
        [
            *daemon,
            "distributed.cli.dask_worker",
            address,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--no-nanny",
        ],
        **quiet,
    )
    store = campaign.Store(endless.with_suffix(".results"))
    try:
        with pytest.raises(FailureError, match="the Dask scheduler is gone") as raised:
            campaign.execute(
                campaign.load(endless).runs,
                store,
                campaign.Workers(dask=address),
                scheduler.kill,
            )
    finally:
        worker.kill()
        scheduler.wait()
        worker.wait()
    assert raised.value.kind == Kind.NO_SCHEDULER
    assert 2 <= len(store.done()) < 16
