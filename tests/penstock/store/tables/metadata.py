"""What all tables share."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData

METADATA = MetaData()
INSTANT = DateTime(timezone=True)
