#!/usr/bin/env python3
"""Writes what is generated from the schema of results: Python's types, and tables of the reference.

Run it with the Python of `make python` after a change in `crates/sim/src/outcome`. With `--check`
it writes nothing, and exits with 1 if a file is not up to date.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ncmesh.schema import ROOT, TYPES, Field, Kind, ListOf, MapOf, Scalar, Struct, Type

HERE = Path(__file__).resolve().parent.parent
MODULE = HERE / "python/ncmesh/outcome.py"
PAGE = HERE / "docs/reference/results.md"
# The tables of the page are between these.
BEGIN, END = "<!-- begin tables -->", "<!-- end tables -->"

HEAD = '''"""
The types of a run's result.

Generated from `crates/sim/src/outcome` by `scripts/result-types.py`; do not edit. `None`, or
nothing in a collection, is what the service of the run does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
'''

# Properties that are computed from fields, by type.
COMPUTED = {
    "FlowOutcome": '''
    @property
    def innovative_fraction(self) -> float:
        """Innovative frames over frames heard; 0 if none was heard."""
        return self.innovative / self.heard if self.heard else 0.0
'''
}

PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false"}


def main() -> int:
    """Writes or checks both files; returns the exit code."""
    before, rest = PAGE.read_text().split(BEGIN)
    page = f"{before}{BEGIN}\n\n{tables()}\n{END}{rest.split(END)[1]}"
    stale = []
    for path, text in [(MODULE, module()), (PAGE, page)]:
        if not path.is_file() or path.read_text() != text:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(text)
    if stale and "--check" in sys.argv:
        names = ", ".join(str(path.relative_to(HERE)) for path in stale)
        print(f"not up to date: {names}; run scripts/result-types.py", file=sys.stderr)
        return 1
    return 0


# ---- Python


def module() -> str:
    """Returns the module with a class for each type."""
    return HEAD + "".join(f"\n\n{python_class(of)}" for of in TYPES.values())


def python_class(of: Type) -> str:
    """Returns the class of a type."""
    lines = [
        "@dataclass(frozen=True, kw_only=True)",
        f"class {python_name(of.name)}:",
        *docstring(of.description),
        "",
    ]
    for field in of.fields:
        name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
        lines += [f"    {name}: {annotation(field)}", *docstring(field.description)]
    return "\n".join(lines) + "\n" + COMPUTED.get(of.name, "")


def python_name(name: str) -> str:
    """Returns the name of a type in Python: that of Rust without `Outcome` behind it."""
    return name if name == ROOT else name.removesuffix("Outcome")


def annotation(field: Field) -> str:
    """Returns the annotation of a field and its default, if it may be absent."""
    kind = python_kind(field.kind)
    if field.optional and isinstance(field.kind, ListOf):
        return f"{kind} = ()"
    if field.optional and isinstance(field.kind, MapOf):
        return f"{kind} = field(default_factory=dict)"
    if field.optional:
        return f"{kind} | None = None"
    return f"{kind} | None" if field.nullable else kind


def python_kind(kind: Kind) -> str:
    """Returns the annotation of a kind of value."""
    match kind:
        case Scalar(name):
            return PYTHON[name]
        case ListOf(item):
            return f"tuple[{python_kind(item)}, ...]"
        case MapOf(item):
            return f"dict[str, {python_kind(item)}]"
        case Struct(name):
            return python_name(name)


def docstring(text: str) -> Iterator[str]:
    """Yields the lines of a docstring inside a class."""
    one = f'    """{text}"""'
    if len(one) <= 100:
        yield one
    else:
        yield '    """'
        yield from textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ")
        yield '    """'


# ---- Markdown


def tables() -> str:
    """Returns a table for each type."""
    return "\n".join(table(of) for of in TYPES.values())


def table(of: Type) -> str:
    """Returns the section of a type."""
    title = "Run" if of.name == ROOT else python_name(of.name)
    rows = (f"| `{row.name}` | {words(row)} | {row.description} |\n" for row in of.fields)
    text = textwrap.fill(of.description, 100)
    head = f"## {title}\n\n{text}\n\n| field | type | meaning |\n| --- | --- | --- |\n"
    return head + "".join(rows)


def words(field: Field) -> str:
    """Returns the type of a field, in words."""
    absent = ", or null" if field.nullable and not field.optional else ""
    return kind_words(field.kind) + absent


def kind_words(kind: Kind) -> str:
    """Returns a kind of value, in words."""
    match kind:
        case Scalar(name):
            return WORDS[name]
        case ListOf(item):
            return f"list of {kind_words(item)}"
        case MapOf(item):
            return f"by name: {kind_words(item)}"
        case Struct(name):
            return f"[{python_name(name)}](#{python_name(name).lower()})"


if __name__ == "__main__":
    sys.exit(main())
