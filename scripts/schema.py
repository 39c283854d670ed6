#!/usr/bin/env python3
"""Makes JSON Schemas of `node.toml` and of scenarios from the tables of the reference.

The tables name every setting with its default, what is allowed and what it means. A row becomes a
property with that as its description, and with a type where the columns leave no doubt. Tests of
the crates hold the settings of the schemas against those that the programs know. Python 3.11,
standard library only.

  scripts/schema.py            # writes docs/reference/*.schema.json
  scripts/schema.py --check    # exit code 1 if they are not what this would write
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
    bounds = re.fullmatch(r"([\d.,e-]+) to ([\d.,e]+)", allowed)
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


def engines() -> Schema:
    """Return the schemas of the engines' sections, by name."""
    text = (DIRECTORY / "engines.md").read_text()
    table = rows(text)
    headings = {heading for heading, _ in table}
    found = sections(table, {heading: heading.split(" and ") for heading in headings})
    # Settings that are described with those of another engine.
    for chapter in re.split(r"^## ", text, flags=re.MULTILINE):
        same = re.search(r"((?:`\w+`(?:, | and )?)+) are as\s+in `(\w+)`", chapter)
        if same:
            own = found[chapter.split("\n", 1)[0]]["properties"]
            other = found[same[2]]["properties"]
            own |= {key: other[key] for key in re.findall(r"`(\w+)`", same[1]) if key not in own}
    return found


def node() -> Schema:
    """Return the schema of `node.toml`."""
    table = rows((DIRECTORY / "configuration.md").read_text())
    names = {h: [h.strip("[]")] for h, _ in table if h.startswith("[")}
    parts = sections(table, names) | engines()
    # The channel emulator's radio is written by the lab alone.
    parts["radio"]["properties"]["kind"]["enum"] = ["udp"]
    parts["node"]["properties"]["position"]["type"] = ["array", "object"]
    parts["tunnel"]["properties"]["routes"]["type"] = "object"
    return {
        "$schema": DRAFT,
        "$id": "urn:ncmesh:node",
        "title": "Configuration of an ncmesh node",
        **section(parts, ["node", "radio"]),
    }


def scenario() -> Schema:
    """Return the schema of a scenario."""
    table = rows((DIRECTORY / "scenarios.md").read_text())
    names = {h: [TABLES.get(h, h)] for h, _ in table}
    parts = sections(table, names)
    top = parts.pop("")["properties"]
    settings = sections(
        rows((DIRECTORY / "configuration.md").read_text()),
        {"[link]": ["link"], "[route]": ["route"]},
    )
    for nested in NESTED:
        outer, inner = nested.split(".")
        parts[outer]["properties"][inner] = parts.pop(nested)
    # What stands in the text beside a table, or has no table.
    parts["traffic"]["required"] = ["from", "to"]
    parts["link"]["required"] = ["from", "to"]
    parts |= {name: {"type": "array", "items": parts[name]} for name in ARRAYS}
    parts["protocol"] = section(settings | engines(), [])
    return {
        "$schema": DRAFT,
        "$id": "urn:ncmesh:scenario",
        "title": "Scenario of ncmesh",
        **section(top | parts, ["name", "medium"]),
    }


def main() -> int:
    """Write the schemas, or compare them."""
    stale = []
    for name, schema in [("node", node()), ("scenario", scenario())]:
        path = DIRECTORY / f"{name}.schema.json"
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        print(f"{', '.join(stale)}: not what the reference says; run scripts/schema.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
