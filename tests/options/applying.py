"""The door of a database: definitions that were taken are applied, many at once."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import Trigger, action
from penstock.language.loading import Definitions
from penstock.language.workflows import from_yaml
from penstock.operate.apply import register
from penstock.store.session.database import Session
from tests.options.odd_values import fault


@action(ref="shop.noop")
def noop(**options):  # type: ignore[no-untyped-def]
    return options


REFERRED_TO = (noop, Trigger("shop.paid"), from_yaml("workflow: shop.flow\ntasks: {t: {action: noop}}"))
"""What the entries of packs refer to."""
Named = tuple[str, Definitions]
"""The option and its value as text, and the definitions that have it."""


async def refused(session: Session, several: Sequence[Named]) -> list[str]:
    """Apply all of these, and return the options of those that are refused by a typed error with a hint. Raises
    AssertionError that lists the other errors."""
    faults: list[str] = []
    texts: list[str] = []

    async def apply(part: Sequence[Named]) -> None:
        whole = Definitions()
        try:
            for _, definitions in part:
                whole += definitions
            await register(session, whole)
        except Exception as error:
            if len(part) > 1:
                half = len(part) // 2
                await apply(part[:half])
                await apply(part[half:])
            elif listed := fault(error, part[0][0]):
                faults.append(listed)
            else:
                texts.append(f"{part[0][0]}: {error}")

    await register(session, Definitions(REFERRED_TO))
    await apply(several)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)
    return texts
