import math
import signal
import threading
from pathlib import Path

import cvxpy
import numpy as np
import pytest

from ncmesh_papers.multirate import optimum, simulate
from ncmesh_papers.reproduce.multirate.bounds import compare
from ncmesh_papers.reproduce.multirate.setting import figure_3

POISSON = {"rate": 1.0}
LOG = {"name": "log", "xi": 0.2}


def rates(found):
    return [rate for session in found["rates"] for rate in session.values()]


def test_figure_3_shares_its_link_as_the_optimum_does():
    network = figure_3(0.6, POISSON)
    best = optimum(network)
    assert rates(best) == pytest.approx([0.4, 0.4, 0.6, 0.6, 0.6], abs=1e-6)
    assert best["utility"] == pytest.approx(2.6, abs=1e-6)
    assert best["drops"][1][1] + best["drops"][1][2] == pytest.approx(0.4, abs=1e-6)
    for policy in ("mmt", "mmu", "mmu_q", "mmu_w"):
        run = simulate(network, policy, 100, None, 50_000, 1, warm_up=20_000)
        assert rates(run) == pytest.approx(rates(best), abs=0.005), policy


@pytest.mark.parametrize(("policy", "seed"), [("mmt", 1), ("mmt", 5), ("mmu", 3), ("mmu_q", 2)])
def test_random_trees_are_within_a_percent_of_the_optimum(policy, seed):
    found = compare(policy, 400, seed, 600_000)
    assert found["gap"] < 0.01
    assert max(found[queue] for queue in "QDZ") <= 1


def test_a_seed_gives_one_result():
    def run(seed):
        found = simulate(figure_3(0.5, POISSON), "mmu", 25, 5, 3_000, seed, LOG, series=10)
        return found["rates"], found["queues"], found["series"]["Z"].tolist()

    assert run(4) == run(4)
    assert run(4) != run(5)


def log(x):
    return math.log(x + 0.2)


@pytest.mark.parametrize(
    "utilities",
    [
        log,
        (log, lambda x: 1 / (x + 0.2)),
        lambda x: cvxpy.log(x + 0.2),
        lambda x: np.log(x + 0.2),
        {"b": LOG, (0, "c"): LOG, "d": log, "e": {"value": log}},
        [LOG, log],
    ],
)
def test_a_utility_may_be_given_in_many_ways(utilities):
    network = figure_3(0.6, POISSON)
    expected = optimum(network, LOG)
    assert rates(optimum(network, utilities)) == pytest.approx(rates(expected), abs=1e-4)
    run = simulate(network, "mmu", 50, None, 30_000, 1, utilities, warm_up=10_000)
    assert run["utility"] == pytest.approx(expected["utility"], abs=0.02)


@pytest.mark.parametrize(
    ("utility", "expected"),
    [
        # A link of 1 with 3 receivers on one session, 1 on the other.
        ("sum", [1, 0]),
        ({"name": "alpha_fair", "alpha": 2, "xi": 0.01}, [0.6367, 0.3633]),
        ({"name": "max_min", "alpha": 16, "xi": 0.5}, [0.535, 0.465]),
        ({"name": "linear", "minimum": 0.3}, [0.7, 0.3]),
    ],
)
def test_optima_derived_by_hand(utility, expected):
    fan = [{"from": "b", "to": name, "capacity": 1} for name in "cde"]
    network = {
        "links": [{"from": "a", "to": "b", "capacity": 1}, *fan],
        "sessions": [
            {
                "source": "a",
                "receivers": ["c", "d", "e"],
                "tree": [0, 1, 2, 3],
                "rate": 1,
                "arrivals": "constant",
            },
            {"source": "a", "receivers": ["b"], "tree": [0], "rate": 1, "arrivals": "constant"},
        ],
    }
    found = optimum(network, utility)["rates"]
    assert [found[0]["c"], found[1]["b"]] == pytest.approx(expected, abs=2e-3)


