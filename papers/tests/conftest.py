"""Fixtures of the papers' tests."""

import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A shell starts its background jobs with interrupts ignored; the tests need them.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def scenarios() -> Path:
    """The product's scenarios."""
    return ROOT / "scenarios"


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A scenario that is simulated within milliseconds: a line of three nodes."""
    (tmp_path / "loss.csv").write_text("from,to,loss\ns,r,0.2\nr,s,0.2\nr,d,0.4\nd,r,0.4\n")
    file = tmp_path / "line.toml"
    file.write_text(
        """
        name = "line"
        medium = { phy = "802.11b", bit_rate = "11M" }
        topology.links = "loss.csv"
        traffic = { from = "s", to = ["d", "r"], size = "200kB" }
        protocol.link = { quick_hello_s = 0.2 }
        """
    )
    return file
