"""The one way in which a test of this folder is skipped."""

import os
from typing import NoReturn

import pytest


def skip(reason: str) -> NoReturn:
    """Skips the test that calls it; fails it if CI is set, where every test has what it needs."""
    if "CI" in os.environ:
        pytest.fail(f"this test may not be skipped where CI is set: {reason}")
    pytest.skip(reason)
