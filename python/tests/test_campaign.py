import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ncmesh
from ncmesh import campaign
from ncmesh.__main__ import main
from ncmesh.failure import FailureError, Kind

RUN = campaign.Run(campaign.Scenario({"name": "x"}), "pacifier", 1)


def run(*arguments: object) -> int:
    return main(["campaign", *map(str, arguments)])


def store_of(file: Path) -> campaign.Store:
    return campaign.Store(file.with_suffix(".results"))


def test_contents_of_each_file_count(tmp_path):
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(name.encode())
    files = [
        {"from": "a", "file": "a.bin"},
        {"from": "b", "size": 1},
        {"from": "c", "file": "b.bin"},
    ]
    scenario = campaign.Scenario({"name": "x", "traffic": files}).in_directory(tmp_path)
    named = [file.get("file") for file in scenario.table["traffic"]]
    assert named == [str(tmp_path / "a.bin"), None, str(tmp_path / "b.bin")]
    before = campaign.Scenario(scenario.table).hash
    (tmp_path / "b.bin").write_bytes(b"other")
    assert campaign.Scenario(scenario.table).hash != before


def test_a_file_means_parameters_times_schemes_times_seeds(campaign_file):
    loaded = campaign.load(campaign_file)
    assert loaded.name == "knob"
    assert len(loaded.runs) == 8
    assert {run.seed for run in loaded.runs.values()} == {1, 2, 3, 4}
    assert {run.parameters["protocol.pacifier.knob"] for run in loaded.runs.values()} == {0, 0.5}
    assert all(key == run.key for key, run in loaded.runs.items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds", "sedes"), "unknown key `sedes`: there are name, scenario"),
        (('seeds = "1-4"', "seeds = 3"), "allowed is text such as"),
        (('"1-4"', '"1-x"'), "allowed is text such as"),
        (('"1-4"', '"4-1"'), "from less to more"),
        (('"1-4"', '"9223372036854775808"'), "below 2"),
        (('"1-4"', '"0-1000000000"'), "at most 1000000"),
        (('"1-4"', '"1-4,2"'), "a seed is named twice"),
        (("[0, 0.5]", "0.5"), "parameters.protocol.pacifier.knob: give a list"),
        (("[0, 0.5]", "[]"), "parameters.protocol.pacifier.knob: give a list"),
        (("protocol.pacifier.knob", "seed"), "`seeds` says which seeds there are"),
        (("[parameters]", "limit_s = -1\n[parameters]"), "limit_s = -1"),
        (('["pacifier"]', "[]"), "`schemes` a list of names"),
        (('"line.toml"', "3"), "`scenario` is missing"),
        (("[parameters]", "[parameters"), "line 5"),
        (("[0, 0.5]", str(list(range(300_000)))), "1200000 runs: allowed are 1000000"),
        (('"line.toml"', '"none.toml"'), "none.toml: No such file"),
        (('["pacifier"]', '["more", "auto"]'), "concerns none of the schemes: more, cascade"),
        # These are found when the campaign is about to begin.
        (
            ("[0, 0.5]", "[0, 7]"),
            "seed 1, protocol.pacifier.knob = 7: [pacifier] knob = 7: allowed is",
        ),
        (('["pacifier"]', '["more2"]'), 'no file scheme is called "more2"'),
        (("protocol.pacifier.knob", "topology.links"), "`links` must be text in quotes"),
    ],
)
def test_a_bad_file_is_told_in_a_line(campaign_file, capsys, change, message):
    campaign_file.write_text(campaign_file.read_text().replace(*change))
    code = run("run", campaign_file)
    error = capsys.readouterr().err
    assert code in (Kind.CONFIG, Kind.FILE)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_key_is_of_what_decides_the_outcome_and_of_nothing_else(campaign_file):
    before = campaign.load(campaign_file).runs.keys()
    folder = campaign_file.parent
    (folder / "loss.csv").rename(folder / "moved.csv")
    scenario = folder / "line.toml"
    scenario.write_text(scenario.read_text().replace("loss.csv", "moved.csv"))
    assert campaign.load(campaign_file).runs.keys() == before
    (folder / "moved.csv").write_text("from,to,loss\ns,d,0.1\nd,s,0.1\nr,s,0.5\n")
    assert not campaign.load(campaign_file).runs.keys() & before
    one = replace(RUN, parameters={"a": 1})
    assert one.key == RUN.key
    others = [
        replace(RUN, scenario=campaign.Scenario({"name": "y"})),
        replace(RUN, scheme="more"),
        replace(RUN, seed=2),
        replace(RUN, limit_s=9.0),
        replace(RUN, build="another"),
    ]
    assert len({RUN.key, *(other.key for other in others)}) == 6


