"""The backlog of ordered routes: scheduled executions that no worker has, in the order in which claims take them."""

from __future__ import annotations

from penstock.store.session.database import Session

TIDY = "select gone, ended from tidy_backlog(make_interval(secs => $1), $2)"


async def tidy(session: Session, age: float, limit: int) -> int:
    """Delete at most `limit` rows of executions that are not scheduled there any more, and return their number. A route
    that has had an order for `age` seconds loses it if nothing waits there and only one tenant has actions."""
    [row] = await session.fetch(TIDY, age, limit)
    return int(row["gone"])
