"""Files of the scoreboard, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ncmesh.failure import FailureError, Kind


def replace(file: Path, write: Callable[[Path], object]) -> None:
    """
    Replace `file` by what `write` writes to the draft whose path it is given.

    Raises `FailureError` if it cannot be written.
    """
    draft = file.with_suffix(".draft")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(draft)
        draft.replace(file)
    except OSError as error:
        raise FailureError(Kind.FILE, f"cannot write {file}: {error.strerror}") from error
