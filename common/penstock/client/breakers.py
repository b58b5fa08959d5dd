"""The operations on breakers, for the client and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from penstock.client.argument_ranges import check_end
from penstock.client.checked_arguments import checks_arguments
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.options import Wrong
from penstock.language.terms.parameter_paths import LABELS, is_label
from penstock.language.terms.run_labels import rendered_labels
from penstock.run.cut_texts import cut_end
from penstock.store.admission import breakers
from penstock.store.admission.breakers import BreakerKey, BreakerState
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried

LONGEST_LIST = 1000
SUFFIX = ".breaker"


async def all_breakers(session: Session, ref: str | None = None) -> list[BreakerState]:
    """Return at most 1,000 breakers, open ones first, or those of one action."""
    name = None if ref is None else await _stored_ref(session, ref)
    return await retried(lambda: breakers.states(session, name, LONGEST_LIST), deadline=30)


@checks_arguments
class Breakers:
    """The breakers of an installation, each as a `penstock.store.admission.breakers.BreakerState`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def all(self, ref: str | None = None) -> list[BreakerState]:
        """Return the breakers, open ones first, or those of one action. Raises NotFound if the action `ref` has no
        breaker."""
        return await all_breakers(self._session, ref)

    async def open(
        self,
        ref: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        by: str,
        reason: str | None = None,
        until: datetime | None = None,
    ) -> None:
        """Open the breaker of an action by hand, for these values of its `by`. The breaker probes at `until`, or stays
        open until it is closed. `parameters` have a label under its path: `{"labels.customer": "acme"}`. Raises NotFound if
        the action has no breaker. Raises InvalidInput if `parameters` are not exactly those that its `by` names, or if `until`
        is not a future instant."""
        await check_end(self._session, until)

        async def open_(tx: Transaction) -> None:
            key = await _locked(tx, ref, parameters or {})
            await breakers.open_(tx, key, until, by, reason)
            tx.tell(ref=ref, until=until)

        await committed_once(self._session, open_)

    async def close(
        self, ref: str, parameters: Mapping[str, Any] | None = None, *, at_once: bool = False
    ) -> None:
        """Close the breaker of an action: what waits is released gradually, or `at_once`. Raises NotFound if the action
        has no breaker, and Conflict if the breaker is closed. Raises InvalidInput if `parameters` are not exactly those
        that its `by` names."""

        async def close(tx: Transaction) -> None:
            key = await _locked(tx, ref, parameters or {})
            if not key.is_open:
                raise Conflict(
                    f"the breaker of {ref} is closed", hint="`penstock breaker list` shows its state."
                )
            await breakers.close(tx, key, not at_once)
            tx.tell(ref=ref)

        await committed_once(self._session, close)


async def _stored_ref(db: Session | Transaction, ref: str) -> str:
    """Return the ref of the limit that stands for the breaker of an action. Raises NotFound if the action has no
    breaker."""
    for name in (ref + SUFFIX, ref):
        if await breakers.parameters_of(db, name) is not None:
            return name
    raise NotFound(
        f"{cut_end(ref, 300)!r} has no breaker", hint="List the breakers with: penstock breaker list"
    )


async def _locked(tx: Transaction, ref: str, parameters: Mapping[str, Any]) -> BreakerKey:
    name = await _stored_ref(tx, ref)
    by = await breakers.parameters_of(tx, name) or []
    names = dict.fromkeys(path if is_label(path) else path.partition(".")[0] for path in by)
    if set(names) != set(parameters):
        grouping = f"grouped by {', '.join(by)}" if by else "not grouped"
        raise InvalidInput(
            f"the breaker of {ref} is {grouping}",
            hint=f"Give {' '.join(f'{name}=VALUE' for name in names)}." if by else "Give no parameters.",
        )
    labels = {path.removeprefix(LABELS): parameters[path] for path in names if is_label(path)}
    try:
        values = rendered_labels(labels)
    except Wrong as wrong:
        raise InvalidInput(f"labels {wrong}", hint=wrong.hint) from None
    key = await breakers.lock(tx, name, orjson.dumps(dict(parameters)).decode(), values)
    if key is None:
        raise NotFound(f"{ref!r} has no breaker", hint="List the breakers with: penstock breaker list")
    return key
