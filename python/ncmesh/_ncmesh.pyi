import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Buffer

from ncmesh import more, pacifier

__all__ = [
    "Combination",
    "Decoder",
    "Encoder",
    "Recoder",
    "ScenarioError",
    "UnreachableError",
    "Window",
    "__version__",
    "check",
    "field_inverse",
    "field_matmul",
    "field_multiply",
    "field_order",
    "field_rank",
    "loss_matrix",
    "mesh",
    "more_largest_threshold",
    "more_plan",
    "pacifier_plan",
    "result_schema",
    "schemes",
    "simulate",
]

__version__: str

class ScenarioError(ValueError): ...
class UnreachableError(RuntimeError): ...

@final
class Encoder:
    def __new__(
        cls, generation: int, symbol_size: int, field: str = "gf256", *, seed: int | None = None
    ) -> Encoder: ...
    def load(self, data: Buffer) -> None: ...
    def encode(self, coefficients: Buffer | None = None) -> bytes: ...

@final
class Recoder:
    def __new__(
        cls, generation: int, symbol_size: int, field: str = "gf256", *, seed: int | None = None
    ) -> Recoder: ...
    def receive(self, packet: Buffer) -> bool: ...
    def recode(self) -> bytes: ...
    @property
    def rank(self) -> int: ...

@final
class Decoder:
    def __new__(cls, generation: int, symbol_size: int, field: str = "gf256") -> Decoder: ...
    def receive(self, packet: Buffer) -> bool: ...
    def data(self) -> bytes: ...
    @property
    def rank(self) -> int: ...
    @property
    def is_complete(self) -> bool: ...

@final
class Combination:
    def __new__(cls, first: int, coefficients: Buffer, symbol: Buffer) -> Combination: ...
    @property
    def first(self) -> int: ...
    @property
    def coefficients(self) -> bytes: ...
    @property
    def symbol(self) -> bytes: ...

@final
class Window:
    def __new__(cls, *, seed: int | None = None) -> Window: ...
    def add(self, number: int, symbol: Buffer) -> bool: ...
    def receive(self, packet: Combination) -> bool: ...
    def combine(self, first: int = 0, end: int | None = None) -> Combination | None: ...
    def packet(self, number: int) -> bytes | None: ...
    def forget_before(self, start: int) -> None: ...
    @property
    def rank(self) -> int: ...

def field_order(name: str) -> int: ...
def field_multiply(a: NDArray[np.uint8], b: NDArray[np.uint8], name: str) -> NDArray[np.uint8]: ...
def field_inverse(a: NDArray[np.uint8], name: str) -> NDArray[np.uint8]: ...
def field_matmul(a: NDArray[np.uint8], b: NDArray[np.uint8], name: str) -> NDArray[np.uint8]: ...
def field_rank(a: NDArray[np.uint8], name: str) -> int: ...
def pacifier_plan(
    loss: ArrayLike, source: int, receivers: Iterable[int], knob: float
) -> pacifier.Plan: ...
def more_plan(
    loss: ArrayLike, source: int, receivers: Iterable[int], prune: float
) -> more.Plan: ...
def more_largest_threshold(loss: ArrayLike, source: int, receivers: Iterable[int]) -> float: ...
def check(
    scenario: Mapping[str, Any] | str | os.PathLike[str],
    seed: int | None = None,
    *,
    scheme: str | None = None,
    mac: str | None = None,
    set: Mapping[str, Any] | None = None,
) -> None: ...
def loss_matrix(
    scenario: Mapping[str, Any] | str | os.PathLike[str],
    seed: int | None = None,
    *,
    mac: str | None = None,
    set: Mapping[str, Any] | None = None,
) -> NDArray[np.float64]: ...
def mesh(
    scenario: Mapping[str, Any] | str | os.PathLike[str], seed: int | None = None
) -> tuple[
    list[tuple[str, tuple[float, float, float] | None]], list[tuple[int, int, float, list[str]]]
]: ...
def result_schema() -> dict[str, Any]: ...
def schemes() -> list[tuple[str, str]]: ...
def simulate(
    scenario: Mapping[str, Any] | str | os.PathLike[str],
    seed: int | None = None,
    *,
    scheme: str | None = None,
    mac: str | None = None,
    set: Mapping[str, Any] | None = None,
    limit_s: float | None = None,
    progress: Callable[[float], object] | None = None,
    plan: Callable[[NDArray[np.float64], int, list[int]], Mapping[str, object]] | None = None,
) -> dict[str, Any]: ...
