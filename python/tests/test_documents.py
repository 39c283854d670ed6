"""The examples of the documents run as they are printed."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ncmesh
from ncmesh import campaign

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Returns the fenced blocks of a page that are in `language`."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return fence.findall((DOCS / page).read_text(encoding="utf-8"))


def test_the_python_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    loss = np.full((8, 8), 0.3)
    names: dict[str, Any] = {"ncmesh": ncmesh, "loss": loss, "data": b"ncmesh" * 5000}
    examples = blocks("reference/python.md", "python")
    for example in examples:
        exec(compile(example, "python.md", "exec"), names)
    assert len(examples) == 6
    assert names["run"].receivers


def test_mc2_reaches_the_rate_that_its_page_says() -> None:
    (example,) = blocks("internals/mc2.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "mc2.md", "exec"), names)
    assert names["result"].flows[0].packets_per_slot == pytest.approx(0.387, abs=0.0005)


def test_the_example_scenario_is_one_also_with_a_channel_and_with_several_files() -> None:
    examples = blocks("reference/scenarios.md", "toml")
    example, channel, files = (tomllib.loads(block) for block in examples)
    ncmesh.check(example, seed=1)
    ncmesh.check(example | channel, seed=1)
    ncmesh.check(example | files, seed=1)


def test_the_example_campaign_is_one(tmp_path: Path) -> None:
    (example,) = blocks("guide/campaigns.md", "toml")
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "knob.toml").write_text(example)
    assert len(campaign.load(tmp_path / "knob.toml").runs) == 120
