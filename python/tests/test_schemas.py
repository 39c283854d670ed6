"""The JSON Schemas of `node.toml` and of scenarios fit what is shipped."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs/reference"


def mistakes(name: str, document: dict[str, Any]) -> list[str]:
    """Return what is wrong with a document by a schema."""
    schema = json.loads((REFERENCE / f"{name}.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").rglob("*.toml")), ids=lambda p: p.stem)
def test_shipped_scenarios_fit(path: Path) -> None:
    assert mistakes("scenario", tomllib.loads(path.read_text())) == []


def test_the_example_of_the_reference_and_the_packaged_file_fit() -> None:
    reference = (REFERENCE / "configuration.md").read_text()
    example = re.search(r"```toml\n(\[node\]\nid = 3 .*?)```", reference, re.DOTALL)
    assert example
    packaged = (ROOT / "packaging/node.toml").read_text()
    for text in [example[1], packaged]:
        assert mistakes("node", tomllib.loads(text)) == []


@pytest.mark.parametrize(
    ("section", "mistake", "message"),
    [
        ("node", {"nmae": "x"}, "'nmae' was unexpected"),
        ("link", {"hello_s": 99}, "99 is greater than"),
        ("tunnel", {"clamp_mss": "yes"}, "'yes' is not of type 'boolean'"),
        ("pacifer", {}, "'pacifer' was unexpected"),
    ],
)
def test_mistakes_are_found(section: str, mistake: dict[str, Any], message: str) -> None:
    document: dict[str, Any] = {
        "node": {"id": 3, "key_file": "k"},
        "radio": {"kind": "udp", "interface": "lo"},
    }
    document[section] = document.get(section, {}) | mistake
    assert any(message in found for found in mistakes("node", document))


def test_the_movement_files_are_what_the_script_writes(tmp_path: Path) -> None:
    data = ROOT / "scenarios/data"
    subprocess.run([sys.executable, data / "movement.py", tmp_path], check=True)
    for path in tmp_path.iterdir():
        assert path.read_text() == (data / path.name).read_text(), path.name
