"""The operations on holds, for the client and the command line."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches

from pydantic import ValidationError

from penstock.client.argument_ranges import check_end
from penstock.client.checked_arguments import checks_arguments
from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.limit import parse_rate
from penstock.language.definitions.qualified_name import is_name, is_ref
from penstock.language.terms.options import Wrong
from penstock.language.terms.outside_names import check_tenant
from penstock.run.cut_texts import cut_end
from penstock.store.admission import holds, namespaces
from penstock.store.admission.holds import KINDS, Hold
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried

LONGEST_NAME = 300


async def all_holds(session: Session) -> list[Hold]:
    """Return the holds, by kind and name."""
    return await retried(lambda: holds.all_holds(session), deadline=30)


@checks_arguments
class Holds:
    """The holds of an installation, each as a `penstock.store.admission.holds.Hold`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def all(self) -> list[Hold]:
        """Return the holds, by kind and name."""
        return await all_holds(self._session)

    async def hold(
        self,
        kind: str,
        name: str,
        *,
        by: str,
        reason: str | None = None,
        until: datetime | None = None,
        force: bool = False,
    ) -> None:
        """Hold an action or workflow, a pack, a route or a tenant (`kind`), until it is released or `until` has come.
        The executions that it covers are stored, and no worker runs them. Running executions go on. An existing hold is
        replaced. With `force` the name may be unknown so far. Raises InvalidInput if `kind`, `name` or `until` is not
        valid, and NotFound for an unknown name."""
        _check(kind, name)
        await check_end(self._session, until)
        if not force:
            await self._check_known(kind, name)

        async def put(tx: Transaction) -> None:
            await namespaces.lock_rules(tx)
            await holds.put(tx, kind, name, reason, by, until)
            tx.tell(kind=kind, name=name, until=until)

        await committed_once(self._session, put)

    async def _check_known(self, kind: str, name: str) -> None:
        """Raise NotFound for a name that nothing has so far: such a hold would cover nothing."""
        names = await retried(lambda: holds.names(self._session, kind), deadline=30)
        if name not in names:
            near = get_close_matches(name, names, n=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            raise NotFound(
                f"nothing is held: there is no {kind} {name!r} so far",
                hint=f"{meant}To hold the future executions of this name: --force (over HTTP and in Python: force).",
            )

    async def release(self, kind: str, name: str, rate: str | None = None) -> None:
        """Release a hold: at once, or at a `rate` such as `10/min`. Raises NotFound if there is no such hold, and
        InvalidInput if `kind`, `name` or `rate` is not valid."""
        _check(kind, name)
        pace = None if rate is None else _pace(rate)

        async def release(tx: Transaction) -> None:
            await namespaces.lock_rules(tx)
            if not await holds.release(tx, kind, name, pace):
                raise NotFound(f"the {kind} {name} is not held", hint="List the holds with: penstock holds")
            tx.tell(kind=kind, name=name, rate=rate)

        await committed_once(self._session, release)


def _pace(rate: str) -> tuple[int, float]:
    try:
        parsed = parse_rate(rate)
    except Wrong as wrong:
        raise InvalidInput(f"the rate {wrong}", hint=wrong.hint) from None
    except ValidationError:
        raise InvalidInput(f"the rate {rate!r} is out of range", hint="Write '100/min'.") from None
    return parsed.count, parsed.seconds


def _check(kind: str, name: str) -> None:
    """Raise InvalidInput for a kind or a name that a hold cannot have."""
    if kind not in KINDS:
        raise InvalidInput(f"{cut_end(kind, 60)!r} cannot be held", hint=f"Hold one of: {', '.join(KINDS)}.")
    if kind == "tenant":
        check_tenant(name)
    elif len(name) > LONGEST_NAME or not (
        is_ref(name) if kind == "action" else is_name(name.replace("-", "_"))
    ):
        hint = "Write pack.name: shop.charge." if kind == "action" else "Write its name: shop."
        raise InvalidInput(f"{cut_end(name, 60)!r} is not a valid {kind} name", hint=hint)