def test_a_minimum_gets_the_penalty_that_it_needs():
    network = figure_3(1.0, {"layers": [0.2, 0.8]})
    run = simulate(
        network, "mmu", 25, 5, 100_000, 1, {"name": "linear", "minimum": 0.2}, warm_up=20_000
    )
    assert run["feasible"]
    assert 0.5 < run["parameters"]["K"]["value"] <= 2
    assert run["rates"][0]["c"] == pytest.approx(0.2, abs=0.01)
    base, enhancement = run["layers"][0]["c"]
    assert base > 0.19
    assert enhancement < 0.01
    assert run["stream_layers"][1] == pytest.approx([0.2, 0.8], abs=0.01)


def test_minima_that_cannot_be_met_have_the_least_shortfall():
    network = figure_3(0.6, POISSON)
    wanted = {"name": "linear", "minimum": 0.7}
    best = optimum(network, wanted)
    assert not best["feasible"]
    # The minima add up to 3.5, and 2.6 are possible.
    assert best["shortfall"] == pytest.approx(0.9, abs=2e-3)
    run = simulate(network, "mmu", 100, None, 60_000, 1, wanted, warm_up=30_000)
    assert not run["feasible"]
    assert sum(max(0, 0.7 - rate) for rate in rates(run)) == pytest.approx(0.9, abs=0.01)


def test_a_radio_is_shared_in_time():
    radio = {"from": "s", "wireless": True}
    network = {
        "links": [radio | {"to": "near", "capacity": 3}, radio | {"to": "far", "capacity": 1}],
        "sessions": [
            {
                "source": "s",
                "receivers": ["near", "far"],
                "tree": [0, 1],
                "rate": 2,
                "arrivals": "bernoulli",
            }
        ],
    }
    wanted = {"name": "linear", "minimum": 0.5}
    best = optimum(network, wanted)
    assert rates(best) == pytest.approx([1.5, 0.5], abs=1e-5)
    run = simulate(network, "mmu_w", 100, None, 100_000, 1, wanted, warm_up=50_000)
    assert rates(run) == pytest.approx([1.5, 0.5], abs=0.03)


def test_series_sample_everything_at_equal_intervals():
    run = simulate(figure_3(1.0, POISSON), "mmu", 25, 5, 1_050, 1, series=100)
    series = run["series"]
    assert series["slots"].tolist() == list(range(100, 1_001, 100))
    shapes = {key: series[key].shape for key in ("Q", "D", "Z", "received", "entered")}
    assert shapes == {
        "Q": (10, 7),
        "D": (10, 7),
        "Z": (10, 5),
        "received": (10, 5),
        "entered": (10, 2),
    }
    assert (
        series["Q"].max() <= max(queue["Q"]["max"] for queue in run["queues"]) <= run["bounds"]["Q"]
    )
    assert simulate(figure_3(1.0, POISSON), "mmt", 25, 5, 100, 1, series=10)["series"][
        "Z"
    ].shape == (10, 0)


