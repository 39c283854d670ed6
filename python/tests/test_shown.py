"""Contents of a result, arguments of a run, and the words where a library is missing."""

import datetime
import io
import sys
from dataclasses import replace

import numpy as np
import pytest

import ncmesh
from ncmesh import summary
from ncmesh.__main__ import main

HOSTILE = "<script>alert('x')</script>&\"$"


def test_a_seed_need_not_be_given(diamond):
    assert ncmesh.run(diamond) == ncmesh.run(diamond, 1)
    assert ncmesh.run({**diamond, "seed": 5}) == ncmesh.run(diamond, 5)
    assert ncmesh.run(diamond, set={"seed": 5}).seed == 5
    assert ncmesh.loss_matrix(diamond).shape == (4, 4)
    ncmesh.check(diamond)


def test_numbers_are_quantities(diamond):
    plain = ncmesh.run(diamond, 3, set={"medium.bit_rate": "2M", "traffic.size": "50kB"})
    for rate, size in [
        (2_000_000, 50_000),
        (2e6, 5e4),
        (np.float64(2e6), np.int64(50_000)),
        (np.float32(2e6), np.uint16(50_000)),
    ]:
        given = {"medium.bit_rate": rate, "traffic.size": size}
        assert ncmesh.run(diamond, np.uint8(3), set=given, limit_s=np.float32(1e3)) == plain
    in_dict = {**diamond, "medium": {"phy": "802.11b", "bit_rate": np.float64(2e6)}}
    in_dict["traffic"] = {"from": "s", "to": np.array(["d", "r1"]), "size": np.int32(50_000)}
    assert ncmesh.run(in_dict, 3) == plain


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("medium.bit_rate", 2.5, "bit_rate = 2.5: allowed is a quantity from 1 kbit/s"),
        ("medium.bit_rate", float("nan"), "bit_rate = nan: allowed is a quantity"),
        ("medium.bit_rate", float("inf"), "bit_rate = inf: allowed is a quantity"),
        ("traffic.size", -3.0, "size = -3: allowed is a quantity from 1 byte"),
        ("traffic.size", 2**70, "set.traffic.size = .*: allowed are whole numbers of 64 bits"),
        ("traffic.size", None, "set.traffic.size: None; leave the key out"),
        ("traffic.size", 1j, "set.traffic.size: complex is no setting"),
        ("traffic.size", datetime.timedelta(seconds=1), "timedelta is no setting"),
        ("traffic.to", ["d", b"r1"], r"set.traffic.to\[1\]: bytes is no setting"),
        ("protocol.link", {1: 2}, "set.protocol.link: a key is text, not 1"),
    ],
)
def test_a_value_that_is_none_says_which(diamond, key, value, message):
    with pytest.raises(ncmesh.ScenarioError, match=message):
        ncmesh.run(diamond, set={key: value})


def test_a_list_that_holds_itself_ends(diamond):
    endless: list = []
    endless.append(endless)
    with pytest.raises(ncmesh.ScenarioError, match="nested more than 32 deep"):
        ncmesh.run(diamond, set={"traffic.to": endless})


@pytest.mark.parametrize("limit", ["3", True, None.__class__])
def test_a_limit_is_a_number(diamond, limit):
    with pytest.raises(TypeError, match="allowed is a number of seconds above 0"):
        ncmesh.run(diamond, limit_s=limit)


def test_progress_is_drawn_and_changes_nothing(diamond, capsys):
    assert ncmesh.run(diamond, 3, progress=True) == ncmesh.run(diamond, 3)
    assert "simulating: 100%" in capsys.readouterr().err


def test_progress_that_fails_ends_the_run(diamond):
    def broken(share):
        raise RuntimeError(f"at {share >= 0}")

    with pytest.raises(RuntimeError, match="at True"):
        ncmesh.simulate(diamond, 3, set={"traffic.size": "100MB"}, progress=broken)


def test_a_name_with_html_in_it_is_text(diamond):
    result = ncmesh.run(diamond, 3, limit_s=0.1)
    receiver = replace(result.receivers[0], node=HOSTILE)
    hostile = replace(result, scenario=HOSTILE, scheme=HOSTILE, receivers=(receiver,))
    shown = hostile._repr_html_()
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 3
    assert "kbit/s" in shown


def test_every_service_has_a_table_and_a_picture():
    for name, kind in [("pair", "verified"), ("tunnel", "packets"), ("stream", "group")]:
        result = ncmesh.run(name, limit_s=2.0)
        assert kind in result._repr_html_()
        shown = summary.rates(result)
        axes = result.plot()
        assert [text.get_text() for text in axes.get_yticklabels()] == [n for n, _ in shown]
        axes.figure.savefig(io.BytesIO(), format="svg")
        sys.modules["matplotlib.pyplot"].close(axes.figure)


def test_tables_of_other_libraries_are_the_same(diamond):
    result = ncmesh.run(diamond, 3)
    nodes = result.to_arrow()["receiver_node"].to_pylist()
    assert result.to_pandas()["receiver_node"].tolist() == nodes
    assert result.to_polars()["receiver_node"].to_list() == nodes


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("pandas", "pandas", lambda result: result.to_pandas()),
        ("polars", "polars", lambda result: result.to_polars()),
        ("matplotlib.pyplot", "plot", lambda result: result.plot()),
    ],
)
def test_a_missing_library_names_its_extra(diamond, monkeypatch, library, extra, use):
    result = ncmesh.run(diamond, 3, limit_s=0.1)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'ncmesh\[{extra}\]'") as raised:
        use(result)
    assert isinstance(raised.value, ncmesh.MissingExtraError)


def test_a_command_without_its_library_says_so_in_a_line(campaign_file, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["campaign", "run", str(campaign_file), "--dask", "tcp://127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "distributed is not installed; it comes with: pip install 'ncmesh[dask]'" in error
