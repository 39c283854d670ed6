"""Measures babeld on a drawn mesh: a network namespace for each node, joined by one bridge.

The bridge passes a frame from one node's port to another's with the delivery of that link, so
that a broadcast reaches the neighbours of its sender, each by its own luck, as over radio. There
are no collisions and no airtime. Needs root, `ip`, `nft` and `babeld`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PORT = 6696
# Time for routes to settle, and of the measurement: whole intervals of babeld's updates.
SETTLE_S, MEASURE_S = 64, 96
# Steps in which the filter draws a loss.
STEPS = 10_000


@dataclass(frozen=True)
class Measured:
    """Bytes that all nodes sent in the time of the measurement."""

    nodes: int
    seconds: float
    frames: int
    ip_bytes: int
    routes: float
    """Share of ordered pairs for which the first node had a route to the other at the end."""

    @property
    def bytes_per_node_s(self) -> float:
        return self.ip_bytes / self.nodes / self.seconds

    @property
    def frames_per_node_s(self) -> float:
        return self.frames / self.nodes / self.seconds


def obstacle() -> str | None:
    """Why babeld cannot be measured here."""
    missing = [name for name in ("ip", "nft", "babeld") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "needs root"


def version() -> str:
    """Name and version of babeld."""
    done = subprocess.run(("babeld", "-V"), check=False, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()


def batman_obstacle() -> str | None:
    """Why batman-adv cannot be measured here: it runs in the kernel."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return "needs root and `ip`"
    with ExitStack() as stack:
        namespace = f"ncs{os.getpid()}-b"
        run("ip", "netns", "add", namespace)
        stack.callback(run, "ip", "netns", "del", namespace)
        if shutil.which("modprobe"):
            subprocess.run(("modprobe", "batman-adv"), check=False, capture_output=True)
        command = ("ip", "-n", namespace, "link", "add", "bat0", "type", "batadv")
        done = subprocess.run(command, check=False, capture_output=True)
        return None if done.returncode == 0 else "this kernel has no module batman-adv"


def run(*command: str, text: str | None = None) -> str:
    """Runs a command to its end and returns what it printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, input=text)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def measure(mesh: dict[str, Any], seconds: int = MEASURE_S) -> Measured:
    """Runs babeld with its defaults on every node of a mesh as the example `control` prints it."""
    nodes = len(mesh["positions"])
    prefix = f"ncs{os.getpid()}-"
    with ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spaces = [f"{prefix}{node}" for node in range(nodes)]
        bridge = f"{prefix}bridge"
        for space in (bridge, *spaces):
            run("ip", "netns", "add", space)
            stack.callback(run, "ip", "netns", "del", space)
        run(*f"ip -n {bridge} link add br0 type bridge mcast_snooping 0".split())
        run(*f"ip -n {bridge} link set br0 up".split())
        run("ip", "netns", "exec", bridge, "nft", "-f", "-", text=filters(mesh))
        for node, space in enumerate(spaces):
            join(bridge, space, node)

        # Each daemon announces one address. They are ended before their namespaces are.
        for node, space in enumerate(spaces):
            daemon = start(space, node, state)
            stack.callback(end, daemon)
        time.sleep(SETTLE_S)
        before = [counted(space) for space in spaces]
        begun = time.monotonic()
        time.sleep(seconds)
        elapsed = time.monotonic() - begun
        after = [counted(space) for space in spaces]
        known = sum(routes(space) for space in spaces)
    return Measured(
        nodes,
        elapsed,
        sum(b[0] - a[0] for a, b in zip(before, after, strict=True)),
        sum(b[1] - a[1] for a, b in zip(before, after, strict=True)),
        known / (nodes * (nodes - 1)),
    )


def filters(mesh: dict[str, Any]) -> str:
    """Rules of the bridge: a frame passes a link with the delivery of that link."""
    rules = [
        f"iifname p{a} oifname p{b} numgen random mod {STEPS} < {round(STEPS * delivery)} accept"
        for a, b, delivery in mesh["links"]
    ]
    return "\n".join(
        (
            "table bridge links {",
            "chain forward { type filter hook forward priority 0; policy drop;",
            *rules,
            "}",
            "}\n",
        )
    )


def join(bridge: str, space: str, node: int) -> None:
    """Gives a node an interface on the bridge, an address to announce, and a counter."""
    port = f"p{node}"
    run(*f"ip -n {bridge} link add {port} type veth peer name radio netns {space}".split())
    run(*f"ip -n {bridge} link set {port} master br0 up".split())
    run(*f"ip -n {space} link set lo up".split())
    run(*f"ip -n {space} link set radio up".split())
    run(*f"ip -n {space} addr add {address(node)}/128 dev lo".split())
    counter = (
        "table inet control { chain out { type filter hook output priority 0; "
        f"udp dport {PORT} counter\n}}\n}}\n"
    )
    run("ip", "netns", "exec", space, "nft", "-f", "-", text=counter)


def address(node: int) -> str:
    return f"fd99::{node + 1:x}"


def start(space: str, node: int, state: Path) -> subprocess.Popen[bytes]:
    """Starts babeld on a node's interface as on a radio, with default intervals."""
    return subprocess.Popen(
        (
            *("ip", "netns", "exec", space, "babeld"),
            *("-I", str(state / f"{node}.pid"), "-S", str(state / f"{node}.state")),
            *("-C", "interface radio type wireless"),
            *("-C", f"redistribute local ip {address(node)}/128"),
            *("-C", "redistribute local deny"),
            "radio",
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(5)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def counted(space: str) -> tuple[int, int]:
    """Packets that a node's daemon sent, and their bytes with IP headers."""
    listed = json.loads(run("ip", "netns", "exec", space, "nft", "-j", "list", "ruleset"))
    for entry in listed["nftables"]:
        for part in entry.get("rule", {}).get("expr", ()):
            if "counter" in part:
                return part["counter"]["packets"], part["counter"]["bytes"]
    return 0, 0


def routes(space: str) -> int:
    """Number of nodes to which a node has a route."""
    return run("ip", "-n", space, "-6", "route", "show", "proto", "babel").count("fd99::")
