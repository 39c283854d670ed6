"""
The fields of a run's result.

They are declared in `crates/sim/src/outcome`, with their descriptions, and reach Python as a JSON
schema. `TYPES` is that schema in a form that is easy to follow. The columns of tables
(`ncmesh.arrow`) are derived from it when they are imported; `ncmesh.outcome` and the page
`docs/reference/results.md` are written from it by `scripts/result-types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ncmesh import _ncmesh

Schema = Mapping[str, Any]

ROOT = "Outcome"
"""Name of the type of a whole result."""


@dataclass(frozen=True)
class Scalar:
    """A `string`, `integer`, `number` or `boolean`."""

    name: str


@dataclass(frozen=True)
class ListOf:
    """A list."""

    item: Kind


@dataclass(frozen=True)
class MapOf:
    """A map from names to values."""

    item: Kind


@dataclass(frozen=True)
class Struct:
    """A value of a type with fields, which `TYPES` has under this name."""

    name: str


Kind = Scalar | ListOf | MapOf | Struct


@dataclass(frozen=True)
class Field:
    """A field of a type."""

    name: str
    kind: Kind
    nullable: bool
    """Whether it may be null."""
    optional: bool
    """Whether it may be absent."""
    stored: bool
    """Whether tables have it. They leave out values over time."""
    description: str


@dataclass(frozen=True)
class Type:
    """A type with fields."""

    name: str
    description: str
    fields: tuple[Field, ...]


def _resolved(root: Schema, of: Schema) -> Schema:
    """Follow a reference; of a nullable type, return the type itself."""
    if "$ref" in of:
        return _resolved(root, root["$defs"][_name(of)])
    if "properties" not in of and "anyOf" in of:
        (inner,) = (choice for choice in of["anyOf"] if choice.get("type") != "null")
        return _resolved(root, inner)
    return of


def _name(of: Schema) -> str:
    """Return the name of the type that `of` refers to; empty if it refers to none."""
    if "anyOf" in of:
        return next(filter(None, map(_name, of["anyOf"])), "")
    return str(of.get("$ref", "")).rpartition("/")[2]


def _is_nullable(of: Schema) -> bool:
    return "null" in of.get("type", ()) or {"type": "null"} in of.get("anyOf", ())


def _kind(root: Schema, of: Schema) -> Kind:
    inner = _resolved(root, of)
    if "properties" in inner:
        return Struct(_name(of))
    if "additionalProperties" in inner:
        return MapOf(_kind(root, inner["additionalProperties"]))
    if "items" in inner:
        return ListOf(_kind(root, inner["items"]))
    kinds = inner["type"]
    (name,) = {kinds} if isinstance(kinds, str) else {*kinds} - {"null"}
    return Scalar(name)


def _fields(root: Schema, of: Schema, *, optional: bool = False) -> Iterator[Field]:
    """Yield the fields of a type, then those of its variants, which others of them lack."""
    required = () if optional else of.get("required", ())
    for name, field in of.get("properties", {}).items():
        yield Field(
            name=name,
            kind=_kind(root, field),
            nullable=_is_nullable(field),
            optional=name not in required,
            stored=field.get("x-stored", True),
            description=" ".join(field["description"].split()),
        )
    for variant in of.get("anyOf", ()):
        yield from _fields(root, _resolved(root, variant), optional=True)


def _types() -> dict[str, Type]:
    """Return the type of a result and all types within it, by name, in the order of their use."""
    root = _ncmesh.result_schema()
    found: dict[str, Type] = {}

    def add(name: str, of: Schema) -> None:
        if name in found:
            return
        fields = tuple(_fields(root, of))
        found[name] = Type(name, " ".join(of["description"].split()), fields)
        for field in fields:
            kind = field.kind
            while isinstance(kind, ListOf | MapOf):
                kind = kind.item
            if isinstance(kind, Struct):
                add(kind.name, root["$defs"][kind.name])

    add(ROOT, root)
    return found


TYPES = _types()
"""Every type by name; that of a whole result is the first."""
