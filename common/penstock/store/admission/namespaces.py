"""The properties of a namespace's executions: their kind, their queue, and the limits that apply. The properties are
stored, so that replicas never disagree. They are computed once for each namespace, and again whenever routes, limits or
actions change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from penstock.language.terms.routing import DEFAULT_ROUTE, Explanation, Router, RoutingRule
from penstock.language.terms.waits import WAITS
from penstock.store.outbox.queues import WORK, WORKFLOW_STARTED
from penstock.store.session.database import Row, Session, Transaction

ACTION, WORKFLOW, WAIT = "action", "workflow", "wait"
"""The kinds of executions: an action, which a worker runs; a workflow; a task that waits for an event or an answer."""

FIND = """
select n.id, n.name, n.action from unnest($1::text[], $2::text[]) as x (name, action) join namespace n using (name, action)
"""
SHARE_RULES = "select lock_placement()"
LOCK_RULES = "select pg_advisory_xact_lock(7, -1)"
NOTICE = "select notice_workers()"
INSERT = """
insert into namespace (name, action, kind, queue, limits, away_since)
select n, a, k, q, l::integer[], case when is_away(l::integer[], k, q, a) then clock_timestamp() end
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as x (n, a, k, q, l)
order by n, a
on conflict (name, action) do nothing
"""
RULES = """
select d.kind, c.ref, d.body::text as body, l.id as limit_id
from catalog c join definition d on d.id = c.definition_id
left join concurrency_limit l on d.kind = 'limit' and l.ref = c.ref and l.definition_id = c.definition_id
where c.enabled and (c.kind in ('route', 'limit_by_hand')
    or c.kind = 'limit' and not exists (select from catalog h where h.kind = 'limit_by_hand' and h.ref = c.ref))
order by d.kind, coalesce((d.body ->> 'position')::integer, 0), c.ref
"""
HAS_HOLDS = "select from hold limit 1"
TARGETS = """
select c.ref, c.kind, d.body ->> 'route' as route
from catalog c join definition d on d.id = c.definition_id where c.kind in ('action', 'workflow')
"""
ALL = "select id, name, action, kind, queue, limits from namespace"
MOVE = """
update namespace n set kind = x.k, queue = x.q, limits = x.l::integer[]
from unnest($1::integer[], $2::text[], $3::text[], $4::text[]) as x (id, k, q, l) where n.id = x.id
"""


NOTE_TENANTS = "select note_tenants($1, $2)"
MARK_HOLDS = "select mark_holds($1::integer[])"


class Namespace(NamedTuple):
    """The name of a namespace, and the action of its executions. A task may run another action, or a workflow, in the
    next version of its workflow."""

    name: str
    action: str


def of(tenant: str, ref: str) -> Namespace:
    """Return the namespace of a stand-alone action or workflow: `tenant::pack::action`."""
    return Namespace(f"{tenant}::{ref.replace('.', '::')}", ref)


def of_child(tenant: str, parent: str, task: str, ref: str, route: str | None = None) -> Namespace:
    """Return the namespace of a task of a workflow, or of a step of a durable function:
    `tenant::pack::workflow::task`, with `@route` if the task names a route."""
    name = f"{tenant}::{parent.replace('.', '::')}::{task}"
    return Namespace(f"{name}@{route}" if route else name, ref)


async def lock_rules(tx: Transaction) -> None:
    """Lock the rules exclusively before routes, limits or actions are changed. Until the transaction ends, no other
    transaction changes them or places a namespace, and no execution is admitted, put in line or promoted."""
    await tx.fetch(LOCK_RULES)


async def notice_workers(session: Session) -> None:
    """Note for every namespace whether a live worker runs it. Lanes of a namespace without a live worker let other
    lanes pass. A wake row brings them back when a worker comes."""
    await session.fetch(NOTICE)


async def places(db: Session | Transaction, requested: Collection[Namespace]) -> dict[Namespace, int]:
    """Return the ids of these namespaces. New namespaces are placed: inserted with their queue and limits."""
    cached = {n: id for n in requested if (id := remembered(db, n)) is not None}
    missing = sorted(set(requested) - set(cached))
    if not missing:
        return cached
    ids = await _find(db, missing)
    new = [n for n in missing if n not in ids]
    if new:
        if isinstance(db, Session):
            async with db.transaction() as tx:
                ids |= await _place(tx, new)
        else:
            ids |= await _place(db, new)
    for n, id in ids.items():
        # An id never changes. But namespaces that this transaction has inserted may still be rolled back.
        if isinstance(db, Session) or n not in db.placed:
            db.cache["namespace", n] = id
    return cached | ids


def remembered(db: Session | Transaction, namespace: Namespace) -> int | None:
    """Return the id of a namespace, if it was looked up before."""
    id: int | None = db.cache.get(("namespace", namespace))
    return id


async def router(session: Session) -> Router:
    """Return the routing rules of the catalog."""
    return (await _Rules.load(session)).router


@dataclass(frozen=True, slots=True)
class RouteChoice:
    """The route of a namespace's executions: the one that the task or the action names (`named`), otherwise that of
    the rules."""

    named: str | None
    rules: Explanation

    @property
    def route(self) -> str:
        return self.named or self.rules.route


async def route_choice(session: Session, namespace: str, action: str) -> RouteChoice:
    """Return the route of an action's executions, with its reasons. `namespace` is the name as `places` takes it."""
    rules = await _Rules.load(session)
    return RouteChoice(
        rules.named_route(namespace, action), rules.router.explain(namespace.partition("@")[0])
    )


