"""The export of rows into a Parquet file: typed columns, and a row group for every 20,000 rows. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.store.schema.partitions import Column

GROUP = 20_000
"""Rows of a row group, at least."""
TYPES = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double precision": pa.float64(),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "bytea": pa.binary(),
}
"""The column types. All others are text: ids, names, and documents as JSON."""


class ParquetWriter:
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._schema = pa.schema([(column.name, TYPES.get(column.type, pa.string())) for column in columns])
        self._columns = [(column.name, column.type not in TYPES) for column in columns]
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for row in rows:
            self._rows.append(
                {
                    name: str(value) if text and value is not None else value
                    for (name, text), value in zip(self._columns, row, strict=True)
                }
            )
        if len(self._rows) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        self._file.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._file.close()
