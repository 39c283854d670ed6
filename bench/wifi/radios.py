"""Simulated Wi-Fi radios of the kernel, each in a network namespace of its own.

Runs as root in a machine of its own, for the module is one for the whole kernel.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

# Frequency of the channel, MHz, and the address of the cell.
CHANNEL = 2412
CELL = "02:ca:fe:00:00:01"
PATIENCE = 90.0


def run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def wait(what: str, is_done: Callable[[], bool], limit: float = PATIENCE) -> float:
    """Waits until something holds. Returns the time it took, s."""
    start = time.monotonic()
    while not is_done():
        if time.monotonic() > start + limit:
            raise RuntimeError(f"waited {limit:.0f} s in vain: {what}")
        time.sleep(0.2)
    return time.monotonic() - start


class Radio:
    """A radio in a namespace. `kind` is "ibss" for ad-hoc mode or "mesh" for 802.11s."""

    def __init__(self, index: int, name: str, kind: str) -> None:
        self.index, self.name, self.kind = index, name, kind
        self.device = f"wlan{index}"
        # Settings of `iw dev DEVICE ibss join` behind the frequency.
        self.width = "NOHT"
        self.options: list[str] = []

    def inside(self, *command: str, check: bool = True) -> str:
        return run("ip", "netns", "exec", self.name, *command, check=check)

    def phy(self) -> str:
        """Returns the name of the phy, while the radio is in the first namespace."""
        # Phys are numbered on when the module is loaded again; interfaces are not.
        return Path(f"/sys/class/net/{self.device}/phy80211/name").read_text().strip()

    def plug(self) -> None:
        """Puts the radio into a namespace of its own, and into the cell."""
        run("ip", "netns", "add", self.name)
        run("iw", "phy", self.phy(), "set", "netns", "name", self.name)
        self.inside("iw", "dev", self.device, "set", "type", "ibss" if self.is_ibss() else "mp")
        self.up()
        self.join()
        self.address()

    def is_ibss(self) -> bool:
        return self.kind == "ibss"

    def up(self) -> None:
        self.inside("ip", "link", "set", self.device, "up")

    def down(self) -> None:
        self.inside("ip", "link", "set", self.device, "down")

    def join(self) -> None:
        cell = ["iw", "dev", self.device]
        if self.is_ibss():
            # Without block acknowledgments: mac80211 keeps a peer's reorder window while the peer
            # is away, and drops its unicast frames afterwards, for their numbers begin anew.
            join = ["ibss", "join", "ncmesh", str(CHANNEL), self.width, "fixed-freq", CELL]
            self.inside(*cell, *join, *self.options)
        else:
            self.inside(*cell, "mesh", "join", "ncmesh", "freq", str(CHANNEL))
            self.inside(*cell, "set", "mesh_param", "mesh_fwding", "0")

    def leave(self) -> None:
        self.inside("iw", "dev", self.device, "ibss" if self.is_ibss() else "mesh", "leave")

    def address(self) -> None:
        own = f"10.77.0.{self.index + 1}/24"
        self.inside("ip", "address", "add", own, "broadcast", "+", "dev", self.device)