async def _find(db: Session | Transaction, requested: Sequence[Namespace]) -> dict[Namespace, int]:
    rows = await db.fetch(FIND, [n.name for n in requested], [n.action for n in requested])
    return {Namespace(row["name"], row["action"]): row["id"] for row in rows}


async def _place(tx: Transaction, new: Sequence[Namespace]) -> dict[Namespace, int]:
    tx.placed.update(new)
    await tx.fetch(SHARE_RULES)  # no transaction changes the rules between the next query and the commit
    rules = await _Rules.load(tx)
    await tx.fetch(
        INSERT,
        [n.name for n in new],
        [n.action for n in new],
        [rules.kind(n.action) for n in new],
        [rules.queue(n.name, n.action) for n in new],
        [_array(rules.limits(n.name, n.action)) for n in new],
    )
    routed = [(rules.queue(n.name, n.action), n.name) for n in new if rules.kind(n.action) == ACTION]
    if routed:
        await tx.fetch(NOTE_TENANTS, *(list(column) for column in zip(*routed, strict=True)))
    ids = await _find(tx, new)
    if rules.has_holds:
        await tx.fetch(MARK_HOLDS, list(ids.values()))
    return ids


async def replace_all(tx: Transaction) -> list[int]:
    """Compute the kind, queue and limits of every namespace again, and store those that changed. Call it in the
    transaction that changed the rules, with `lock_rules` held. Return the namespaces with changed limits."""
    rules = await _Rules.load(tx)
    changed: list[tuple[int, str, str | None, str]] = []
    regrouped: list[int] = []
    routed: list[tuple[str | None, str]] = []
    for row in await tx.fetch(ALL):
        kind, queue = rules.kind(row["action"]), rules.queue(row["name"], row["action"])
        limits = rules.limits(row["name"], row["action"])
        if (kind, queue, limits) != (row["kind"], row["queue"], list(row["limits"])):
            changed.append((row["id"], kind, queue, _array(limits)))
            if kind == ACTION:
                routed.append((queue, row["name"]))
        if limits != list(row["limits"]):
            regrouped.append(row["id"])
    if changed:
        await tx.fetch(MOVE, *(list(column) for column in zip(*changed, strict=True)))
    if routed:
        await tx.fetch(NOTE_TENANTS, *(list(column) for column in zip(*routed, strict=True)))
    if changed and rules.has_holds:
        await tx.fetch(MARK_HOLDS, [id for id, *_ in changed])
    return regrouped


class _Rules:
    """The routes and limits of the catalog."""

    def __init__(self, rows: Sequence[Row], targets: Mapping[str, Row]) -> None:
        routes: list[RoutingRule] = []
        self._limits: list[tuple[int, str]] = []
        self._targets = targets
        for row in rows:
            body: dict[str, Any] = orjson.loads(row["body"])
            if row["kind"] == "limit":
                # A limit without an id is stored later in this transaction, by `apply`, which then calls `replace_all`.
                if row["limit_id"] is not None:
                    self._limits.append((row["limit_id"], str(body.get("scope") or "*")))
            else:
                routes.append(RoutingRule(body["pattern"], body["route"]))
        self.router = Router(routes, DEFAULT_ROUTE)
        self.has_holds = False

    @classmethod
    async def load(cls, tx: Session | Transaction) -> _Rules:
        targets = {row["ref"]: row for row in await tx.fetch(TARGETS)}
        rules = cls(await tx.fetch(RULES), targets)
        rules.has_holds = bool(await tx.fetch(HAS_HOLDS))
        return rules

    def kind(self, action: str) -> str:
        """Return the kind of an action's executions: `action`, `workflow` or `wait`."""
        if action in WAITS:
            return WAIT
        target = self._targets.get(action)
        return WORKFLOW if target is not None and target["kind"] == WORKFLOW else ACTION

    def queue(self, namespace: str, action: str) -> str | None:
        """Return the queue of the messages of an action; None for an action that waits, since no worker runs it."""
        kind = self.kind(action)
        if kind == WAIT:
            return None
        if kind == WORKFLOW:
            return WORKFLOW_STARTED
        return WORK + (self.named_route(namespace, action) or self.router.route(namespace.partition("@")[0]))

    def named_route(self, namespace: str, action: str) -> str | None:
        """Return the route that the task names, otherwise that of the action; None if neither names one."""
        target = self._targets.get(action)
        return namespace.partition("@")[2] or (target["route"] if target is not None else None)

    def limits(self, namespace: str, action: str) -> list[int]:
        """Return the ids of the limits that cover a namespace. The scope `*` covers all actions, a pack its own, a
        ref that action or workflow wherever it runs, and `pack.workflow.task` one task. A workflow is covered only by
        limits of its own: it would hold slots of its tasks' limits while it waits for the tasks. A waiting task needs
        no slot."""
        kind = self.kind(action)
        if kind == WAIT:
            return []
        covering = {action, namespace.partition("@")[0].partition("::")[2].replace("::", ".")}
        if kind == ACTION:
            covering |= {"*", action.split(".", 1)[0]}
        return sorted(id for id, scope in self._limits if scope in covering)


def _array(ids: Sequence[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"
