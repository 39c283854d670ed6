"""The TCP model against the paper's closed forms and its own fixed point."""

import math

import numpy as np
import pytest

from ncmesh_papers.tcp_model import collision, end_to_end_loss, gain, throughput, udp_gain

# The testbed's packets at 6 Mbit/s, and a round trip over its line.
PACKET_BITS, RTT_S = 1020 * 8, 0.03


def test_collisions_are_those_of_eq_5_and_6():
    rate = np.array([0.0, 0.1, 0.5, 1.0])
    printed = 3 * (1 - rate) * rate**2 + rate**3
    assert collision(rate) == pytest.approx(printed)
    assert collision(rate, exact=False) == pytest.approx(3 * rate**2)
    assert collision(0.1, 5, exact=False) == pytest.approx(10 * 0.01)
    # Per packet: neither of the two other stations sends.
    assert collision(0.1, loss="packet") == pytest.approx(1 - 0.9**2)


def test_losses_are_those_of_eq_1_to_4():
    assert end_to_end_loss(6, 0.01, 0.02) == pytest.approx(1 - (0.99 * 0.98) ** 12)
    assert end_to_end_loss(6, 0.01, exact=False) == pytest.approx(0.12)


@pytest.mark.parametrize("coded", [False, True])
def test_approximations_are_eq_14_and_15(coded):
    n = np.arange(1, 20)
    share = PACKET_BITS / 6e6 / RTT_S
    x = np.sqrt((2 if coded else 1) * share / np.sqrt(3 * n))
    assert throughput(n, RTT_S, PACKET_BITS, coded) == pytest.approx(x * 6e6)


def test_gains_are_sqrt_2_for_tcp_its_cube_root_by_packet_and_2_for_udp():
    assert gain(6, RTT_S, PACKET_BITS) == pytest.approx(math.sqrt(2))
    assert gain(6, RTT_S, PACKET_BITS, stations=5) == pytest.approx(math.sqrt(2))
    assert gain(6, RTT_S, PACKET_BITS, loss="packet") == pytest.approx(2 ** (1 / 3))
    assert udp_gain([0.01, 0.1, 0.4]) == pytest.approx(2.0)
    assert udp_gain(0.1, loss="packet") == pytest.approx(2.0)


def test_with_other_losses_the_gain_vanishes():
    gains = gain(6, 0.3, PACKET_BITS, p_e=[0.0, 0.001, 0.01, 0.1], method="exact")
    assert np.all(np.diff(gains) < 0)
    assert gains[0] > 1.35
    assert gains[-1] < 1.01


@pytest.mark.parametrize("loss", ["slot", "packet"])
@pytest.mark.parametrize("coded", [False, True])
def test_the_exact_throughput_is_a_fixed_point(coded, loss):
    draw = np.random.default_rng(1)
    n, stations = draw.integers(1, 30, 500), draw.integers(2, 8, 500)
    rtt, p_e = 10 ** draw.uniform(-3, 0, 500), draw.uniform(0, 0.3, 500) * draw.integers(0, 2, 500)
    x = throughput(n, rtt, PACKET_BITS, coded, p_e, stations, loss=loss, method="exact") / 6e6
    k = 2 if coded else 1
    p = end_to_end_loss(n, collision(np.minimum(x / k, 1.0), stations, loss=loss), p_e)
    law = PACKET_BITS / 6e6 / (rtt * np.sqrt(p / 2))
    # The law and the losses balance, or every station sends in every slot.
    full = np.isclose(x, k) & (law > x)
    assert np.all(np.isclose(law, x, rtol=1e-6) | full)
    assert not np.all(full)


def test_arrays_broadcast():
    found = throughput(np.arange(1, 4)[:, None], [0.01, 0.02], PACKET_BITS, True, method="exact")
    assert found.shape == (3, 2)
    assert found[1, 1] == throughput(2, 0.02, PACKET_BITS, True, method="exact")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_hops": 0}, "n_hops"),
        ({"rtt_s": 0}, "rtt_s"),
        ({"p_e": 1.5}, "p_e"),
        ({"stations": 1}, "stations"),
        ({"rtt_s": math.nan}, "rtt_s"),
        ({"method": "best"}, "method"),
        ({"loss": "all"}, "loss"),
    ],
)
def test_invalid_arguments_are_refused(wrong, message):
    good = {"n_hops": 6, "rtt_s": RTT_S, "packet_bits": PACKET_BITS, "coded": True}
    with pytest.raises(ValueError, match=message):
        throughput(**{**good, **wrong})
