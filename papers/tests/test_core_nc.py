import itertools
import math
import re
import signal
import threading

import numpy as np
import pytest

from ncmesh import gf
from ncmesh_papers.core_nc import SCHEMES, decode_probability, efficiency, simulate, throughput

CORE = SCHEMES[3:]
LOSSES = np.linspace(0, 0.9, 10)


def assert_near(values, expected, sigmas=4.0):
    """The mean of trials equals the expected value within statistical error."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - expected) <= sigmas * error + 1e-9


def test_without_loss_forwarding_takes_two_and_coding_one_and_a_half():
    assert [efficiency(scheme, 0, 0) for scheme in SCHEMES] == [2, 3, 1.5, 1.5, 1.5, 1.5]
    assert [efficiency(scheme, 0, 0, whole=True) for scheme in SCHEMES] == [
        2,
        3,
        1.5,
        1.5,
        1.5,
        1.5,
    ]


def test_forwarding_is_what_each_hop_takes():
    assert efficiency("forwarding_unconstrained", 0.5, 1.0) == 4
    assert efficiency("forwarding_constrained", 0.5, 0.3) == 6


def sums(e_x, e_oh):
    """Return eqs. 6 and 7 from their series."""
    weights = [(n, e_x ** (n - 1) * (1 - e_x)) for n in range(1, 2000)]
    heard = sum((1 - e_oh**n) * w for n, w in weights)
    direct = 0.5 + 0.5 * sum((1 - e_x**n) * w for n, w in weights)
    return heard, direct, 0.5 + 0.5 * heard


@pytest.mark.parametrize(
    ("e_x", "e_oh"), [(0.2, 0.5), (0.5, 0.2), (0.9, 0.9), (0.0, 0.4), (0.3, 0.0)]
)
def test_cope_and_core_without_recoding_are_those_of_the_series(e_x, e_oh):
    heard, direct, printed = sums(e_x, e_oh)
    once = 1 / (1 - e_x)
    assert efficiency("cope", e_x, e_oh) == pytest.approx(1.5 * once / (direct * heard))
    assert efficiency("cope", e_x, e_oh, equations="printed") == pytest.approx(
        2 * once / (printed * heard)
    )

    def degrees(p, direct):
        return min(heard * p, 64) + min(direct * p, 128)

    p = efficiency("core_no_feedback_no_recoding", e_x, e_oh) * 128 * (1 - e_x) / 3
    assert degrees(p, direct) == pytest.approx(128)
    whole = efficiency("core_no_feedback_no_recoding", e_x, e_oh, whole=True) * 128 * (1 - e_x) / 3
    assert whole == pytest.approx(math.ceil(p - 1e-9))
    p = (
        efficiency("core_no_feedback_no_recoding", e_x, e_oh, equations="printed")
        * 128
        * (1 - e_x)
        / 3
    )
    assert degrees(p, printed) == pytest.approx(128)


def test_where_coding_no_longer_pays():
    """Derived by hand: each scheme's efficiency against 2 / (1 - e_x)."""

    def pays(scheme, e_x, e_oh):
        return efficiency(scheme, e_x, e_oh, 255) < efficiency("forwarding_unconstrained", e_x, 0)

    cope = (math.sqrt(28) - 4) / 6  # 3 e^2 + 4 e = 1
    for scheme, limit in (("cope", cope), ("core_no_feedback_no_recoding", 0.5)):
        assert pays(scheme, limit - 0.01, limit - 0.01)
        assert not pays(scheme, limit + 0.01, limit + 0.01)
    for e_x in (0.1, 0.3, 0.5):
        assert pays("core_no_feedback", e_x, (1 + e_x) / 2 - 0.02)
        assert not pays("core_no_feedback", e_x, (1 + e_x) / 2 + 0.02)
        assert pays("core", e_x, 0.95)
        assert efficiency("core", e_x, 1.0) * (1 - e_x) / 2 == pytest.approx(1, rel=0.04)


