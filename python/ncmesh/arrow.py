"""Results as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ncmesh.schema import ROOT, TYPES, Kind, ListOf, MapOf, Scalar

SCALARS = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


def _type_of(kind: Kind) -> pa.DataType:
    if isinstance(kind, Scalar):
        return SCALARS[kind.name]
    if isinstance(kind, ListOf):
        return pa.list_(_type_of(kind.item))
    if isinstance(kind, MapOf):
        return pa.map_(pa.string(), _type_of(kind.item))
    return pa.struct(_fields(kind.name))


def _fields(name: str) -> list[pa.Field]:
    stored = (field for field in TYPES[name].fields if field.stored)
    return [pa.field(field.name, _type_of(field.kind)) for field in stored]


OUTCOME = pa.schema(_fields(ROOT))
"""A column for each field of a run's result."""


def row_of(values: Mapping[str, Any], columns: pa.Schema) -> dict[str, Any]:
    """Return the values of `columns` as Arrow takes them. Absent ones are null."""
    return {column.name: _value(values.get(column.name), column.type) for column in columns}


def _value(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 (any JSON)
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(key, _value(item, kind.item_type)) for key, item in value.items()]
    if pa.types.is_struct(kind):
        return row_of(value, pa.schema(list(kind)))
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in value]
    return value


def per_receiver(rows: Iterable[Mapping[str, Any]], columns: pa.Schema = OUTCOME) -> pa.Table:
    """
    Return a row per receiver of each run, and one for a run without receivers.

    The columns are those of `columns` with one value per run, and those of the receiver, whose
    names begin with `receiver_`.
    """
    run = [column for column in columns if not pa.types.is_nested(column.type)]
    receiver = list(columns.field("receivers").type.value_type)
    flat = [
        {column.name: row.get(column.name) for column in run}
        | {f"receiver_{name}": value for name, value in of.items()}
        for row in rows
        for of in row.get("receivers") or [{}]
    ]
    receiver = [pa.field(f"receiver_{column.name}", column.type) for column in receiver]
    return pa.Table.from_pylist(flat, schema=pa.schema([*run, *receiver]))