def test_results_of_flows_from_before_a_column_was_there_can_be_read(tmp_path):
    store = campaign.Store(tmp_path)
    flow = {"from": "a", "to": "b", "packets_per_slot": 0.25, "heard": 5, "innovative": 4}
    store.append([{"run": "new", "flows": [flow]}])
    (new,) = tmp_path.glob("*.parquet")
    table = pq.read_table(new)
    kept = [field for field in table.schema.field("flows").type.value_type if field.name != "heard"]
    flows = pa.array(table["flows"].to_pylist(), pa.list_(pa.struct(kept)))
    at = table.schema.get_field_index("flows")
    pq.write_table(table.set_column(at, "flows", flows), tmp_path / "old.parquet")
    found = [row["flows"][0] for row in store.table().to_pylist()]
    assert sorted((of["innovative"], of["heard"] or 0) for of in found) == [(4, 0), (4, 5)]
    assert {of["packets_per_slot"] for of in found} == {0.25}


def test_only_what_is_missing_is_run(campaign_file, capsys):
    assert run("status", campaign_file) == 0
    assert "0 of 8 runs are there" in capsys.readouterr().out
    assert run("run", campaign_file, "--jobs", 2) == 0
    assert "8 of 8 runs are there" in capsys.readouterr().out
    rows = store_of(campaign_file).table()
    assert run("run", campaign_file, "--jobs", 1) == 0
    assert store_of(campaign_file).table() == rows
    campaign_file.write_text(campaign_file.read_text().replace("0.5", "1.0"))
    assert run("run", campaign_file, "--jobs", 2) == 0
    after = store_of(campaign_file).table()
    assert after.num_rows == 12
    assert len(set(after["run"].to_pylist())) == 12
    assert set(rows["run"].to_pylist()) < set(after["run"].to_pylist())


def test_rows_say_where_they_come_from(campaign_file):
    text = campaign_file.read_text().replace('schemes = ["pacifier"]', "")
    text = text.replace("protocol.pacifier.knob = [0, 0.5]", 'medium.bit_rate = ["2M", "11M"]')
    campaign_file.write_text(text)
    run("run", campaign_file, "--jobs", 1)
    row = store_of(campaign_file).table().to_pylist()[0]
    made = campaign.load(campaign_file).runs[row["run"]]
    assert row["scenario_hash"] == made.scenario.hash
    assert json.loads(row["parameters"]) == made.parameters
    # The campaign names no scheme: the row says which one `auto` was.
    assert (made.scheme, row["scheme"]) == ("auto", "cascade")
    assert (row["seed"], row["version"]) == (made.seed, ncmesh.__version__)
    again = ncmesh.run(campaign_file.parent / "line.toml", made.seed, set=made.parameters)
    assert row["trace_hash"] == again.trace_hash
    assert [r["throughput_bps"] for r in row["receivers"]] == [
        r.throughput_bps for r in again.receivers
    ]
    airtime = {node: usage["airtime_s"] for node, usage in row["nodes"]}
    assert airtime == {node: usage.airtime_s for node, usage in again.nodes.items()}


def test_export_has_a_row_per_receiver(campaign_file, tmp_path, capsys):
    run("run", campaign_file, "--jobs", 1)
    for name in ("out.csv", "out.parquet"):
        assert run("export", campaign_file, tmp_path / name) == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 16
    assert table["protocol.pacifier.knob"].type == pa.float64()
    assert set(table["receiver_node"].to_pylist()) == {"d", "r"}
    assert pa.csv.read_csv(tmp_path / "out.csv").num_rows == 16
    assert run("export", campaign_file, tmp_path / "out.xls") == Kind.USAGE
    assert run("export", campaign_file, tmp_path / "none" / "out.csv") == Kind.FILE
    assert "cannot write" in capsys.readouterr().err


def test_a_receiver_out_of_reach_is_an_outcome(campaign_file, capsys):
    (campaign_file.parent / "loss.csv").write_text("from,to,loss\ns,r,0.2\nr,s,0.2\nd,r,0.4\n")
    assert run("run", campaign_file, "--jobs", 1) == 0
    assert "8 ended early: d cannot be reached from s" in capsys.readouterr().out
    assert run("export", campaign_file, campaign_file.parent / "out.parquet") == 0


def test_a_second_writer_is_kept_out(campaign_file, capsys):
    with store_of(campaign_file).open_for_writing():
        assert run("run", campaign_file) == Kind.IN_USE
    assert "in use by another campaign" in capsys.readouterr().err


def test_what_was_cut_off_is_not_read_and_goes_away(campaign_file):
    store = store_of(campaign_file)
    store.directory.mkdir()
    (store.directory / "0.draft").write_bytes(b"PAR1 and then the power went")
    assert store.done() == set()
    run("run", campaign_file, "--jobs", 1)
    assert not list(store.directory.glob("*.draft"))


def test_what_is_no_file_of_results_is_named(campaign_file, capsys):
    store = store_of(campaign_file)
    store.directory.mkdir()
    (store.directory / "0.parquet").write_bytes(b"PAR1 but no more")
    assert run("status", campaign_file) == Kind.FILE
    assert "0.parquet is no file of results" in capsys.readouterr().err
    pq.write_table(pa.table({"scheme": ["a"]}), store.directory / "0.parquet")
    assert run("status", campaign_file) == Kind.FILE


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ncmesh", "campaign", *map(str, arguments)]


