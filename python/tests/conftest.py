"""What the tests share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scenarios() -> Path:
    return ROOT / "scenarios"


@pytest.fixture
def diamond() -> dict:
    """A small mesh as a dict: one source, two relays that hear different halves, one destination."""
    loss = {"s r1": 0.5, "s r2": 0.5, "r1 d": 0.2, "r2 d": 0.4}
    pairs = [(*key.split(), value) for key, value in loss.items()]
    return {
        "name": "diamond",
        "nodes": ["s", "r1", "r2", "d"],
        "link": [{"from": a, "to": b, "loss": p} for a, b, p in pairs],
        "medium": {"phy": "802.11b", "bit_rate": "11M"},
        "traffic": {"from": "s", "to": ["d", "r1"], "size": "100kB"},
        "protocol": {"link": {"probe_size": 100, "fast_probes": 20, "fast_period_s": 0.2}},
    }