def test_as_printed_coding_never_pays_or_never_ends():
    assert efficiency("cope", 0, 0, equations="printed") == 2
    assert (efficiency("core_no_feedback", LOSSES, 0.2, equations="printed") == np.inf).all()
    assert efficiency("core", 0.1, 0.2, equations="printed") == np.inf


def ranks(losses, m, rounds):
    """Rise of i' in each round by eq. 24, from the joint distribution of i1 and i2; for small m."""
    p = 1 - losses
    relay = {(0, 0): 1.0}
    heard = {0: 1.0}
    for _ in range(rounds):
        rise = {}
        for i in heard:
            at_least = sum(w for (a, b), w in relay.items() if a + b >= i)
            above = sum(w for (a, b), w in relay.items() if a + b > i)
            rise[i] = p * ((1 - losses**2) * at_least + losses**2 * above)
        yield sum(heard[i] * rise[i] for i in heard)
        after = dict.fromkeys(range(max(heard) + 2), 0.0)
        for i, weight in heard.items():
            after[i] += weight * (1 - rise[i])
            after[i + 1] += weight * rise[i]
        heard = after
        fresh = dict.fromkeys(itertools.product(range(m + 1), repeat=2), 0.0)
        for (a, b), weight in relay.items():
            for more_a, more_b in itertools.product((0, 1), repeat=2):
                chance = math.prod(p if more else losses for more in (more_a, more_b))
                fresh[min(a + more_a, m), min(b + more_b, m)] += weight * chance
        relay = fresh


@pytest.mark.parametrize(
    ("e_x", "e_oh", "m"), [(0.3, 0.5, 3), (0.0, 0.5, 2), (0.6, 0.1, 4), (0.2, 1.0, 1)]
)
def test_recoding_counts_rounds_as_by_hand(e_x, e_oh, m):
    def fewer(n, p):
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(min(m, n + 1)))

    for scheme in ("core_no_feedback", "core"):
        rank = sent = sent_whole = 0.0
        for k, rise in enumerate(ranks(e_x, m, 200)):
            sends = fewer(k, 1 - e_x) if scheme == "core" else 1.0
            gain = rise + (1 - e_oh) * fewer(k, 1 - e_oh) * sends
            part = min(1.0, (2 * m - rank) / gain)
            sent_whole += 2 * sends + 1
            sent += part * (2 * sends + 1)
            rank += gain
            if rank >= 2 * m - 1e-9:
                break
        assert efficiency(scheme, e_x, e_oh, m) == pytest.approx(sent / (2 * m))
        assert efficiency(scheme, e_x, e_oh, m, whole=True) == pytest.approx(sent_whole / (2 * m))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_arrays_broadcast_and_losses_only_cost(scheme):
    table = efficiency(scheme, LOSSES[:, None], LOSSES[None, :4])
    assert table.shape == (10, 4)
    for i, k in ((0, 0), (3, 1), (9, 3)):
        assert table[i, k] == efficiency(scheme, LOSSES[i], LOSSES[k])
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) >= -1e-9).all()
    assert efficiency(scheme, 1.0, 0.5) == np.inf
    by_generation = efficiency(scheme, 0.3, 0.5, [16, 64, 256])
    # Larger generations waste no more, apart from rounding to whole rounds.
    assert (np.diff(by_generation) <= 1e-9).all()


def test_eq_35_is_the_binomial_tail():
    g, r, x = 60, 0.7, 1.1
    n = math.floor(g / r * x)
    assert n == 94
    tail = sum(math.comb(n, i) * r**i * (1 - r) ** (n - i) for i in range(g, n + 1))
    assert decode_probability(g, r, x) == pytest.approx(tail)
    assert decode_probability(60, 0.7, [1.0, 1.1]) == pytest.approx([0.506, 0.920], abs=5e-4)
    assert decode_probability(60, 0.7, [1.0, 1.1], whole=False) == pytest.approx(
        [0.553, 0.926], abs=5e-4
    )
    # One packet needed: of two sent, of one, and of none.
    assert decode_probability(1, 0.5, [1.0, 0.5, 0.4]) == pytest.approx([0.75, 0.5, 0.0])
    assert decode_probability([[60], [57]], [1.0, 0.57], 1.0).shape == (2, 2)
    assert decode_probability(60, 1.0, 1.0) == 1
    exact = sum(math.comb(100, i) * 0.57**i * 0.43 ** (100 - i) for i in range(57, 101))
    assert decode_probability(57, 0.57, 1.0) == pytest.approx(exact)
    rising = decode_probability(60, 0.7, np.linspace(1, 1.4, 200), whole=False)
    assert (np.diff(rising) > 0).all()


