"""The examples of the analysis pages run, and give the numbers that stand beside them."""

import re
from pathlib import Path
from typing import Any

import pytest

import ncmesh_papers.core_nc
import ncmesh_papers.mc2

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "analysis"


def run(page: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs the examples of a page, and returns the names they define."""
    text = (PAGES / page).read_text(encoding="utf-8")
    for example in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if "import" in example or "ncmesh_papers." in example:
            exec(compile(example, page, "exec"), names)
    return names


def test_core() -> None:
    core_nc = run("core_nc.md", {})["core_nc"]
    found = core_nc.efficiency("core", e_x=0.3, e_oh=[0.1, 0.5, 0.9])
    assert found == pytest.approx([2.11, 2.35, 2.76], abs=0.005)
    assert core_nc.decode_probability(g=60, r=0.7, x=1.06) == pytest.approx(0.79, abs=0.005)
    assert core_nc.throughput("forwarding", offered=0.6, e=0.0) == pytest.approx(0.4)


def test_mc2() -> None:
    best = run("mc2.md", {"ncmesh_papers": ncmesh_papers})["best"]
    assert best["rates"] == pytest.approx([0.387], abs=0.0005)
    assert best["activations"][0] == pytest.approx([0.516, 0.161, 0.323, 0], abs=0.0005)


def test_multirate() -> None:
    names = run("multirate.md", {})
    assert set(names["best"]["rates"][0]) == {"a", "b", "c"}
    for node, rate in names["best"]["rates"][0].items():
        assert names["run"]["rates"][0][node] == pytest.approx(rate, abs=0.02)


def test_tcp_model() -> None:
    gain = run("tcp_model.md", {})["tcp_model"].gain
    assert gain(6, 0.03, 8160) == pytest.approx(1.414, abs=0.0005)
    assert gain(6, 0.03, 8160, method="exact") == pytest.approx(1.373, abs=0.0005)
    assert gain(6, 0.03, 8160, loss="packet") == pytest.approx(1.260, abs=0.0005)
    assert gain(6, 0.03, 8160, p_e=0.01, method="exact") == pytest.approx(1.273, abs=0.0005)
