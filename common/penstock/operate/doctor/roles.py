"""Whether each service runs as a role of PostgreSQL that may do what the service needs, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operate.doctor.finding import Finding, ok, warning
from penstock.store import grants
from penstock.store.database import Session

FIX = (
    "Run `penstock roles --apply`, and give each service the address that it prints: user code of a worker that connects as the "
    "owner can make itself a token."
)
SHOWN = 5


async def findings(session: Session) -> list[Finding]:
    """Look at the roles that sessions of services are open as, and at those that `penstock roles` recorded."""
    found = await grants.roles(session)
    said: list[Finding] = []
    for one in found:
        if one.owner and one.open and one.service != "look":
            said.append(
                warning("roles", f"the {one.service} connects as {one.role}, which owns the schema", FIX)
            )
        elif more := await grants.excess(session, one.service, one.role):
            said.append(
                warning("roles", f"{one.role} may do more than the {one.service} needs: {_some(more)}", FIX)
            )
    return said or [ok("roles", "every service that is seen has the rights that it needs, and no others")]


def _some(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