def test_eq_35_is_how_often_enough_arrives():
    rng = np.random.default_rng(1)
    arrived = rng.binomial(math.floor(30 / 0.5 * 1.06), 0.5, size=20000) >= 30
    assert_near(arrived, decode_probability(30, 0.5, 1.06))


def test_throughput_peaks_where_the_paper_says():
    load = np.linspace(0, 1, 901)
    for e, peak, fair in ((0.0, 1 / 2, 2 / 3), (1 / 3, 1 / 3, 4 / 9)):
        carried = throughput("forwarding", load, e)
        assert load[carried.argmax()] == pytest.approx(peak, abs=2e-3)
        assert carried.max() == pytest.approx(
            1 / efficiency("forwarding_unconstrained", e, e), abs=2e-3
        )
        level = 1 / efficiency("forwarding_constrained", e, e)
        assert carried[load > fair + 1e-9] == pytest.approx(level)
        assert (carried[(load > peak) & (load < fair - 2e-3)] > level).all()
    assert throughput("core", [0.1, 0.9], 0.0) == pytest.approx([0.1, 2 / 3])
    assert throughput("cope", 0.9, 0.0) == pytest.approx(2 / 3)
    assert throughput("core", 1.0, 1 / 3) > throughput("cope", 1.0, 1 / 3)
    assert throughput("core", 1.0, 1.0) == 0
    assert throughput("forwarding", [[0.1], [0.2]], [0.0, 0.1]).shape == (2, 2)


@pytest.mark.parametrize("until", ["one", "both"])
@pytest.mark.parametrize(("e_x", "e_oh"), [(0.0, 0.0), (0.3, 0.5), (0.6, 0.6)])
def test_forwarding_in_trials_is_the_analysis(e_x, e_oh, until):
    for scheme in SCHEMES[:2]:
        trials = simulate(scheme, e_x, e_oh, generation=32, until=until)
        assert_near(trials, efficiency(scheme, e_x, e_oh))


@pytest.mark.parametrize(("e_x", "e_oh"), [(0.0, 0.0), (0.1, 0.1), (0.3, 0.5), (0.5, 0.2)])
def test_cope_in_trials_is_the_analysis_of_one_destination(e_x, e_oh):
    trials = simulate("cope", e_x, e_oh, generation=32, until="one")
    assert_near(trials, efficiency("cope", e_x, e_oh))


@pytest.mark.parametrize(("e_x", "e_oh"), [(0.0, 0.2), (0.3, 0.5), (0.5, 0.5), (0.3, 1.0)])
def test_core_without_recoding_in_trials_is_the_analysis_of_one_destination(e_x, e_oh):
    scheme = "core_no_feedback_no_recoding"
    trials = simulate(scheme, e_x, e_oh, until="one", trials=400)
    expected = efficiency(scheme, e_x, e_oh)
    # Eq. 13 has no whole packets: up to half of the last round's transmissions are too many.
    half_a_round = 1.5 / (1 - e_x) / 128
    error = np.std(trials, ddof=1) / math.sqrt(len(trials))
    assert expected - 4 * error - 1e-9 <= trials.mean() <= expected + half_a_round + 4 * error


