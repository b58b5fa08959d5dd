"""The retention of rows, and the files that are written before they go."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyarrow import parquet

from penstock.errors import ConfigurationError
from penstock.language.terms.ids import new_id
from penstock.service.assembly import Parts
from penstock.settings import Settings
from penstock.store.upkeep import retention
from penstock_executor import expired_rows_export
from penstock_executor.loops import drop_expired
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock_executor.by_hand import ByHand

DAY = "20200101"
ARCHIVE = "select * from archive_finished(interval '-1 second', 20)"
OLD = "timestamptz '2020-01-01 12:00+00'"


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        yield house


async def parts_with(house: Installation, **settings: Any) -> Parts:
    parts = await house.parts()
    parts.settings = house.settings(**settings)
    return parts


async def old_day(house: Installation, *tables: str) -> None:
    for table in tables:
        await house.rows(
            f"create table {table}_{DAY} partition of {table} for values "
            "from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')"
        )


async def turn(parts: Parts) -> bool | float:
    return await drop_expired.turn(parts, parts.database.session())


def lines(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file) as found:
        return [json.loads(line) for line in found]


async def moved(house: Installation, count: int) -> None:
    await house.rows(
        f"insert into history (execution_id, at, old, new, attempt, actor, reason) "
        f"select gen_random_uuid(), {OLD}, 'running', 'completed', 1, 'w', 'n ' || n from generate_series(1, {count}) n "
        "returning 1"
    )


async def archived(house: Installation) -> UUID:
    id = new_id()
    await house.rows(
        "insert into archive (id, finished_at, status, action, namespace, root, created_at, attempt, failures, "
        "recoveries, priority, definition_id, params, result) values "
        f"($1, {OLD}, 'completed', 'a.b', 'public::a::b', $1, {OLD}, 1, 0, 0, 0, 1, "
        """'{"big": "%s", "deep": [1, {"a": null}]}', '"line\\nbreak"') returning 1""" % ("x" * 20_000),
        id,
    )
    return id


async def test_each_kind_has_a_time_of_its_own(house: Installation) -> None:
    await old_day(house, *retention.partitioned(house.settings()))
    parts = await parts_with(house, history_retention_days=36500, event_retention_days=36500)
    assert await turn(parts) is False
    left = await house.rows("select relname::text as name from pg_class where relname like $1", f"%{DAY}")
    assert {row["name"] for row in left} == {f"history_{DAY}", f"event_{DAY}"}


@pytest.mark.parametrize("apart", [timedelta(days=-2), timedelta(days=2)])
async def test_nothing_is_dropped_while_the_database_is_days_ahead(
    house: Installation, apart: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OtherClock(datetime):
        """The clock of a machine that is so far ahead of the database."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + apart

    await old_day(house, "history")
    await moved(house, 1)
    parts = await parts_with(house)
    monkeypatch.setattr(drop_expired, "datetime", OtherClock)
    await turn(parts)
    [[days]] = await house.rows("select count(*) from pg_class where relname = $1", f"history_{DAY}")
    assert days == (1 if apart < timedelta(0) else 0)
    monkeypatch.undo()
    await turn(parts)
    assert await house.rows("select 1 from pg_class where relname = $1", f"history_{DAY}") == []


async def test_a_day_is_written_as_json_lines_before_it_is_dropped(
    house: Installation, tmp_path: Path
) -> None:
    await old_day(house, "history", "archive")
    await moved(house, 700)
    id = await archived(house)
    await turn(await parts_with(house, export_folder=tmp_path))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"archive_{DAY}.jsonl.gz",
        f"history_{DAY}.jsonl.gz",
    ]
    found = lines(tmp_path / f"history_{DAY}.jsonl.gz")
    assert {line["reason"] for line in found} == {f"n {n}" for n in range(1, 701)}
    assert found[0]["at"] == "2020-01-01T12:00:00+00:00"
    [one] = lines(tmp_path / f"archive_{DAY}.jsonl.gz")
    assert (one["id"], one["result"]) == (str(id), "line\nbreak")
    assert one["params"]["deep"] == [1, {"a": None}]
    assert len(one["params"]["big"]) == 20_000
    assert not await house.rows("select 1 from pg_class where relname like $1", f"%{DAY}")
    assert (tmp_path / f"history_{DAY}.jsonl.gz").stat().st_mode & 0o777 == 0o600


