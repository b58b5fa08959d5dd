"""The start of children of durable functions. The children are looked up, checked, and created together with their
records, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from penstock.advance.child_targets import current_targets, known_targets, remembered
from penstock.engine.durable.item_workflow import item_workflow_ref
from penstock.engine.durable.records import MAP, WAIT_FOR, Child, ChildStart
from penstock.errors import Conflict, InvalidInput, NotFound, PenstockError
from penstock.language.rules.event_filter import bind_filter, check_filter
from penstock.language.rules.secret_references import checked_parameters
from penstock.language.schemas import Schema, check_value
from penstock.language.schemas.question_schema import check_default, question_schema
from penstock.language.terms.ids import new_id
from penstock.language.terms.system_triggers import schemas as system_schemas
from penstock.language.workflows.target import Target
from penstock.store.admission import namespaces
from penstock.store.admission.namespaces import Namespace
from penstock.store.definitions import catalog
from penstock.store.durable import steps
from penstock.store.durable.steps import OwnedFunction, StepWrite
from penstock.store.session.database import Session, Transaction
from penstock.store.session.staged_messages import StagedMessage
from penstock.store.workflows import children
from penstock.store.workflows.children import NewChild


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """A child that an attempt wants to start. `function` is the ref of the attempt's action."""

    execution_id: UUID
    attempt: int
    tenant: str
    function: str
    start: ChildStart

    @property
    def target(self) -> str:
        """Return the ref that the child runs."""
        return item_workflow_ref(self.start.target) if self.start.record.kind == MAP else self.start.target

    @property
    def namespace(self) -> Namespace:
        """Return the namespace of the child."""
        name = self.start.record.key.name.rpartition("/")[2]
        return namespaces.of_child(self.tenant, self.function, name, self.target)

    def recorded(self) -> StepWrite:
        record = self.start.record
        return StepWrite(
            self.execution_id,
            self.attempt,
            record.key.name,
            record.key.ordinal,
            record.position,
            record.kind,
            record.status,
            1,
            0.0,
            None,
            None,
            record.asked_after,
        )


Answer = Child | None | Exception
"""The answer to an order: the child, an error, or None if the attempt no longer belongs to this worker."""


async def start_children(
    session: Session, worker: UUID, orders: Sequence[ChildOrder]
) -> tuple[list[Answer], list[StagedMessage]]:
    """Start the children, each once. Return an answer for each order, and the staged messages. An order that cannot be
    carried out is answered with its error, and leaves no record."""
    orders_by_id = sorted(orders, key=lambda order: order.execution_id)
    async with session.transaction() as tx:
        owned = await steps.lock_own(
            tx,
            worker,
            [o.execution_id for o in orders_by_id],
            [o.attempt for o in orders_by_id],
            max_depth := session.settings.max_workflow_depth,
        )
        ours = [order for order in orders_by_id if order.execution_id in owned]
        refs = sorted({order.target for order in ours})
        targets = await known_targets(tx, refs) if refs else {}
        new_children, refused = await _made(tx, ours, targets, owned, max_depth)
        if new_children and not await children.start(tx, list(new_children.values()), remembered(targets)):
            targets = await current_targets(tx, refs)
            new_children, refused = await _made(tx, ours, targets, owned, max_depth)
            await children.start(tx, list(new_children.values()), {})
        writes = [order.recorded() for order in ours if id(order) in new_children]
        if writes:
            await steps.record(tx, worker, writes)
        existing = {
            (child.parent, child.name, child.ordinal): child
            for child in await steps.children(tx, sorted(owned))
        }
    return [_answer(order, owned, refused, existing) for order in orders], tx.staged


def _answer(
    order: ChildOrder,
    owned: Mapping[UUID, OwnedFunction],
    refused: Mapping[int, PenstockError],
    existing: Mapping[Any, Any],
) -> Answer:
    if order.execution_id not in owned:
        return None
    if id(order) in refused:
        return refused[id(order)]
    key = order.start.record.key
    stored = existing[order.execution_id, key.name, key.ordinal]
    return Child(
        UUID(int=stored.id.int), stored.status, stored.ended, stored.result, stored.error, stored.finished_at
    )