@pytest.mark.parametrize("scheme", CORE[1:])
@pytest.mark.parametrize(("e_x", "e_oh"), [(0.1, 0.3), (0.3, 0.5), (0.5, 0.5)])
def test_analysis_of_recoding_is_a_lower_bound_and_a_tight_one(scheme, e_x, e_oh):
    trials = simulate(scheme, e_x, e_oh, until="one", trials=300)
    error = np.std(trials, ddof=1) / math.sqrt(len(trials))
    ratio = trials.mean() / efficiency(scheme, e_x, e_oh)
    assert 1 - 4 * error < ratio < 1.08


def test_trials_are_of_their_seed_and_number():
    def run(**change):
        return simulate("core", 0.2, 0.3, **{"generation": 16, "trials": 30, "seed": 5, **change})

    assert (run() == run()).all()
    assert (run() == run(trials=60)[:30]).all()
    assert (run() != run(seed=6)).any()
    assert run(field="gf2").mean() > run(field="gf16").mean() > run().mean()
    assert (run(until="one") <= run()).all()


def test_ranks_are_those_of_real_coefficients():
    # Without loss and overhearing D1 has full rank when a random matrix with 2 x 8 columns is
    # regular: over GF(2) after 1.6 rows more than columns, over GF(2^8) after hardly any. A round
    # has 3 transmissions.
    field_overhead = {}
    for field in ("gf2", "gf256"):
        trials = simulate(
            "core_no_feedback", 0.0, 1.0, generation=8, field=field, until="one", trials=2000
        )
        field_overhead[field] = trials.mean() * 16 / 3 - 16
    rng = np.random.default_rng(1)
    needed = []
    for _ in range(400):
        rows = rng.integers(2, size=(40, 16))
        needed.append(next(n for n in range(16, 41) if gf.rank(rows[:n], "gf2") == 16))
    assert field_overhead["gf256"] < 0.05
    # D1 needs flow 1 only, and the relay's first packets combine what it has so far.
    assert field_overhead["gf2"] == pytest.approx(np.mean(needed) - 16, abs=0.8)


def test_a_flow_that_never_arrives_needs_infinite_transmissions():
    assert (simulate("cope", 0.0, 1.0, generation=2, trials=2) == np.inf).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: efficiency("corn", 0, 0),
            "no scheme is called 'corn': there are forwarding_unconstrained",
        ),
        (lambda: efficiency("core", 1.5, 0), "e_x = 1.5: allowed is 0 to 1"),
        (lambda: efficiency("core", 0, [0.1, math.nan]), "e_oh = nan: allowed is 0 to 1"),
        (lambda: efficiency("core", 0, 0, 0), "generation = 0: allowed is 1 and more"),
        (
            lambda: efficiency("core", 0, 0, 2.5),
            "generation is a whole number of packets, not float64",
        ),
        (lambda: efficiency("cope", 0, 0, equations="wrong"), "equations = 'wrong': allowed is"),
        (lambda: decode_probability(60, 0.0, 1.0), "r = 0: allowed is above 0"),
        (lambda: decode_probability(60, 0.7, -1.0), "x: allowed is 0 and more"),
        (lambda: throughput("forwarding", -0.1, 0.0), "offered: allowed is 0 and more"),
        (lambda: throughput("flood", 0.1, 0.0), "no scheme is called 'flood'"),
        (lambda: simulate("flood", 0.1, 0.0), 'no scheme is called "flood": there are forwarding'),
        (lambda: simulate("core", -0.1, 0.0), "e_x = -0.1: allowed is 0 to 1"),
        (
            lambda: simulate("core", 0.1, 0.0, generation=257),
            "generation = 257: allowed is 1 to 256",
        ),
        (lambda: simulate("core", 0.1, 0.0, seed=-1), "seed = -1: allowed is 0 to"),
        (lambda: simulate("core", 0.1, 0.0, trials=0), "trials = 0: allowed is 1 to"),
        (lambda: simulate("core", 0.1, 0.0, field="gf3"), 'no field is called "gf3"'),
        (lambda: simulate("core", 0.1, 0.0, until="all"), 'until = "all": allowed is both, one'),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_ctrl_c_ends_trials_without_end():
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simulate("core", 0.2, 0.2, trials=2**32)
    timer.join()
