"""The models of the events of a stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from penstock_api.models.model import Answer


class Changed(Answer):
    """A status change of an execution."""

    id: UUID
    at: datetime
    status: str = Field(validation_alias="new")
    before: str | None = Field(validation_alias="old")
    attempt: int
    reason: str | None
    namespace: str
    action: str
    parent: UUID | None
    task: str | None
