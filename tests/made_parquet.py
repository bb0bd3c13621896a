"""Bills in Parquet with the columns and types of AWS's exports, from the same rows as CSV, without the code that reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS: dict[str, str] = yaml.safe_load((Path(__file__).parent / "aws_export_columns.yaml").read_text())["cur_2"]
"""Columns of the export with their types."""

_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("ms"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}


def export_table(rows: Iterable[dict[str, str]]) -> pa.Table:
    """Return the rows as in the export: with all its columns, and null for empty values."""
    found = list(rows)
    return pa.table({name: pa.array([_cell(each.get(name, ""), kind) for each in found], _TYPES[kind]) for name, kind in COLUMNS.items()})


def parquet_file(path: Path, table: pa.Table, **more: Any) -> Path:
    """Write the table with AWS's compression."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **{"compression": "snappy"} | more)
    return path


def _cell(text: str, kind: str) -> Any:
    if not text:
        return None
    if kind == "double":
        return float(text)
    if kind == "timestamp":
        # Without a time zone, as Spark and Hive write UTC.
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    if kind.startswith("map"):
        return list(json.loads(text).items())
    return text