def test_a_full_disk_is_told_and_leaves_nothing_broken(campaign_file):
    # The system says it of a file that may not grow as it does of a disk that is full.
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    result = subprocess.run(
        command("run", campaign_file, "--jobs", 1),
        preexec_fn=no_room,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == Kind.FILE
    assert result.stderr.startswith("error: cannot write results in ")
    assert result.stderr.count("\n") == 1
    assert [file.name for file in store_of(campaign_file).directory.iterdir()] == [".lock"]
    assert run("run", campaign_file, "--jobs", 1) == 0


def wait_until(condition: Callable[[], bool]) -> None:
    """The work of other processes takes its time."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers_of(pid: int) -> list[int]:
    """The two worker processes of a campaign, once they are there."""

    def workers() -> list[int]:
        commands = {child: Path(f"/proc/{child}/cmdline") for child in children_of(pid)}
        return [child for child, line in commands.items() if "spawn_main" in line.read_text()]

    wait_until(lambda: len(workers()) == 2)
    return workers()


def has_ended(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_an_interrupt_keeps_what_is_finished_and_ends_the_workers(endless):
    process = subprocess.Popen(
        command("run", endless, "--jobs", 2), stderr=subprocess.PIPE, text=True
    )
    workers = workers_of(process.pid)
    wait_until(lambda: len(store_of(endless).done()) >= 2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (
        Kind.INTERRUPTED,
        "error: interrupted; what was finished is kept\n",
    )
    wait_until(lambda: all(map(has_ended, workers)))


def test_workers_end_with_a_campaign_that_is_killed(endless):
    process = subprocess.Popen(command("run", endless, "--jobs", 2), stderr=subprocess.DEVNULL)
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: all(map(has_ended, workers)))
    with store_of(endless).open_for_writing():
        assert store_of(endless).done()


def test_a_worker_that_dies_ends_the_campaign_with_a_line(endless):
    process = subprocess.Popen(
        command("run", endless, "--jobs", 2), stderr=subprocess.PIPE, text=True
    )
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (
        Kind.OTHER,
        "error: a worker process died; what was finished is kept: run it again to go on\n",
    )


def test_another_build_is_no_worker():
    with pytest.raises(FailureError, match="another build of ncmesh"):
        replace(RUN, build="another").perform()


def test_a_parameter_of_another_scheme_repeats_no_run(campaign_file, tmp_path):
    text = campaign_file.read_text().replace('["pacifier"]', '["pacifier", "more"]')
    campaign_file.write_text(text + 'medium.bit_rate = ["2M", "11M"]\n')
    runs = campaign.load(campaign_file).runs.values()
    by_scheme = {name: [run for run in runs if run.scheme == name] for name in ("pacifier", "more")}
    assert {name: len(of) for name, of in by_scheme.items()} == {"pacifier": 16, "more": 8}
    assert {tuple(run.parameters) for run in by_scheme["more"]} == {("medium.bit_rate",)}

    # The omitted runs would indeed have changed nothing.
    first = by_scheme["more"][0]
    other = replace(first, scenario=first.scenario.varied({"protocol.pacifier.knob": 0.5}))
    assert first.outcome()["trace_hash"] == other.outcome()["trace_hash"]

    assert run("run", campaign_file) == 0
    output = tmp_path / "runs.csv"
    assert run("export", campaign_file, output) == 0
    table = pa.csv.read_csv(output)
    assert table.num_rows == 48
    assert table["protocol.pacifier.knob"].null_count == 16


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_campaign_becomes_a_picture(campaign_file, tmp_path, ending):
    text = campaign_file.read_text().replace('["pacifier"]', '["pacifier", "more"]')
    campaign_file.write_text('name = "$x{"\n' + text.replace("1-4", "1-2"))
    assert run("run", campaign_file) == 0
    output = tmp_path / f"rates.{ending}"
    assert run("plot", campaign_file, output) == 0
    assert output.stat().st_size > 1000
    if ending == "svg":
        assert "protocol.pacifier.knob" in output.read_text()


def test_a_picture_that_cannot_be_drawn_is_told_in_a_line(campaign_file, tmp_path, capsys):
    assert run("plot", campaign_file, tmp_path / "x.png") == Kind.OTHER
    assert "there is no run to draw" in capsys.readouterr().err
    assert run("plot", campaign_file, tmp_path / "x.gif") == Kind.USAGE
    assert "must end in .pdf, .png, .svg" in capsys.readouterr().err
    assert run("run", campaign_file) == 0
    capsys.readouterr()
    assert run("plot", campaign_file, tmp_path / "x.png", "--x", "seed") == Kind.USAGE
    assert "parameters are protocol.pacifier.knob" in capsys.readouterr().err
    assert run("plot", campaign_file, tmp_path / "none" / "x.png") == Kind.FILE
