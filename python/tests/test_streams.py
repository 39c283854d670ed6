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
            # A receiver that begins at a pressure of one packet takes too much at first, and too little then.
            "warm_up_s": 20,
            "seconds": 20,
        }
    ],
    "protocol": {"multirate": {"wired": ["b"]}, "link": {"probe_size": 100}},
}


def test_a_stream_arrives_whole_where_nothing_is_full():
    result = ncmesh.run(SCENARIO, 1, scheme="multirate")
    (stream,) = result.streams
    assert (stream.group, stream.source, stream.refused) == ("tv", "s", 0)
    assert result.receivers == result.flows == ()
    for receiver in stream.receivers:
        assert [layer.name for layer in receiver.layers] == ["base", "enh"]
        assert receiver.rate_bps == pytest.approx(1.5e6, rel=0.05)
        assert receiver.corrupt == 0
        assert receiver.layers[0].share == pytest.approx(1.0, abs=0.02)
        assert len(receiver.series["seconds"]) == len(receiver.series["rate_bps"]) == 40
    assert {(queue["node"], queue["to"]) for queue in result.queues} == {("s", "b"), ("b", "c")}
    assert result == ncmesh.run(SCENARIO, 1, scheme="multirate")


def test_what_cannot_be_streamed_is_said():
    with pytest.raises(ncmesh.ScenarioError, match=r"no \[\[stream\]\]"):
        ncmesh.run({**SCENARIO, "stream": []}, 1, scheme="multirate")
    with pytest.raises(ncmesh.ScenarioError, match="theta"):
        ncmesh.run(SCENARIO, 1, scheme="multirate", set={"protocol.multirate.theta": 0.0})
    (stream,) = SCENARIO["stream"]
    steep = {**stream, "receivers": [{"node": "b", "utility": {"name": "linear", "weight": 9.0}}]}
    with pytest.raises(ncmesh.ScenarioError, match=r"slope at rate 0 is 9 .* theta = 4"):
        ncmesh.run({**SCENARIO, "stream": [steep]}, 1, scheme="multirate")
