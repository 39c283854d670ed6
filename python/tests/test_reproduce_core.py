"""Experiments on CORE's testbed: its scenario, and how generations are timed."""

import pytest

from ncmesh.reproduce.claims import Spread
from ncmesh.reproduce.core import fig9, testbed
from ncmesh.reproduce.experiment import Rows


def test_generations_are_timed_from_end_to_end():
    # The second and the third end within one sample.
    seconds, delivered = [0.0, 1.0, 2.0, 3.0, 4.0], [0, 63, 64, 193, 255]
    assert testbed.durations(seconds, delivered) == [1.0, 0.0]
    assert testbed.durations(seconds, [0, 1, 2, 3, 4]) == []


@pytest.mark.parametrize("access", testbed.ACCESS)
def test_core_carries_most_in_the_cross(access):
    found = {scheme: testbed.run(scheme, access, 0.3, 5.0, seed=1) for scheme in testbed.SCHEMES}
    rates = {scheme: of.throughput_bps for scheme, of in found.items()}
    assert rates["core"] > 1.2 * max(rate for scheme, rate in rates.items() if scheme != "core")
    assert found["core"].transmissions < found["forwarding"].transmissions
    assert all(of.generations_s for of in found.values())


def test_the_optimum_falls_with_loss_from_the_most_that_any_scheme_reaches():
    values = {"core": 10.0, "core_no_recoding": 8.0, "cope": 12.0, "forwarding": 6.0}
    computed = {
        (scheme, "slotted", e, seed): testbed.Measured(value * (1 - e) + seed, 2.0, ())
        for scheme, value in values.items()
        for e in testbed.LOSSES
        for seed in (0, 2)
    }
    rows = Rows({}, computed)
    # Two values d apart have a standard deviation of d / sqrt 2.
    assert testbed.throughput(rows, "core", "slotted", 0.5) == Spread(
        pytest.approx(6 - 2**0.5), 6.0, pytest.approx(6 + 2**0.5), "± a standard deviation"
    )
    optimum = fig9._optimum(rows, "slotted")
    assert optimum == pytest.approx([13.0 * (1 - e) for e in testbed.LOSSES])
