"""The targets of a repair, and the state that it leaves."""

from __future__ import annotations

from tests.penstock.store.stand import Stand


async def mend(stand: Stand, what: str, *names: str) -> set[str]:
    """Whom the messages ask for."""
    ids = [stand.ids[name] for name in names or stand.ids]
    [row] = await stand.sql(f"select {what}($1) as messages", ids)
    return stand.names([id for message in row["messages"] for id in message["ids"]])


async def there(stand: Stand, table: str, column: str = "execution_id") -> set[str]:
    return stand.names([row[0] for row in await stand.sql(f"select {column} from {table}")])


async def limit(stand: Stand, ref: str = "l") -> int:
    [[id]] = await stand.sql(
        "insert into concurrency_limit (ref, definition_id, scope, max) values ($1, $2, 'a.b', 1) returning id",
        *(ref, stand.definition),
    )
    return int(id)


async def slot(stand: Stand, limit: int, name: str, group: str = "") -> None:
    await stand.sql(
        "insert into slot (limit_id, group_value, execution_id, attempt) values ($1, $2, $3, 0)",
        *(limit, group, stand.ids[name]),
    )


async def waiter(stand: Stand, name: str) -> None:
    await stand.sql(
        "insert into waiter (lane, rank, turn, ready_at, execution_id) values ($1, 0, 0, now(), $1)",
        stand.ids[name],
    )
