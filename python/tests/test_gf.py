import numpy as np
import pytest

from ncmesh import gf

POLYNOMIAL = {"gf2": (1, 0b11), "gf16": (4, 0x13), "gf256": (8, 0x11B)}


def product(a, b, field):
    """By the definition: polynomials over GF(2) modulo one."""
    bits, modulus = POLYNOMIAL[field]
    total = 0
    for i in range(bits):
        total ^= (a << i) * (b >> i & 1)
    for i in reversed(range(bits, 2 * bits)):
        if total >> i & 1:
            total ^= modulus << (i - bits)
    return total


@pytest.mark.parametrize("field", POLYNOMIAL)
def test_products_and_inverses_are_those_of_the_definition(field):
    order = 2 ** POLYNOMIAL[field][0]
    all_of_it = np.arange(order)
    table = gf.multiply(all_of_it[:, None], all_of_it, field)
    expected = [[product(a, b, field) for b in range(order)] for a in range(order)]
    assert (table == expected).all()
    units = all_of_it[1:]
    assert (gf.multiply(units, gf.inverse(units, field), field) == 1).all()
    assert (gf.add(all_of_it, all_of_it, field) == 0).all()


@pytest.mark.parametrize("field", POLYNOMIAL)
def test_matmul_is_sums_of_products(field):
    rng = np.random.default_rng(1)
    order = 2 ** POLYNOMIAL[field][0]
    a, b = rng.integers(order, size=(3, 5)), rng.integers(order, size=(5, 40))
    expected = np.zeros((3, 40), np.uint8)
    for k in range(5):
        expected = gf.add(expected, gf.multiply(a[:, k : k + 1], b[k], field), field)
    assert (gf.matmul(a, b, field) == expected).all()


@pytest.mark.parametrize("field", POLYNOMIAL)
def test_a_product_of_thin_matrices_has_their_rank(field):
    identity = np.eye(20, dtype=np.int64)
    assert gf.rank(identity, field) == 20
    rng = np.random.default_rng(2)
    tall = np.vstack([rng.integers(2, size=(290, 6)), identity[:6, :6]])
    wide = np.hstack([identity[:6, :6], rng.integers(2, size=(6, 300))])
    assert gf.rank(gf.matmul(tall, wide, field), field) == 6
    assert gf.rank(np.zeros((4, 0), np.uint8), field) == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gf.add([2], [1], "gf2"), ValueError, "no element of gf2: allowed is 0 to 1"),
        (lambda: gf.multiply([-1], [1]), ValueError, "no element of gf256"),
        (lambda: gf.multiply([0.5], [1]), ValueError, "integers, not float64"),
        (lambda: gf.multiply([1, 2], [1, 2, 3]), ValueError, "broadcast"),
        (lambda: gf.inverse([3, 0]), ZeroDivisionError, "0 has no inverse"),
        (lambda: gf.matmul([[1, 2]], [[1, 2]]), ValueError, "1 x 2 times 1 x 2"),
        (lambda: gf.rank([1, 2]), ValueError, "2 dimensions, not 1"),
        (lambda: gf.rank([[1]], "gf3"), ValueError, "no field is called"),
    ],
)
def test_misuse_is_told(call, error, message):
    with pytest.raises(error, match=message):
        call()
