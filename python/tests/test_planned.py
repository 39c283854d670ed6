"""File schemes whose plan a function makes."""

import statistics
import threading

import numpy as np
import pytest

import ncmesh

LINE = {
    "name": "line",
    "nodes": ["a", "b", "c", "d"],
    "medium": {"phy": "802.11b", "bit_rate": "11M", "sense": "everyone"},
    "link": [{"from": one, "to": other, "loss": 0.3} for one, other in ("ab", "bc", "cd")],
    "traffic": {"from": "a", "to": ["c", "d"], "size": "100kB"},
}


def follow(plan, **options):
    return ncmesh.run(LINE, plan=plan, **options)


@pytest.mark.parametrize("variant", ["tree", "tree_rl_rrb"])
def test_the_plan_of_pacifier_carries_as_pacifier_does(variant):
    # Draws differ, as they do between any two schemes.
    def seconds(name, **options):
        runs = [
            ncmesh.run(LINE, seed, set={f"protocol.{name}.variant": variant}, **options)
            for seed in range(1, 21)
        ]
        assert {run.scheme for run in runs} == {name}
        return statistics.fmean(run.receivers[1].seconds for run in runs)

    own = seconds("planned", plan=ncmesh.pacifier.plan)
    assert own == pytest.approx(seconds("pacifier", scheme="pacifier"), rel=0.1)


def test_the_function_gets_the_losses_that_are_known_and_indices():
    asked = []

    def plan(loss, source, receivers):
        asked.append((loss, source, receivers))
        return ncmesh.pacifier.plan(loss, source, receivers)

    result = follow(plan)
    assert all(receiver.verified for receiver in result.receivers)
    loss, source, receivers = asked[0]
    assert (source, receivers) == (0, [2, 3])
    np.testing.assert_allclose(loss, ncmesh.loss_matrix(LINE), atol=0.15)
    assert ((loss < 1) == (np.abs(np.subtract.outer(range(4), range(4))) == 1)).all()


def test_a_plan_needs_forwarders_and_credits_only_and_decides_what_is_sent():
    def constant(credit):
        return lambda *_: {"forwarders": [1, 2], "tx_credit": {1: credit, 2: credit}, "z": {0: 2}}

    # The source makes up for what its forwarders do not send.
    few, many = (follow(constant(credit), seed=1) for credit in (1, 3))
    assert all(receiver.verified for result in (few, many) for receiver in result.receivers)
    assert few.nodes["a"].airtime_s > 1.5 * many.nodes["a"].airtime_s


def test_a_plan_may_simulate_and_others_run_beside_it():
    def deep(loss, source, receivers):
        inner = follow(ncmesh.pacifier.plan, seed=2)
        assert inner.receivers == expected.receivers
        return ncmesh.pacifier.plan(loss, source, receivers)

    expected = follow(ncmesh.pacifier.plan, seed=2)
    short = {"traffic": {**LINE["traffic"], "size": "2kB"}}
    results = []
    runs = [
        threading.Thread(target=lambda: results.append(ncmesh.run(LINE | short, plan=deep)))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(results) == 2
    assert results[0].trace_hash == results[1].trace_hash


class OddError(Exception):
    """One that nobody else raises."""


def test_what_the_function_raises_ends_the_run():
    calls = []

    def plan(*_):
        calls.append(1)
        raise OddError("no idea")

    with pytest.raises(OddError, match="no idea"):
        follow(plan)
    assert len(calls) == 1
    # The next run is one like any other.
    assert ncmesh.run(LINE, scheme="pacifier").receivers[0].verified


ANSWER = {"forwarders": [1, 2], "tx_credit": {1: 1.0, 2: 1.0}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "plan: forwarders: "),
        ({"tx_credit": {}}, "plan: forwarders: .*KeyError"),
        (ANSWER | {"forwarders": "all"}, "plan: forwarders: "),
        (ANSWER | {"forwarders": [1, 4]}, "plan: forwarder 4: allowed is 0 to 3"),
        (ANSWER | {"forwarders": [1, -1]}, "plan: forwarders: "),
        (ANSWER | {"forwarders": [1, 1]}, "plan: forwarder 1 is listed twice"),
        (ANSWER | {"tx_credit": {1: 1.0}}, "plan: forwarder 2 has no tx_credit"),
        (
            ANSWER | {"tx_credit": {1: 1.0, 2: 1e9}},
            "tx_credit.2. = 1000000000: allowed is 0 to 255",
        ),
        (ANSWER | {"tx_credit": {1: 1.0, 2: -1}}, "tx_credit.2. = -1: "),
        (ANSWER | {"tx_credit": {1: float("nan"), 2: 1}}, "tx_credit.1. = NaN: "),
        (ANSWER | {"forwarders": [0], "tx_credit": {0: 1}}, "plan: forwarder 0 is the source"),
        (ANSWER | {"z": {0: float("inf")}}, "plan: z.0. = inf: "),
        (ANSWER | {"z": 3}, "plan: z: "),
        (ANSWER | {"parent": {1: "a"}}, "plan: parent: "),
    ],
)
def test_an_answer_that_cannot_be_followed_is_a_value_error(answer, message):
    with pytest.raises(ValueError, match=message):
        follow(lambda *_: answer)


def test_a_plan_belongs_to_no_other_scheme():
    with pytest.raises(ValueError, match='plan: the scheme "more" makes its own'):
        follow(ncmesh.pacifier.plan, scheme="more")
    with pytest.raises(ncmesh.ScenarioError, match="needs `plan`"):
        ncmesh.run(LINE, scheme="planned")
    with pytest.raises(ncmesh.ScenarioError, match="needs `plan`"):
        ncmesh.check(LINE, scheme="planned")
    with pytest.raises(ncmesh.ScenarioError, match="plan: allowed is a function"):
        follow({"forwarders": []})
    assert "planned" not in dict(ncmesh._ncmesh.schemes())
    assert follow(ncmesh.pacifier.plan, scheme="planned").scheme == "planned"


def test_settings_of_the_scheme_are_checked():
    with pytest.raises(ncmesh.ScenarioError, match="generation"):
        follow(ncmesh.pacifier.plan, set={"protocol.planned.generation": 0})
    small = follow(ncmesh.pacifier.plan, set={"protocol.planned.symbol_size": 100})
    assert small.transmissions > 2 * follow(ncmesh.pacifier.plan).transmissions
