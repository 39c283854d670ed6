"""Timing of the channel: how long a frame takes, as docs/reference/scenarios.md has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MULTIPLIERS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
# Preamble, DIFS and slot in seconds, and the first contention window.
PHYS = {"802.11b": (192e-6, 50e-6, 20e-6, 31), "802.11a": (20e-6, 34e-6, 9e-6, 15)}

OUTER_FRAME = 33
"""Bytes of ncmesh's outer frame, which every data frame has."""

# Limits and rates of the scoreboard are meant for a channel of this bit rate.
REFERENCE_BIT_RATE = 11e6


@dataclass(frozen=True)
class Air:
    """Timing of the frames of one channel."""

    bit_rate: float
    phy: str
    mtu: int
    mac_overhead: int

    @classmethod
    def of(cls, medium: Mapping[str, Any]) -> Air:
        """Return the timing of a scenario's `[medium]`."""
        rate = medium["bit_rate"]
        if isinstance(rate, str):
            rate = float(rate[:-1]) * MULTIPLIERS[rate[-1]]
        overhead = medium.get("mac_overhead_bytes", 36)
        return cls(float(rate), medium["phy"], medium.get("mtu", 1500), overhead)

    @property
    def speed(self) -> float:
        """Return the bit rate as a share of `REFERENCE_BIT_RATE`."""
        return self.bit_rate / REFERENCE_BIT_RATE

    @property
    def frame_s(self) -> float:
        """Return the mean time of a full broadcast frame on an idle channel, s."""
        return self._seconds(self.mtu)

    def seconds(self, packet: int) -> float:
        """Return the mean time of a broadcast frame with a packet of so many bytes, s."""
        return self._seconds(packet + OUTER_FRAME)

    def _seconds(self, length: int) -> float:
        preamble, difs, slot, window = PHYS[self.phy]
        bits = 8 * (length + self.mac_overhead)
        return preamble + difs + slot * window / 2 + bits / self.bit_rate