def test_numpy_numbers_are_accepted():
    network = {
        "links": [{"from": np.int64(0), "to": np.int64(1), "capacity": np.float32(0.5)}],
        "sessions": [
            {
                "source": np.int64(0),
                "receivers": np.array([1]),
                "tree": np.array([0]),
                "rate": np.float64(1),
                "arrivals": "constant",
            }
        ],
    }
    run = simulate(
        network, "mmt", np.float64(20), np.int64(3), np.int64(10_000), np.int64(1), warm_up=1_000
    )
    assert run["rates"] == [{1: pytest.approx(0.5, abs=1e-3)}]
    assert optimum(network)["rates"] == [{1: pytest.approx(0.5)}]


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        (math.log, "at rate 0 it is nan; use it at x [+] xi"),
        (math.sqrt, "slope is unbounded at rate 0"),
        (
            {"name": "log"},
            "receiver b of session 0: log: its slope is unbounded at rate 0: give xi",
        ),
        (lambda x: x * x, "not concave: its slope grows"),
        (lambda x: -x, "not increasing"),
        ((log, lambda _: math.nan), "slope at rate 0 is NaN"),
        ((log, lambda x: 9 - x), "its values grow by"),
        ("logg", 'no utility is called "logg"'),
        (3, "utility 3: needed is a name"),
        ({"c": LOG}, "there is none for receiver b of session 0"),
        ([LOG], "there is none for session 1"),
        ({"name": "linear", "minimum": math.nan}, "minimum = nan"),
        ({"name": "linear", "penalty": 1.0}, "go together"),
    ],
)
def test_invalid_utilities_are_refused(utilities, message):
    with pytest.raises(ValueError, match=message):
        simulate(figure_3(0.6, POISSON), "mmu", 25, 5, 100, 1, utilities)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "mmx"}, "policy = mmx: allowed is mmt, mmu, mmu_q, mmu_w"),
        ({"V": 0}, "V = 0: allowed is above 0"),
        ({"V": math.nan}, "V = NaN"),
        ({"V": "much"}, "V = much: allowed is a number"),
        ({"d_max": 1}, "d_max = 1"),
        ({"d_max": 2.5}, "d_max = 2.5: allowed is a whole number"),
        ({"slots": 0}, "slots = 0"),
        ({"seed": -1}, "seed = -1: allowed is a whole number"),
        ({"warm_up": 100}, "must come after the warm-up"),
        ({"series": 0}, "series = 0"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"zeta": 0.1}, "zeta = 0.1: needed is at least nu_max"),
        ({"policy": "mmt", "utilities": LOG}, "policy mmt"),
    ],
)
def test_invalid_settings_are_refused(change, message):
    setting = {"policy": "mmu", "V": 25, "d_max": 5, "slots": 100, "seed": 1} | change
    with pytest.raises(ValueError, match=message):
        simulate(figure_3(0.6, POISSON), **setting)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": 3}, "links = 3: needed is a list"),
        ({"links": []}, "links: there are none"),
        ({"links": [{"from": "a", "capacity": 1}]}, r"links\[0\]: missing field `to`"),
        ({"routes": []}, "no routes"),
        ({"link": (4, {"capacity": 0})}, r"links\[4\]: capacity = 0: allowed is above 0"),
        ({"link": (4, {"capacity": math.nan})}, r"links\[4\]: capacity = NaN"),
        ({"link": (4, {"colour": "red"})}, r"links\[4\]: unknown field `colour`"),
        ({"link": (4, {"wireless": True})}, r"links\[4\] is wireless: only policy mmu_w"),
        ({"session": {"tree": [0, 3]}}, "link 3 begins at b, which the tree does not reach from 1"),
        ({"session": {"tree": [0, 2, 2]}}, "reached by another link"),
        ({"session": {"tree": [0, 2, 17]}}, "there is no link 17"),
        ({"session": {"receivers": ["b", "x"]}}, "receiver x is not reached"),
        ({"session": {"receivers": []}}, "name one at least"),
        ({"session": {"rate": math.inf}}, "rate = inf"),
        ({"session": {"arrivals": "pareto"}}, "unknown variant `pareto`"),
        ({"changes": [{"slot": 1, "link": 9, "capacity": 1}]}, r"changes\[0\]: there is no link 9"),
    ],
)
def test_invalid_networks_are_refused(change, message):
    network = figure_3(0.6, POISSON)
    if "link" in change:
        index, link = change.pop("link")
        network["links"][index] |= link
    network["sessions"][0] |= change.pop("session", {})
    network |= change
    with pytest.raises(ValueError, match=message):
        simulate(network, "mmu", 25, 5, 100, 1)
    with pytest.raises(ValueError, match="needed is a dict"):
        optimum([network])


def test_a_run_is_interrupted_and_leaves_other_threads_alone():
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simulate(figure_3(0.6, POISSON), "mmt", 25, 5, 10**12, 1)
    timer.join()


def test_the_documented_example_runs():
    page = (Path(__file__).parents[1] / "README.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    found: dict = {}
    exec(compile(example, "README.md", "exec"), found)
    assert rates(found["run"]) == pytest.approx(rates(found["best"]), abs=0.02)
