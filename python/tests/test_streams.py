"""Live streams by the engine, simulated from Python."""

import pytest

import ncmesh

SCENARIO = {
    "name": "star",
    "sealed": False,
    "nodes": ["s", "b", "c"],
    "medium": {"phy": "802.11a", "bit_rate": "6M"},
    "link": [
        {"from": "s", "to": "b", "wired": True},
        {"from": "b", "to": "c", "loss": 0.0, "rate": "18M"},
    ],
    "stream": [
        {
            "group": "tv",
            "from": "s",
            "packet": 1400,
            "layers": [{"name": "base", "rate": "500k"}, {"name": "enh", "rate": "1M"}],
            "receivers": [{"node": "b"}, {"node": "c", "min_rate": "500k", "utility": "log"}],
            "seconds": 20,
        }
    ],
    "protocol": {"multirate": {"wired": ["b"]}},
}


def test_a_stream_arrives_whole_where_nothing_is_full():
    result = ncmesh.run(SCENARIO, 1, scheme="multirate")
    (stream,) = result.streams
    assert (stream.group, stream.from_, stream.refused) == ("tv", "s", 0)
    assert result.receivers == result.flows == ()
    for receiver in stream.receivers:
        assert [layer.name for layer in receiver.layers] == ["base", "enh"]
        assert receiver.rate_bps == pytest.approx(1.5e6, rel=0.01)
        assert receiver.corrupt == 0
        assert receiver.layers[0].share == pytest.approx(1.0, abs=0.02)
        assert receiver.mean_delay_s < 0.01
        assert receiver.problem is None
        assert len(receiver.series.seconds) == len(receiver.series.rate_bps) == 20
        assert min(receiver.series.rate_bps[1:]) > 1.45e6
    assert {(queue.node, queue.to) for queue in result.queues} == {("s", "b"), ("b", "c")}
    assert result == ncmesh.run(SCENARIO, 1, scheme="multirate")


def test_minimum_rates_that_cannot_be_met_are_said():
    (stream,) = SCENARIO["stream"]
    wanted = [{"node": "b", "min_rate": "500k"}, {"node": "c", "min_rate": "20M"}]
    offered = {"layers": [{"name": "all", "rate": "17M"}], "receivers": wanted, "seconds": 25}
    (found,) = ncmesh.run(
        {**SCENARIO, "stream": [{**stream, **offered}]}, 1, scheme="multirate"
    ).streams
    near, far = found.receivers
    assert near.problem is None
    assert far.rate_bps > 12e6
    assert "of at least 20.00 Mbit/s: more than links on the way carry" in far.problem


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        ({"name": "log", "xi": 0}, "slope is unbounded at rate 0"),
        ({"name": "table", "step": 1, "values": [0, 1, 3], "slopes": [1, 1.5, 2]}, "not concave"),
        ("cubic", 'no utility is called "cubic"'),
    ],
)
def test_utilities_that_cannot_be_are_refused(utility, message):
    (stream,) = SCENARIO["stream"]
    receivers = [{"node": "b", "utility": utility}]
    with pytest.raises(ncmesh.ScenarioError, match=message):
        ncmesh.run(
            {**SCENARIO, "stream": [{**stream, "receivers": receivers}]}, 1, scheme="multirate"
        )


def test_a_receiver_that_no_link_leads_to_is_named():
    (wire, radio) = SCENARIO["link"]
    for lost in ([wire], [wire, {**radio, "loss": 1.0}]):
        with pytest.raises(ncmesh.UnreachableError, match="c cannot be reached from s"):
            ncmesh.run({**SCENARIO, "link": lost}, 1, scheme="multirate")


def test_what_cannot_be_streamed_is_said():
    with pytest.raises(ncmesh.ScenarioError, match=r"no \[\[stream\]\]"):
        ncmesh.run({**SCENARIO, "stream": []}, 1, scheme="multirate")
    with pytest.raises(ncmesh.ScenarioError, match="theta"):
        ncmesh.run(SCENARIO, 1, scheme="multirate", set={"protocol.multirate.theta": 0.0})
    (stream,) = SCENARIO["stream"]
    steep = {**stream, "receivers": [{"node": "b", "utility": {"name": "linear", "weight": 9.0}}]}
    with pytest.raises(ncmesh.ScenarioError, match=r"slope at rate 0 is 9 .* theta = 4"):
        ncmesh.run({**SCENARIO, "stream": [steep]}, 1, scheme="multirate")
