"""The check that each service runs as a PostgreSQL role with the rights that the service needs, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operate.doctor.finding import Finding, ok, warning
from penstock.store.schema import grants
from penstock.store.session.database import Session

FIX = (
    "Run `penstock roles --apply`, and give each service the database address that the command prints. If "
    "a worker connects as the owner, the code of its actions could create a token for itself."
)
SHOWN = 5


async def findings(session: Session) -> list[Finding]:
    """Return the findings on the roles of open sessions of services, and on those that `penstock roles` recorded."""
    roles = await grants.roles(session)
    warnings: list[Finding] = []
    for role in roles:
        if role.owner and role.open and role.service != "look":
            warnings.append(
                warning("roles", f"the {role.service} connects as {role.role}, which owns the schema", FIX)
            )
        elif excess := await grants.excess(session, role.service, role.role):
            warnings.append(
                warning(
                    "roles",
                    f"{role.role} has rights that the {role.service} does not need: {_some(excess)}",
                    FIX,
                )
            )
    return warnings or [ok("roles", "every registered service has exactly the rights that it needs")]


def _some(names: Sequence[str]) -> str:
    hidden_count = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {hidden_count} more" if hidden_count > 0 else "")
