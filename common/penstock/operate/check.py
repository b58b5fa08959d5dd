"""`penstock check`: runs the query of every invariant on a live database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.store.session.database import Session
from penstock.store.upkeep.invariants import INVARIANTS, Invariant, violations


@dataclass(frozen=True, slots=True)
class CheckedInvariant:
    """A checked invariant, with the ids that violate it."""

    name: Annotated[str, Field(description="The short name of the invariant, such as `I3b`.")]
    says: Annotated[str, Field(description="The sentence that always has to be true.")]
    violations: Annotated[
        Sequence[str], Field(description="At most 20 ids that violate it; none if all is well.")
    ]


async def check(session: Session, *, limit: int = 20) -> list[CheckedInvariant]:
    """Run the query of every invariant, each in its own snapshot, and return at most `limit` violations of each. A
    healthy system has none."""
    return [await violated(session, invariant, limit) for invariant in INVARIANTS]


async def violated(session: Session, invariant: Invariant, limit: int) -> CheckedInvariant:
    """Return at most `limit` violations of one invariant."""
    return CheckedInvariant(invariant.name, invariant.says, await violations(session, invariant, limit))
