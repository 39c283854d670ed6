"""Input that every plan refuses."""

import numpy as np
import pytest

import ncmesh

GOOD = np.full((3, 3), 0.5)


@pytest.mark.parametrize(
    "plan", [ncmesh.pacifier.plan, ncmesh.more.plan, ncmesh.more.largest_threshold]
)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), 0, [1]), r"shape \[3\]; needed is n by n"),
        ((np.ones((2, 3)), 0, [1]), r"shape \[2, 3\]"),
        ((np.ones((0, 0)), 0, [1]), r"n from 1 to 65534"),
        (([[0, np.nan], [1, 0]], 0, [1]), r"loss\[0\]\[1\] = NaN"),
        (([[0, 1.5], [1, 0]], 0, [1]), r"loss\[0\]\[1\] = 1.5"),
        (([[0, 1], [-0.1, 0]], 0, [1]), r"loss\[1\]\[0\] = -0.1"),
        (([[0, 1], [-np.inf, 0]], 0, [1]), r"loss\[1\]\[0\] = -inf"),
        ((GOOD, 3, [1]), "source 3: allowed is 0 to 2"),
        ((GOOD, -1, [1]), "source -1: allowed is 0 to 2"),
        ((GOOD, 0, [7]), "receiver 7: allowed is 0 to 2"),
        ((GOOD, 0, [2**70]), "receiver"),
        ((GOOD, 0, []), "name one at least"),
        ((GOOD, 0, [1, 1]), "nor named twice"),
        ((GOOD, 0, [0]), "must not be the source"),
        (("loss", 0, [1]), "to float"),
        (([[0, 1], [1]], 0, [1]), "inhomogeneous"),
    ],
)
def test_misuse_is_a_value_error(plan, arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(*arguments)


@pytest.mark.parametrize("plan", [ncmesh.pacifier.plan, ncmesh.more.plan])
def test_arguments_may_come_from_numpy(plan):
    loss = np.array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]], dtype=np.float32)
    assert plan(loss, np.int64(0), np.array([2])) == plan(loss.tolist(), 0, (2,))
