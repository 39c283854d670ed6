"""What comes with the extra `analysis`, imported when it is needed: it takes a second."""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Import a module of the extra; `ImportError` that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"{name} is needed: install the extra with pip install 'ncmesh[analysis]'"
        raise ImportError(message) from error
