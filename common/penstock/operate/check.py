"""`penstock check`: runs the checker query of every invariant on a live database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.store.session.database import Session
from penstock.store.upkeep.invariants import INVARIANTS, Invariant, violations


@dataclass(frozen=True, slots=True)
class CheckedInvariant:
    """An invariant, what it says, and ids that violate it: none where all is well."""

    name: str
    says: str
    violations: Sequence[str]


async def check(session: Session, *, limit: int = 20) -> list[CheckedInvariant]:
    """Run every checker query, each in a snapshot of its own; of each at most `limit` violations. A healthy system has
    none."""
    return [await violated(session, invariant, limit) for invariant in INVARIANTS]


async def violated(session: Session, invariant: Invariant, limit: int) -> CheckedInvariant:
    """At most `limit` violations of one invariant."""
    return CheckedInvariant(invariant.name, invariant.says, await violations(session, invariant, limit))
