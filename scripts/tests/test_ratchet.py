"""Recorded counts fall and never rise."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import ratchet


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "ratchet.json"
    path.write_text(json.dumps({"habits": {"one": 3, "two": 1}, "others": {"one": 1}}))
    monkeypatch.setattr(ratchet, "FILE", path)
    monkeypatch.setattr(sys, "argv", ["check"])
    return path


@pytest.mark.parametrize("counts", [{"one": 4}, {"one": 3, "two": 2}, {"three": 1}])
def test_a_count_that_rises_fails_and_is_not_recorded(file, counts, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["check", "--record"])
    assert not ratchet.hold("habits", counts)
    recorded = json.loads(file.read_text())["habits"]
    assert all(n <= {"one": 3, "two": 1}[where] for where, n in recorded.items())


def test_a_count_that_falls_is_recorded_if_that_is_asked_for(file, monkeypatch, capsys):
    assert ratchet.hold("habits", {"one": 3, "two": 1})
    assert capsys.readouterr().out == ""
    before = file.read_text()
    assert ratchet.hold("habits", {"one": 2})
    assert "--record" in capsys.readouterr().out
    assert file.read_text() == before
    monkeypatch.setattr(sys, "argv", ["check", "--record"])
    assert ratchet.hold("habits", {"one": 2})
    assert json.loads(file.read_text()) == {"habits": {"one": 2}, "others": {"one": 1}}
