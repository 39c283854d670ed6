"""
Arithmetic in GF(2), GF(2^4) and GF(2^8) on NumPy arrays of one element per entry.

Fields are named `gf2`, `gf16` (modulo x^4 + x + 1) and `gf256` (modulo x^8 + x^4 + x^3 + x + 1).
Arguments are arrays of integers, or convert to one. An entry that is no element of the field is a
`ValueError`. Results are `uint8`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncmesh import _ncmesh

Elements = NDArray[np.uint8]


def add(a: ArrayLike, b: ArrayLike, field: str = "gf256") -> Elements:
    """Sums, which are differences too, of elements pair by pair; shapes broadcast."""
    return np.bitwise_xor(_elements(a, field), _elements(b, field))


def multiply(a: ArrayLike, b: ArrayLike, field: str = "gf256") -> Elements:
    """Products of elements pair by pair; shapes broadcast."""
    left, right = np.broadcast_arrays(_elements(a, field), _elements(b, field))
    return _ncmesh.field_multiply(left.ravel(), right.ravel(), field).reshape(left.shape)


def inverse(a: ArrayLike, field: str = "gf256") -> Elements:
    """Inverse of each element; `ZeroDivisionError` where there is a 0."""
    elements = _elements(a, field)
    return _ncmesh.field_inverse(elements.ravel(), field).reshape(elements.shape)


def matmul(a: ArrayLike, b: ArrayLike, field: str = "gf256") -> Elements:
    """Product of an n x k and a k x m matrix."""
    return _ncmesh.field_matmul(_matrix(a, field), _matrix(b, field), field)


def rank(a: ArrayLike, field: str = "gf256") -> int:
    """Rank of a matrix."""
    return _ncmesh.field_rank(_matrix(a, field), field)


def _elements(a: ArrayLike, field: str) -> Elements:
    given: NDArray[Any] = np.asarray(a)
    order = _ncmesh.field_order(field)
    if given.dtype.kind not in "iu" and given.size > 0:
        raise ValueError(f"elements of a field are integers, not {given.dtype}")
    if given.size > 0 and (given.min() < 0 or given.max() >= order):
        raise ValueError(f"an entry is no element of {field}: allowed is 0 to {order - 1}")
    return np.ascontiguousarray(given, dtype=np.uint8).reshape(given.shape)


def _matrix(a: ArrayLike, field: str) -> Elements:
    elements = _elements(a, field)
    if elements.ndim != 2:
        raise ValueError(f"a matrix has 2 dimensions, not {elements.ndim}")
    return elements
