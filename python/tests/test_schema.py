"""A result has the same fields in the simulator, in Python and in Parquet."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ncmesh
from ncmesh.arrow import OUTCOME, per_receiver
from ncmesh.campaign.store import SCHEMA, Store
from ncmesh.schema import ROOT, TYPES

GENERATOR = Path(__file__).parents[2] / "scripts/result-types.py"

# Probes measure the links for 9 s; link states spread for 5 s more.
SETTLING_S = 15

LINE = {
    "name": "line",
    "nodes": ["a", "b", "c"],
    "medium": {"phy": "802.11b", "bit_rate": "11M"},
    "link": [{"from": "a", "to": "b", "loss": 0.1}, {"from": "b", "to": "c", "loss": 0.0}],
    "protocol": {"link": {"hello_s": 0.5}},
}
FLOWS = [
    {"from": "a", "to": "c", "rate": "80k", "seconds": 2.0},
    {"from": "c", "to": "a", "protocol": "tcp", "seconds": 2.0},
]
STREAM = {
    "group": "tv",
    "from": "a",
    "layers": [{"name": "base", "rate": "200k"}],
    "receivers": [{"node": "c"}],
    "seconds": 3.0,
}
KINDS = {
    "pacifier": {"traffic": {"from": "a", "to": ["b", "c"], "size": "100kB"}},
    "xor": {"flow": FLOWS},
    "multirate": {"stream": [STREAM]},
}


@pytest.fixture(params=KINDS, scope="module")
def outcome(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A run of every kind, as the simulator returns it."""
    scheme = request.param
    return ncmesh.simulate({**LINE, **KINDS[scheme]}, 1, scheme=scheme)


def as_json(value: Any, kind: pa.DataType) -> Any:
    """Converts a value of a table to JSON's form, without fields that are null."""
    if pa.types.is_struct(kind):
        kinds = {field.name: field.type for field in kind}
        return {k: as_json(v, kinds[k]) for k, v in value.items() if v is not None}
    if pa.types.is_map(kind):
        return {key: as_json(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [as_json(item, kind.value_type) for item in value]
    return value


def stored(value: Any) -> Any:
    """Leaves out values over time and fields that are null."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != "series" and item is not None}
        return {key: stored(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [stored(item) for item in value]
    return value


def test_what_is_generated_is_up_to_date():
    done = subprocess.run(
        [sys.executable, GENERATOR, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_field_of_a_run_reaches_python(outcome):
    result = ncmesh.Result.of(outcome)
    told = result.to_dict()
    assert outcome == {key: told[key] for key in outcome}
    assert told.keys() == {field.name for field in TYPES[ROOT].fields}
    with pytest.raises(KeyError):
        ncmesh.Result.of({**outcome, "surprise": 1})


def test_every_field_of_a_run_reaches_parquet(outcome, tmp_path):
    store = Store(tmp_path)
    store.append([{**outcome, "run": "one"}])
    (row,) = store.table().to_pylist()
    found = as_json(row, pa.struct(list(SCHEMA)))
    assert found == {**stored(outcome), "run": "one"}


def test_nodes_use_the_channel_for_part_of_the_time(outcome):
    result = ncmesh.Result.of(outcome)
    assert result.nodes.keys() == {"a", "b", "c"}
    assert result.transmissions == sum(node.transmissions for node in result.nodes.values())
    for node in result.nodes.values():
        assert 0 < node.airtime_s < result.seconds + SETTLING_S


def test_a_file_without_a_column_has_nulls_there(tmp_path):
    store = Store(tmp_path)
    hello = {"frames": 7, "bytes": 400, "airtime_s": 0.01}
    usage = {"transmissions": 3, "airtime_s": 0.5, "control": {"hello": hello}}
    store.append([{"run": "new", "nodes": {"a": usage}, "cpu": {"a": 0.1}}])
    (file,) = tmp_path.glob("*.parquet")
    old = pq.read_table(file)
    nodes = pa.array([[("a", {"transmissions": 3})]], pa.map_(pa.string(), old_usage()))
    old = old.set_column(old.schema.get_field_index("nodes"), "nodes", nodes).drop_columns(["cpu"])
    pq.write_table(old, file)
    (row,) = store.table().to_pylist()
    assert (row["run"], row["cpu"]) == ("new", None)
    unknown = dict.fromkeys(("airtime_s", "service_airtime_s", "control"))
    assert row["nodes"] == [("a", {"transmissions": 3, **unknown})]


def old_usage() -> pa.DataType:
    return pa.struct([("transmissions", pa.int64())])


def test_a_table_of_receivers_has_one_value_in_each_column():
    rows = [
        {"scheme": "pacifier", "receivers": [{"node": "b"}, {"node": "c"}]},
        {"scheme": "xor", "receivers": None},
    ]
    table = per_receiver(rows)
    assert table["scheme"].to_pylist() == ["pacifier", "pacifier", "xor"]
    assert table["receiver_node"].to_pylist() == ["b", "c", None]
    assert not any(pa.types.is_nested(column.type) for column in table.schema)
    assert OUTCOME.field("receivers").type.value_type.names == [
        name.removeprefix("receiver_") for name in table.schema.names if "receiver_" in name
    ]
