"""Why a command fails: one line on standard error, and the exit codes of the `ncmesh` command."""

import enum


class Kind(enum.IntEnum):
    """Exit codes."""

    OTHER = 1
    USAGE = 2
    CONFIG = 3
    NO_SCHEDULER = 4
    FILE = 5
    IN_USE = 8
    INTERRUPTED = 130


class FailureError(Exception):
    """Why a command fails, for people."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(kind, " ".join(message.split()))
        self.kind = kind

    def __str__(self) -> str:
        return str(self.args[1])
