"""The schemes of each service, as the compiled module has them, or a program of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from ncmesh import _ncmesh
from ncmesh.campaign.program import Simulator
from ncmesh.failure import FailureError, Kind

# The name of a service's default.
AUTO = "auto"
# The services in the order in which sets of schemes name them.
SERVICES = ("file", "tunnel", "stream")
# Sets of schemes for services side by side, besides the defaults: without coding, and of papers.
SETS = ("etx_unicast+forward+stream_tree", "pacifier+core_nc+multirate")


def known(program: Simulator | None = None) -> list[tuple[str, str]]:
    """Return all schemes, each with its service."""
    return _ncmesh.schemes() if program is None else program.schemes()


def of(service: str, program: Simulator | None = None) -> tuple[str, ...]:
    """Return the schemes of a service, in the order of the registry; sets of them for `mixed`."""
    if service == "mixed":
        return ("+".join(default(name) for name in SERVICES), *SETS)
    return tuple(name for name, served in known(program) if served == service)


def default(service: str) -> str:
    """Return the scheme that carries a service unless another is named, also called `auto`."""
    return of(service)[0]


def chosen(
    service: str, names: Sequence[str] | None, program: Simulator | None = None
) -> tuple[str, ...]:
    """Return the schemes of a service among `names`, all without names."""
    if names is None:
        return of(service, program)
    allowed = [AUTO, *(name for name, _ in known(program)), *of("mixed")]
    for name in names:
        if name not in allowed:
            message = f'no scheme is called "{name}"; there are: {", ".join(allowed)}'
            raise FailureError(Kind.USAGE, message)
    wanted = {default(service) if name == AUTO else name for name in names}
    return tuple(name for name in of(service, program) if name in wanted)
