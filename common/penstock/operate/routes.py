"""Routes: their names, the definitions that name them, the workers that serve them, and the reasons for a route."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson

from penstock.errors import InvalidInput, NotFound
from penstock.language.terms.routing import DEFAULT_ROUTE, SEPARATOR, RoutingRule
from penstock.settings import Settings
from penstock.store.admission import limits, namespaces
from penstock.store.admission.namespaces import RouteChoice
from penstock.store.definitions import catalog
from penstock.store.processes import presence
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction, retried


@dataclass(frozen=True, slots=True)
class RouteUse:
    """A route: the rules, actions and tasks that name it, and the number of live workers that serve it. If it has
    only one of these, `meant` is a hint at a similar route."""

    route: str
    named_by: Sequence[str]
    workers: int
    meant: str | None

    @property
    def amiss(self) -> bool:
        """Return True for a route without a worker, or without work. The default route may be idle."""
        return not self.workers or not (self.named_by or self.route == DEFAULT_ROUTE)


def named_routes(kind: str, ref: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the routes that a definition names, and the place of each."""
    if body.get("route"):
        yield body["route"], f"{kind} {ref}"
    for task in [*body.get("tasks", ()), body.get("on_exit") or {}]:
        if task.get("route"):
            yield task["route"], f"workflow {ref}, task {task['name']}"


async def table(session: Session, settings: Settings) -> list[RouteUse]:
    """Return every route that a definition names or a live worker serves, and the default route."""
    named: dict[str, list[str]] = {}
    for current in await catalog.current(session, ["action", "route", "workflow"]):
        if current.enabled:
            for route, by in named_routes(current.kind, current.ref, orjson.loads(current.body)):
                named.setdefault(route, []).append(by)
    served = await presence.served_routes(session, settings.stale_threshold)
    uses = []
    for route in sorted({DEFAULT_ROUTE, *named, *served}):
        other_routes = (served if route in named else named).keys() - {route}
        near = get_close_matches(route, sorted({DEFAULT_ROUTE, *other_routes}), n=1)
        odd = (route in named) != (route in served) and route != DEFAULT_ROUTE
        meant = f"Did you mean {near[0]!r}?" if odd and near else None
        uses.append(RouteUse(route, named.get(route, []), served.get(route, 0), meant))
    return uses


async def unserved(session: Session, settings: Settings, routes: Iterable[str]) -> list[RouteUse]:
    """Return the routes among these that no live worker serves. If no worker lives at all, return only the routes
    that look like a misspelt name of another route."""
    uses = await table(session, settings)
    alive, selected = any(use.workers for use in uses), set(routes)
    return [use for use in uses if use.route in selected and not use.workers and (alive or use.meant)]


async def rules(session: Session) -> list[RoutingRule]:
    """Return the rules in force, in the order in which they are tried."""
    return list((await namespaces.router(session)).rules)


async def explain(session: Session, target: str) -> tuple[str, RouteChoice]:
    """Explain which route `target` takes, and why. `target` is a ref (of the default tenant), or a namespace
    `tenant::pack::action` or `tenant::pack::workflow::task`. Return the namespace, too. Raises NotFound if the action,
    the workflow or the task does not exist. Raises InvalidInput for a task that no worker runs."""
    namespace = target if SEPARATOR in target else namespaces.of("public", target).name
    _, *parts = namespace.split(SEPARATOR)
    ref, task = ".".join(parts[:2]), parts[2] if len(parts) == 3 else None
    kind = "action" if task is None else "workflow"
    rows = await catalog.current(session, [kind], [ref])
    if not rows:
        otherwise = "`penstock actions` lists actions and workflows."
        raise NotFound(
            f"there is no {kind} {ref!r}", hint=await catalog.hint(session, [kind], ref, otherwise)
        )
    if task is None:
        return namespace, await namespaces.route_choice(session, namespace, ref)
    body = orjson.loads(rows[0].body)
    tasks = {step["name"]: step for step in [*body["tasks"], body.get("on_exit")] if step}
    if task not in tasks:
        raise NotFound(f"workflow {ref} has no task {task!r}", hint=f"It has {', '.join(tasks)}.")
    action, own = tasks[task].get("action"), tasks[task].get("route")
    if action is None:
        raise InvalidInput(f"task {task} of {ref} has no route", hint="Executors run this task, not workers.")
    placed = f"{namespace}@{own}" if own else namespace
    return namespace, await namespaces.route_choice(session, placed, action)


async def remove(session: Session, pattern: str) -> None:
    """Delete a rule. Work that it routed follows the remaining rules. Raises NotFound if no rule has this pattern."""

    async def write(tx: Transaction) -> None:
        await namespaces.lock_rules(tx)
        if not await catalog.delete(tx, "route", pattern):
            otherwise = "`penstock routes list` lists the routing rules."
            raise NotFound(
                f"no routing rule has the pattern {pattern!r}",
                hint=await catalog.hint(tx, ["route"], pattern, otherwise),
            )
        await limits.regroup(tx, [], await namespaces.replace_all(tx))

    await committed_once(session, write)
    await retried(lambda: namespaces.notice_workers(session), deadline=30)
    session.cache.clear()
