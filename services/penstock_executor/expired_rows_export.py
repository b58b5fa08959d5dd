"""The export of rows that retention is about to drop: a file for each partition, such as `history_20300131.jsonl.gz`
or `history_20300131.parquet`.

A file gets its name once it is complete and synced to disk. A partition that ended days ago does not change any more.
The partition is read a few blocks at a time, outside of a transaction, which would hold back vacuum.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from penstock.errors import ConfigurationError
from penstock.extras import require
from penstock.settings import Settings
from penstock.store.schema import partitions
from penstock.store.schema.partitions import Column
from penstock.store.session.database import Session

BLOCKS = 4
"""Blocks of 8 KB that one query reads: some hundred rows, each of which may have a large payload and result."""
Row = tuple[Any, ...]
"""The values of a row, in the order of its table's columns."""


class Writer(Protocol):
    """A writer of rows into one file."""

    def write(self, rows: Sequence[Row]) -> None: ...
    def close(self) -> None: ...


def check(settings: Settings) -> None:
    """Raise ConfigurationError if files cannot be written as the settings say."""
    if settings.export_folder is None:
        return
    if settings.export_format == "parquet":
        require("parquet")
    if not settings.export_folder.is_dir() or not os.access(settings.export_folder, os.W_OK):
        raise ConfigurationError(
            f"PENSTOCK_EXPORT_FOLDER={settings.export_folder} is not a folder that can be written to",
            hint="Create it, on a disk that all executors share, or unset PENSTOCK_EXPORT_FOLDER.",
        )


async def partition(session: Session, name: str, folder: Path, format: str) -> Path:
    """Write a partition to its file, unless the file exists. Return the file. Raises PartitionDropped if the partition
    is gone."""
    file = _file(folder, name, format)
    if file.exists():
        return file
    columns = await partitions.columns(session, name)
    blocks = await partitions.blocks(session, name)
    unfinished = _unfinished(file)
    try:
        writer = await asyncio.to_thread(_writer, unfinished, columns, format)
        for block in range(0, blocks, BLOCKS):
            rows = await partitions.rows(session, name, block, block + BLOCKS)
            if rows:
                await asyncio.to_thread(writer.write, rows)
        await asyncio.to_thread(writer.close)
        await asyncio.to_thread(_finish, unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return file


def rows(batch: Sequence[Row], name: str, columns: Sequence[Column], folder: Path, format: str) -> Path:
    """Write these rows, a part of their table, into a file of their own, and return it."""
    file = _file(folder, f"{name}_{secrets.token_hex(8)}", format)
    unfinished = _unfinished(file)
    writer = _writer(unfinished, columns, format)
    writer.write(batch)
    writer.close()
    _finish(unfinished, file)
    return file


def _file(folder: Path, name: str, format: str) -> Path:
    return folder / f"{name}{'.parquet' if format == 'parquet' else '.jsonl.gz'}"


def _unfinished(file: Path) -> Path:
    return file.with_name(f".{file.name}.{secrets.token_hex(4)}")


def _finish(unfinished: Path, file: Path) -> None:
    _sync(unfinished)
    unfinished.rename(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _writer(path: Path, columns: Sequence[Column], format: str) -> Writer:
    os.close(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    )  # readable by its owner only: it contains users' payloads
    if format == "parquet":
        from penstock_executor.parquet import ParquetWriter  # needs an optional library

        return ParquetWriter(path, columns)
    return JsonWriter(path, columns)


class JsonWriter:
    """A writer of one JSON document a line. JSON columns are nested documents, times are ISO 8601 in UTC, and bytes
    are text."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._file = gzip.open(path, "wb", compresslevel=6)  # noqa: SIM115 (close ends it)
        self._columns = [(column.name, column.type == "jsonb") for column in columns]

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            line = {
                name: orjson.Fragment(value) if document and value is not None else value
                for (name, document), value in zip(self._columns, row, strict=True)
            }
            self._file.write(orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        self._file.close()


def _plain(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
