"""Random edits of the audit, as a superuser who knows how it is sealed may do them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg

from penstock.operate import audit as operate
from penstock.store.access import audit as store

EDITED = (
    *("text", "text", "at", "id", "position", "hash", "delete", "tail", "head", "middle", "truncate"),
    *("swap", "insert", "copy", "chain", "resealed", "dropped", "end", "moved"),
)


async def snapshot(superuser: asyncpg.Connection[Any]) -> list[tuple[Any, ...]]:
    rows = [tuple(row) for row in await superuser.fetch("select * from audit order by id")]
    return rows + [tuple(row) for row in await superuser.fetch("select * from audit_chain")]


async def some_id(superuser: asyncpg.Connection[Any], random: random.Random) -> int:
    ids = [row["id"] for row in await superuser.fetch("select id from audit order by id")]
    return int(random.choice(ids))


TEXTS = ("by", "role", "operation", "target", "outcome", "reason", "details")


async def edit(superuser: asyncpg.Connection[Any], random: random.Random) -> str:
    """Do one random edit, as a superuser who knows the scheme may do it. Return what was done."""
    id = await some_id(superuser, random)
    match random.choice(EDITED):
        case "text":
            column = random.choice(TEXTS)
            value = random.choice(["x", "", "user:eve", "{}", None if column == "reason" else "1"])
            await superuser.execute(f"update audit set {column} = $2 where id = $1", id, value)
            return f"{column} of {id}"
        case "at":
            microseconds = random.choice([1, -1, 10**6, -(10**9)])
            await superuser.execute(
                "update audit set at = at + $2 where id = $1", id, timedelta(microseconds=microseconds)
            )
            return f"at of {id}"
        case "id":
            await superuser.execute("update audit set id = default where id = $1", id)
            return f"id of {id}"
        case "position":
            await superuser.execute(
                "update audit set position = $2 where id = $1", id, random.choice([-1, 0, 10_000, None])
            )
            return f"position of {id}"
        case "hash":
            column = random.choice(["previous", "seal"])
            digest = random.choice([None, b"", random.randbytes(32)])
            await superuser.execute(f"update audit set {column} = $2 where id = $1", id, digest)
            return f"{column} of {id}"
        case "delete":
            await superuser.execute("delete from audit where id = $1", id)
            return f"row {id} is gone"
        case "tail":
            await superuser.execute("delete from audit where id >= $1", id)
            return f"rows from {id} on are gone"
        case "head":
            await superuser.execute("delete from audit where id <= $1", id)
            return f"rows up to {id} are gone"
        case "middle":
            await superuser.execute("delete from audit where id between $1 and $1 + 5", id)
            return f"rows about {id} are gone"
        case "truncate":
            await superuser.execute("truncate audit")
            return "all rows are gone"
        case "swap":
            other = await some_id(superuser, random)
            columns = random.choice(
                [("by",), ("at",), ("target", "details"), ("reason",), ("previous", "seal")]
            )
            names = ", ".join(columns)
            await superuser.execute(
                f"update audit a set ({names}) = (select {names} from audit b where b.id = $1 + $2 - a.id) "
                "where id in ($1, $2)",
                id,
                other,
            )
            return f"{names} of {id} and {other}"
        case "insert":
            await superuser.execute(
                "insert into audit (by, operation, target, outcome, details, position, previous, seal) "
                "values ('user:eve', 'x', 'y', 'done', '{}', $1, $2, $2)",
                random.choice([0, -3, 61, 5000]),
                random.randbytes(32),
            )
            return "a row was added"
        case "copy":
            await superuser.execute(
                "insert into audit (at, by, operation, target, outcome, reason, details, position, previous, seal) "
                "select at, by, operation, target, outcome, reason, details, 61, previous, seal from audit where id = $1",
                id,
            )
            return f"row {id} was copied"
        case "chain":
            column = random.choice(["position", "seal", "dropped_position", "dropped_seal"])
            end = random.choice([3, 59, 77]) if column.endswith("position") else random.randbytes(32)
            await superuser.execute(f"update audit_chain set {column} = $1", end)
            return f"{column} of the chain"
        case "resealed":  # one row is right again, by the scheme; the row after it is not
            await superuser.execute("update audit set by = 'user:eve' where id = $1", id)
            [row] = [r for r in await store.newest(superuser, limit=1000) if r.id == id]
            await superuser.execute(
                "update audit set seal = $2 where id = $1", id, operate.seal_of(row, row.previous or b"")
            )
            return f"row {id} was sealed anew"
        case "dropped":  # as retention does it, but for the row that says so
            await superuser.execute(
                "with gone as (delete from audit where id <= $1 returning position, seal), "
                "last as (select * from gone order by position desc limit 1) "
                "update audit_chain set dropped_position = last.position, dropped_seal = last.seal from last",
                id,
            )
            return f"rows up to {id} look as if they were dropped"
        case "end":  # a row at the end that is linked by the scheme
            last = (await store.newest(superuser, limit=1))[0]
            forged = replace(
                last, id=10_000, position=(last.position or 0) + 1, by="user:eve", previous=last.seal
            )
            await superuser.execute(
                "insert into audit (id, at, by, role, operation, target, outcome, reason, details, position, previous, seal) "
                "overriding system value values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                *(getattr(forged, name) for name in store.COLUMNS.split(", ")[:-1]),
                operate.seal_of(forged, last.seal or b""),
            )
            return "a linked row was added at the end"
        case _:
            other = await some_id(superuser, random)
            await superuser.execute("update audit set position = -position where id in ($1, $2)", id, other)
            await superuser.execute(
                "update audit set position = -(select min(b.position) from audit b where b.id = $1 + $2 - audit.id) "
                "where id in ($1, $2)",
                id,
                other,
            )
            return f"places of {id} and {other}"