async def test_a_day_is_written_as_parquet_and_reads_back_as_it_was(
    house: Installation, tmp_path: Path
) -> None:
    await old_day(house, "history", "archive")
    await moved(house, 300)
    id = await archived(house)
    await house.rows(
        "insert into dead_letter (id, queue, reason, body, headers, fingerprint, last_at) "
        """values ($1, 'q', 'r', '\\xff00'::bytea, '{"n": 1}', 'f', now() - interval '1000 days') returning 1""",
        new_id(),
    )
    await turn(await parts_with(house, export_folder=tmp_path, export_format="parquet"))
    history = parquet.read_table(tmp_path / f"history_{DAY}.parquet")
    assert history.num_rows == 300
    assert str(history.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert str(history.schema.field("attempt").type) == "int32"
    assert set(history.column("reason").to_pylist()) == {f"n {n}" for n in range(1, 301)}
    assert set(history.column("at").to_pylist()) == {datetime(2020, 1, 1, 12, tzinfo=UTC)}
    [one] = parquet.read_table(tmp_path / f"archive_{DAY}.parquet").to_pylist()
    assert (one["id"], one["root"], one["parent"], one["failures"]) == (str(id), str(id), None, 0)
    assert json.loads(one["params"]) == {"big": "x" * 20_000, "deep": [1, {"a": None}]}
    assert (json.loads(one["result"]), one["error"]) == ("line\nbreak", None)
    [letters] = tmp_path.glob("dead_letter_*.parquet")
    [letter] = parquet.read_table(letters).to_pylist()
    assert (letter["body"], json.loads(letter["headers"]), letter["type"]) == (b"\xff\x00", {"n": 1}, None)


async def test_a_day_that_was_not_exported_whole_is_not_dropped(house: Installation, tmp_path: Path) -> None:
    await old_day(house, "history")
    await moved(house, 3)
    folder = tmp_path / "gone"
    with pytest.raises(OSError):
        await turn(await parts_with(house, export_folder=folder))
    assert len(await house.rows("select 1 from history where at < now() - interval '1 year'")) == 3
    folder.mkdir()
    await turn(await parts_with(house, export_folder=folder))
    assert [file.name for file in folder.iterdir()] == [f"history_{DAY}.jsonl.gz"]


async def test_replicas_that_drop_the_same_day_do_not_fail(house: Installation, tmp_path: Path) -> None:
    await old_day(house, "history", "event", "fire", "log_line")
    await moved(house, 2000)
    several = [await parts_with(house, export_folder=tmp_path) for _ in range(3)]
    assert await asyncio.gather(*(turn(parts) for parts in several)) == [False] * 3
    assert len(lines(tmp_path / f"history_{DAY}.jsonl.gz")) == 2000
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


async def test_a_reader_of_a_table_is_not_waited_for(house: Installation) -> None:
    await old_day(house, "history", "event")
    parts = await parts_with(house)
    async with parts.database.session().transaction() as reader:
        await reader.fetch("select count(*) from history")
        assert await turn(parts) == drop_expired.AGAIN
        left = await house.rows("select relname::text as name from pg_class where relname like $1", f"%{DAY}")
        assert {row["name"] for row in left} == {f"history_{DAY}"}
    assert await turn(parts) is False


async def test_old_dead_letters_go_with_their_time_and_into_a_file(
    house: Installation, tmp_path: Path
) -> None:
    for age in (100, 1):
        await house.rows(
            "insert into dead_letter (id, queue, reason, body, fingerprint, last_at) "
            "values ($1, 'work.default', 'rejected', 'x', $2, now() - make_interval(days => $3)) returning 1",
            new_id(),
            str(age),
            age,
        )
    parts = await parts_with(house, export_folder=tmp_path)
    await turn(parts)
    assert [row["fingerprint"] for row in await house.rows("select fingerprint from dead_letter")] == ["1"]
    [file] = tmp_path.iterdir()
    assert [(line["fingerprint"], line["body"]) for line in lines(file)] == [("100", "x")]


async def test_rows_of_the_default_partition_expire_too(house: Installation, tmp_path: Path) -> None:
    await moved(house, 3)  # there is no such day: the default partition has them
    await turn(await parts_with(house, export_folder=tmp_path))
    assert not await house.rows("select 1 from history_default")
    [file] = tmp_path.iterdir()
    assert [line["actor"] for line in lines(file)] == ["w"] * 3


async def test_attempts_go_to_the_archive_with_their_execution(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.flaky", {"failures": 2})
    assert await house.client.result(id, timeout=20) == 3
    before = [asdict(one) for one in await house.client.attempts(id)]
    assert [row["outcome"] for row in before] == ["failed", "failed", "completed"]
    await house.quiet()
    assert (await house.rows(ARCHIVE))[0][0] == 1
    assert not await house.rows("select 1 from attempt")
    after = [asdict(one) for one in await house.client.attempts(id)]
    for one in (*before, *after):
        one["error"] = one["error"] and json.loads(one["error"])
    assert after == before
    await house.rows("delete from history returning 1")  # which is kept for a shorter time
    left = await house.client.attempts(id)
    assert [one.outcome for one in left] == ["failed", "failed", "completed"]
    assert [one.started_at for one in left] == [None] * 3


async def test_an_end_that_is_still_to_be_told_is_not_archived(database: str) -> None:
    async with ByHand(database, None) as house:
        await house.open(shop.charge)
        id = await house.running("shop.charge", params={"order": 1})
        await house.finish(id, "completed")
        await house.rows(
            "insert into untold (execution_id) values ($1) on conflict do nothing returning 1", id
        )
        assert (await house.rows(ARCHIVE))[0]["moved"] == 0
        assert await house.stands(id) == "completed"
        await house.rows("delete from untold returning 1")
        assert (await house.rows(ARCHIVE))[0]["moved"] == 1


@pytest.mark.parametrize("table", ["event", "history", "archive", "log_line", "admission", "fire"])
async def test_partitions_are_made_also_where_the_default_one_has_caught_rows_of_the_day(
    house: Installation, table: str
) -> None:
    column = {"event": "created_at", "history": "at", "archive": "finished_at", "log_line": "at",
              "admission": "admitted_at", "fire": "due_at"}[table]  # fmt: skip
    values = {
        "event": "(id, trigger, tenant, payload, created_at) select gen_random_uuid(), 't', 'x', '{}', d",
        "history": "(execution_id, new, attempt, at) select gen_random_uuid(), 'x', 1, d",
        "archive": "(id, status, action, namespace, root, created_at, attempt, failures, recoveries, priority, "
        "definition_id, finished_at) select gen_random_uuid(), 'x', 'a', 'n', gen_random_uuid(), d, 1, 0, 0, 0, 1, d",
        "log_line": "(execution_id, attempt, seq, stream, line, worker_id, worker, at) select gen_random_uuid(), 1, 1, 's', "
        "'l', gen_random_uuid(), 'w', d",
        "admission": "(limit_id, group_value, execution_id, attempt, rank, turn, ready_at, since, held, allowed, rated, "
        "admitted_at) select 1, 'k', gen_random_uuid(), 1, 0, 0, d, d, 0, 1, false, d",
        "fire": "(schedule, status, kind, definition_id, due_at) select 's', 'created', 'due', 1, d",
    }[table]
    await house.rows(
        f"insert into {table} {values} from (select now() + interval '12 days' as d) x returning 1"
    )
    await house.rows("select make_partitions(13)")
    [row] = await house.rows(
        f"select tableoid::regclass::text as kept, to_char({column} at time zone 'utc', 'YYYYMMDD') as day from {table} "
        f"where {column} > now() + interval '11 days'"
    )
    assert row["kept"] == f"{table}_{row['day']}"


def test_files_that_cannot_be_written_are_said_at_the_start(tmp_path: Path) -> None:
    expired_rows_export.check(Settings(export_folder=tmp_path))
    with pytest.raises(ConfigurationError, match="not a folder"):
        expired_rows_export.check(Settings(export_folder=tmp_path / "missing"))