async def _made(
    tx: Transaction,
    orders: Sequence[ChildOrder],
    targets: Mapping[str, Target],
    owned: Mapping[UUID, OwnedFunction],
    max_depth: int,
) -> tuple[dict[int, NewChild], dict[int, PenstockError]]:
    """Return the children to create, and the errors of the other orders, both by the identity of the order."""
    schemas = await catalog.parameter_schemas(tx, [target.definition for target in targets.values()])
    payloads = await _payload_schemas(tx, orders)
    places = await namespaces.places(tx, {order.namespace for order in orders if order.target in targets})
    new_children: dict[int, NewChild] = {}
    refused: dict[int, PenstockError] = {}
    for order in orders:
        try:
            target = _target(order, targets)
            function = owned[order.execution_id]
            if function.ends_at_once:
                # The request has reached the children that were there. It would not reach this one.
                raise Conflict(
                    f"{order.function} cannot start further executions, since its end was requested a second time",
                    hint="You need to do nothing: the function ends at once.",
                )
            if function.depth >= max_depth:
                raise _too_deep(order, max_depth)
            parameters = (
                _wait(order, payloads, tx.settings.payload_cap)
                if order.start.record.kind == WAIT_FOR
                else _parameters(order, target, schemas, tx.settings.payload_cap)
            )
        except PenstockError as error:
            refused[id(order)] = error
            continue
        key, origin = order.start.record.key, orjson.dumps({"function": str(order.execution_id)}).decode()
        new_children[id(order)] = NewChild(
            new_id(),
            places[order.namespace],
            target.definition,
            parameters,
            None,
            origin,
            None,
            order.execution_id,
            key.name,
            key.ordinal,
        )
    return new_children, refused


def _too_deep(order: ChildOrder, max_depth: int) -> InvalidInput:
    return InvalidInput(
        f"{order.target} would be at nesting level {max_depth + 1}, but max_workflow_depth is {max_depth}",
        hint="If the function runs itself, add a condition that ends the recursion. Or raise PENSTOCK_MAX_WORKFLOW_DEPTH.",
    )


def _target(order: ChildOrder, targets: Mapping[str, Target]) -> Target:
    target = targets.get(order.target)
    if target is None or not target.enabled:
        raise NotFound(
            f"{order.target} is not registered, or is retired",
            hint="Apply it (`penstock apply`), or correct the name that the function gives.",
        )
    return target


async def _payload_schemas(tx: Transaction, orders: Sequence[ChildOrder]) -> dict[str, Any]:
    """Return the payload schemas of the existing triggers that these orders name."""
    refs = {order.start.parameters["trigger"] for order in orders if order.start.record.kind == WAIT_FOR}
    if not refs:
        return {}
    rows = [row for row in await catalog.current(tx, ["trigger"], sorted(refs)) if row.enabled]
    bodies = await catalog.bodies(tx, [row.definition_id for row in rows])
    return {**dict(system_schemas()), **{row.ref: bodies[row.definition_id].get("schema") for row in rows}}


def _wait(order: ChildOrder, payloads: Mapping[str, Any], cap: int) -> str:
    params = order.start.parameters
    trigger = params["trigger"]
    if trigger not in payloads:
        raise NotFound(
            f"there is no trigger {trigger!r} to wait for",
            hint="Apply it (`penstock apply`), or correct the name that the function gives.",
        )
    check_filter(params["filter"], params["names"], payloads.get(trigger))
    bound = bind_filter(params["filter"], params["names"])
    waiting = {"trigger": trigger, "timeout": params["timeout"], **bound}
    return check_value(waiting, cap, what="what it waits for").decode()


def _parameters(order: ChildOrder, target: Target, schemas: Mapping[int, Schema], cap: int) -> str:
    params = order.start.parameters
    if target.kind == "wait":
        schema = question_schema(params["schema"])
        check_default(params["default"], schema, cap=cap)
        return check_value({**params, "schema": schema}, cap, what="the inquiry").decode()
    if not isinstance(params, Mapping):
        raise InvalidInput(f"the parameters are not a mapping: {type(params).__name__}")
    return checked_parameters(schemas[target.definition], params, cap).decode()
