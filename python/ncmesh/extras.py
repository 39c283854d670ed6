"""Libraries that only some of the package needs, and that are installed as extras."""

from __future__ import annotations

import importlib
from typing import Any

from ncmesh.failure import FailureError, Kind

EXTRA_OF = {
    "distributed": "dask",
    "matplotlib": "plot",
    "networkx": "networkx",
    "pandas": "pandas",
    "polars": "polars",
}
"""Extra of `pip install 'ncmesh[EXTRA]'` that has a library."""


class MissingExtraError(FailureError, ImportError):
    """A library is not installed; the message says which extra has it."""


def load(module: str) -> Any:  # noqa: ANN401 (a module without types)
    """
    Return a module of a library in `EXTRA_OF`, imported.

    Raises `MissingExtraError` if the library is not installed.
    """
    library = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A library that is there but broken must say so itself.
        if (error.name or "").partition(".")[0] != library:
            raise
        extra = EXTRA_OF[library]
        message = f"{library} is not installed; it comes with: pip install 'ncmesh[{extra}]'"
        raise MissingExtraError(Kind.OTHER, message) from error
