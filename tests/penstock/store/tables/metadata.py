"""The metadata that all tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import DateTime, MetaData
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

METADATA = MetaData()
INSTANT = DateTime(timezone=True)


class LimitKey(UserDefinedType[Any]):
    """The owner of slots: (limit_id, group_value)."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "limit_key"


ischema_names["limit_key"] = LimitKey
"""So that a column of this type is known when the tables of a database are read."""
