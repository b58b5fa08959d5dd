"""The caller's own transaction as the place of a submission: the submission is stored exactly if that transaction
commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import Conflict, InvalidInput
from penstock.store.session.database import Row
from penstock.store.session.postgres_errors import in_our_words

if TYPE_CHECKING:
    from penstock.store.session.codec import Codec


class CallerTransaction:
    """An open transaction of the caller."""

    def __init__(self, connection: Any, codec: Codec | None = None) -> None:
        if not hasattr(connection, "is_in_transaction"):
            raise InvalidInput(
                "connection= is not a connection of asyncpg", hint="Give what `asyncpg.connect()` returned."
            )
        self._connection = connection
        self._codec = codec

    @property
    def empty(self) -> bool:
        """Return False, since the transaction may stay open for long. So the submission takes no locks on limits'
        keys, which other transactions wait for."""
        return False

    async def stage_alone(self, sql: str, *args: Any) -> list[Row]:
        if not self._connection.is_in_transaction():
            raise Conflict(
                "connection= needs an open transaction",
                hint="Wrap the call in `async with connection.transaction():`.",
            )
        try:
            if self._codec is not None:
                args = await self._codec.sealed(self._connection.fetch, sql, args)
            rows: list[Row] = await self._connection.fetch(sql, *args)
        except Exception as error:
            if translated := in_our_words(error, may_seal=self._codec is not None):
                raise translated from error
            raise
        return rows
