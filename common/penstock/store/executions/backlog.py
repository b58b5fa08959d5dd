"""The backlog of ordered routes: scheduled executions that no worker has, in the order in which claims take them."""

from __future__ import annotations

from penstock.store.session.database import Session

TIDY = "select gone, ended from tidy_backlog(make_interval(secs => $1), $2)"


async def tidy(session: Session, age: float, limit: int) -> int:
    """Delete at most `limit` rows of executions that wait there no more, and return their number. End the order of routes that
    have had it for `age` seconds, where nothing waits and only one tenant has actions."""
    [row] = await session.fetch(TIDY, age, limit)
    return int(row["gone"])
