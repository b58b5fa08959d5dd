"""The change of a budget, for the client."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.terms.budgets import check_amount
from penstock.language.terms.options import Wrong
from penstock.store.admission import budgets
from penstock.store.executions import executions
from penstock.store.session.database import Session, Transaction


async def raise_budget(session: Session, id: UUID, unit: str, amount: float) -> Transaction:
    """Raise a budget of an execution's tree. Return the committed transaction. Raises NotFound if the execution or its
    budget of this unit does not exist. Raises InvalidInput for an amount that is not above 0 and at most 10^15, and
    Conflict for one below the present amount.

    A second call with the amount that the budget has already changes nothing: the first one's answer may have been lost."""
    try:
        check_amount(unit, amount)
    except Wrong as wrong:
        raise InvalidInput(str(wrong), hint=wrong.hint) from None
    await executions.get(session, id)
    async with session.transaction() as tx:
        raised = await budgets.raise_amount(tx, id, unit, Decimal(repr(amount)))
        tx.tell(before=raised.previous, after=amount)
    if raised.previous is None:
        raise NotFound(
            f"the tree of {id} has no budget of {unit}", hint=f"`penstock show {id}` shows its budgets."
        )
    if raised.previous > amount:
        raise Conflict(
            f"the budget of {unit} is {raised.previous:,g}, and {amount:,g} is less",
            hint="Give more than the present amount: a budget can only be raised.",
        )
    return tx
