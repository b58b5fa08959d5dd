"""Budgets that a tree of executions shares, and their ledgers."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import rows_as


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """The part of a budget that the attempts of one action used."""

    action: Annotated[
        str,
        Field(description="The action or workflow, such as `shop.charge`. Empty: it is not known any more."),
    ]
    attempts: Annotated[int, Field(description="The number of its attempts that used the budget.")]
    used: Annotated[float, Field(description="The amount that its ended attempts used.")]
    reserved: Annotated[
        float, Field(description="The amount that is reserved for its attempts that have not ended.")
    ]


@dataclass(slots=True)
class BudgetState:
    """A budget of an execution's tree in one unit. `owner` is the root for which it was made. `when_spent` is `refuse` or
    `wait`."""

    owner: UUID
    unit: str
    amount: float
    when_spent: str
    used: float
    reserved: float
    shares: list[BudgetShare] = field(default_factory=list)

    @property
    def remaining(self) -> float:
        return self.amount - self.used - self.reserved


OF = """
with root as (
    select coalesce((select root_of(e.id) from execution e where e.id = $1),
        (select a.root from archive a where a.id = $1 limit 1)) as id
)
select b.owner, b.unit, b.amount::float8 as amount, b.when_spent, coalesce(x.action, '') as action,
    coalesce(x.attempts, 0) as attempts, coalesce(x.used, 0)::float8 as used, coalesce(x.reserved, 0)::float8 as reserved
from root r join budget_tree t on t.root = r.id join budget b on b.owner = t.owner
left join lateral (
    select coalesce(n.action, a.action) as action, count(*) as attempts,
        sum(coalesce(y.spent, y.reserved)) filter (where s.execution_id is null) as used,
        sum(coalesce(y.spent, y.reserved)) filter (where s.execution_id is not null) as reserved
    from budget_entry y
    left join execution e on e.id = y.execution_id left join namespace n on n.id = e.namespace_id
    left join archive a on a.id = y.execution_id
    left join concurrency_limit l on l.id = l.budget and l.unit = y.unit
    left join slot s on s.limit_id = l.id and s.group_value = y.owner::text and s.execution_id = y.execution_id
        and s.attempt = y.attempt
    where y.owner = b.owner and y.unit = b.unit group by 1
) x on true
order by b.unit, coalesce(x.used, 0) + coalesce(x.reserved, 0) desc, action
"""


async def budgets_of(session: Session, execution: UUID) -> list[BudgetState]:
    """Return the budgets of an execution's tree by unit, each with its shares, the largest first."""
    states: dict[str, BudgetState] = {}
    for row in await session.fetch(OF, execution):
        state = states.setdefault(
            row["unit"], BudgetState(row["owner"], row["unit"], row["amount"], row["when_spent"], 0.0, 0.0)
        )
        if row["attempts"]:
            state.shares.append(BudgetShare(row["action"], row["attempts"], row["used"], row["reserved"]))
            state.used += row["used"]
            state.reserved += row["reserved"]
    return list(states.values())


@dataclass(frozen=True, slots=True)
class RaisedBudget:
    """The owner of a budget, and its `previous` amount. None: the tree has no budget of the unit."""

    owner: UUID | None
    previous: float | None


RAISE = "select owner, before::float8 as previous from raise_budget($1, $2, $3)"


async def raise_amount(tx: Transaction, execution: UUID, unit: str, amount: Decimal) -> RaisedBudget:
    """Set a budget of an execution's tree to a higher amount, and wake what waits for it. A lower amount changes nothing."""
    return rows_as(RaisedBudget, await tx.fetch(RAISE, execution, unit, amount))[0]
