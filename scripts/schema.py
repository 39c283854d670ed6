#!/usr/bin/env python3
"""Makes the JSON Schema of scenarios from the tables of the reference.

The tables name every setting with its default, what is allowed and what it means. A row becomes a
property with that as its description, and with a type where the columns leave no doubt. Tests of
the crates hold the settings of the schema against those that the program knows. The settings of
protocols come from `node.schema.json`, which `cargo run -p ncmesh-tests --example settings` makes
from their declarations: run that first. Python 3.11, standard library only.

  scripts/schema.py            # writes docs/reference/scenario.schema.json
  scripts/schema.py --check    # exit code 1 if it is not what this would write
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent.parent / "docs/reference"
DRAFT = "http://json-schema.org/draft-07/schema#"
Schema = dict[str, Any]

# Tables of a scenario whose keys stand under a heading with another name.
TABLES = {
    "Top level": "",
    "Nodes": "",
    "[measure]": "measure",
    "[processing]": "processing",
    "[traffic]": "traffic",
    "[[flow]]": "flow",
    "[[stream]]": "stream",
    "[medium]": "medium",
    "[medium.propagation]": "medium.propagation",
    "[medium.reception]": "medium.reception",
}
# Settings of `[medium]` whose values are tables with a heading of their own.
NESTED = ["medium.propagation", "medium.reception"]
ARRAYS = ["node", "link", "flow", "stream"]
# Sections of `node.toml` that a scenario cannot have.
DAEMON = ["node", "radio", "inbox", "api", "web", "tunnel", "stream"]


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def rows(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of all tables of settings, each with its heading, or the table it names."""
    found: list[tuple[str, dict[str, str]]] = []
    heading = ""
    columns: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            heading, columns = re.sub(r" \{.*\}$", "", line.lstrip("# ")), []
        elif not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells(line)
        elif not line.startswith("| ---") and re.match(r"(setting|key)\b", columns[0]):
            named = re.fullmatch(r"key of `\[+(\w+)\]+`", columns[0])
            row = dict(zip(["key", *columns[1:]], cells(line), strict=True))
            found.append((named[1] if named else heading, row))
    return found


def plain(text: str) -> str:
    """Return a text of Markdown without its marks."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("`", "")


def number(text: str) -> float | None:
    """Return the number in a text, or nothing."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def property_of(row: dict[str, str]) -> Schema:
    """Return the schema of one setting."""
    default, allowed = row.get("default", ""), row.get("allowed", "")
    meaning = row.get("meaning") or row.get("places") or row.get("the file") or ""
    says = [plain(meaning)]
    says += [f"Allowed: {plain(allowed)}"] if allowed else []
    says += [f"Default: {plain(default)}"] if default not in ("", "required") else []
    schema: Schema = {"description": ". ".join(part for part in says if part)}
    values = re.findall(r'"([^"]*)"', allowed)
    bounds = re.fullmatch(r"([\d.,e-]+) to ([\d.,e]+)( [a-zA-Z]+)?", allowed)
    if allowed == "`true`, `false`" or default in ("`true`", "`false`", "true", "false"):
        schema["type"] = "boolean"
    elif values and re.fullmatch(r'(`"[^"]*"`(, )?)+', allowed):
        schema["enum"] = values
    elif bounds and (least := number(bounds[1])) is not None:
        schema |= {"type": "number", "minimum": least, "maximum": number(bounds[2])}
    return schema


def section(properties: dict[str, Schema], required: list[str]) -> Schema:
    """Return the schema of a table with these settings."""
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return schema | ({"required": required} if required else {})


def sections(rows: list[tuple[str, dict[str, str]]], names: dict[str, list[str]]) -> Schema:
    """Return the schemas of sections. `names` says which sections a heading describes."""
    found: dict[str, tuple[dict[str, Schema], list[str]]] = {}
    for heading, row in rows:
        # A row of several settings with one default each describes them together.
        keys = re.findall(r"`(\w+)", row["key"].split(" = ")[0])
        for name in names.get(heading, []):
            properties, required = found.setdefault(name, ({}, []))
            for key in keys:
                properties[key] = property_of(row)
                if row.get("default") == "required":
                    required.append(key)
    return {name: section(*parts) for name, parts in found.items()}


def scenario() -> Schema:
    """Return the schema of a scenario."""
    table = rows((DIRECTORY / "scenarios.md").read_text())
    names = {h: [TABLES.get(h, h)] for h, _ in table}
    parts = sections(table, names)
    top = parts.pop("")["properties"]
    for nested in NESTED:
        outer, inner = nested.split(".")
        parts[outer]["properties"][inner] = parts.pop(nested)
    # What stands in the text beside a table, or has no table.
    parts["traffic"]["required"] = ["from", "to"]
    parts["link"]["required"] = ["from", "to"]
    parts |= {name: {"type": "array", "items": parts[name]} for name in ARRAYS}
    # Settings of protocols are declared in code, from which the schema of `node.toml` is made.
    node = json.loads((DIRECTORY / "node.schema.json").read_text())["properties"]
    parts["protocol"] = section({n: s for n, s in node.items() if n not in DAEMON}, [])
    return {
        "$schema": DRAFT,
        "$id": "urn:ncmesh:scenario",
        "title": "Scenario of ncmesh",
        **section(top | parts, ["name", "medium"]),
    }


def main() -> int:
    """Write the schema, or compare it."""
    path = DIRECTORY / "scenario.schema.json"
    text = json.dumps(scenario(), indent=2, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        print(f"{path}: not what the reference says; run scripts/schema.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
