"""Parts that the tests share."""

import signal
from pathlib import Path

import pytest

from ncmesh import campaign

ROOT = Path(__file__).parents[2]

# A shell starts background processes with interrupts ignored. Here, and in every process started
# from here, interrupts interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def scenarios() -> Path:
    return ROOT / "scenarios"


@pytest.fixture
def diamond() -> dict:
    """A small mesh as a dict: a source, two relays that hear different halves, a destination."""
    loss = {"s r1": 0.5, "s r2": 0.5, "r1 d": 0.2, "r2 d": 0.4}
    pairs = [(*key.split(), value) for key, value in loss.items()]
    return {
        "name": "diamond",
        "nodes": ["s", "r1", "r2", "d"],
        "link": [{"from": a, "to": b, "loss": p} for a, b, p in pairs],
        "medium": {"phy": "802.11b", "bit_rate": "11M"},
        "traffic": {"from": "s", "to": ["d", "r1"], "size": "100kB"},
        "protocol": {"link": {"quick_hello_s": 0.2}},
    }


CAMPAIGN = """
scenario = "line.toml"
schemes = ["pacifier"]
seeds = "1-4"
[parameters]
protocol.pacifier.knob = [0, 0.5]
"""


@pytest.fixture
def campaign_file(tmp_path: Path) -> Path:
    """A campaign of 8 quick runs."""
    (tmp_path / "loss.csv").write_text("from,to,loss\ns,r,0.2\nr,s,0.2\nr,d,0.4\nd,r,0.4\n")
    (tmp_path / "line.toml").write_text(
        """
        name = "line"
        medium = { phy = "802.11b", bit_rate = "11M" }
        topology.links = "loss.csv"
        traffic = { from = "s", to = ["d", "r"], size = "200kB" }
        protocol.link = { quick_hello_s = 0.2 }
        """
    )
    file = tmp_path / "knob.toml"
    file.write_text(CAMPAIGN)
    return file


@pytest.fixture
def endless(campaign_file: Path) -> Path:
    """The campaign after one of its runs; after a few more it goes on for hours."""
    first = campaign_file.parent / "first.toml"
    first.write_text(CAMPAIGN.replace("1-4", "1").replace("[0, 0.5]", "[0]"))
    store = campaign.Store(campaign_file.with_suffix(".results"))
    campaign.execute(campaign.load(first).runs, store, campaign.Workers(jobs=1), lambda: None)
    sizes = 'traffic.size = ["200kB", "150MB"]'
    campaign_file.write_text(CAMPAIGN.replace("[0, 0.5]", f"[0, 0.5]\n{sizes}"))
    return campaign_file
