"""The operations on rules, for the client and the command line."""

from __future__ import annotations

from typing import Any

from penstock.client.checked_arguments import checks_arguments
from penstock.operate import definitions
from penstock.store.session.database import Session


@checks_arguments
class Rules:
    """The rules of an installation."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def all(self) -> list[dict[str, Any]]:
        """Return the rules, each with the number of events on which it failed."""
        return await definitions.rules(self._session)

    async def enable(self, ref: str, enabled: bool) -> None:
        """Enable or disable a rule. Raises NotFound if the rule does not exist."""
        await definitions.enable_rule(self._session, ref, enabled)

    async def delete(self, ref: str) -> None:
        """Delete a rule. Raises NotFound if the rule does not exist."""
        await definitions.delete_rule(self._session, ref)
