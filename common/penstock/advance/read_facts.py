"""The reading of the facts that the engine asks for. A few statements read them for all workflows that advance
together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from penstock.bounds import RESULTS_CAPS
from penstock.engine import Facts, Needed, Plan, TaskResult, VariablesRequest
from penstock.engine.facts import SHOWN_ITEMS, Oversized
from penstock.store.session.database import Transaction
from penstock.store.workflows import facts as stored
from penstock.store.workflows.facts import StoredItemResults, StoredVariable


class Request(NamedTuple):
    """The facts that a workflow needs, and where to put them."""

    plan: Plan
    needed: Needed
    facts: Facts


Requests = Mapping[UUID, Request]


async def read_facts(tx: Transaction, requests: Requests) -> None:
    """Read the facts that each of these workflows needs, into its `facts`."""
    await _read_tasks(tx, requests)
    await _read_results(tx, requests)
    await _read_item_errors(tx, requests)
    await _read_variables(tx, requests)
    await _read_items(tx, requests)
    await _read_parameters(tx, requests)
    await _read_failures(tx, requests)


async def _read_tasks(tx: Transaction, requests: Requests) -> None:
    pairs = [(id, task) for id, request in requests.items() for task in request.needed.tasks]
    if not pairs:
        return
    for id, task in pairs:
        requests[id].facts.tasks[task] = None
    for row in await stored.read_tasks(tx, pairs):
        requests[row.workflow].facts.tasks[row.task] = row.state


async def _read_results(tx: Transaction, requests: Requests) -> None:
    requested = [
        (id, task, request.plan.graph[task].name)
        for id, request in requests.items()
        for task in request.needed.results
    ]
    if not requested:
        return
    totals = await _read_totals(tx, requests, [(id, task) for id, task, _ in requested])
    if totals:
        await _read_item_results(tx, requests, [task for task in requested if task[:2] in totals], totals)
    single = [task for task in requested if task[:2] not in totals]
    if not single:
        return
    for id, task, _ in single:
        requests[id].facts.results[task] = TaskResult()
    kept_tasks = [(id, task) for id, task, _ in single if requests[id].facts.rerun]
    # A re-run's own results override those that it kept from the run before.
    rows = await stored.read_kept_results(tx, kept_tasks) if kept_tasks else []
    for row in rows + await stored.read_results(tx, single):
        if row.item is None:
            requests[row.workflow].facts.results[row.task] = row.result


async def _read_item_results(
    tx: Transaction,
    requests: Requests,
    fan_outs: Sequence[tuple[UUID, int, str]],
    totals: Mapping[tuple[UUID, int], int],
) -> None:
    bound = RESULTS_CAPS * tx.settings.payload_cap
    results = await stored.read_item_results(tx, fan_outs, bound)
    for id, task, _ in fan_outs:
        of_task = results.get((id, task), StoredItemResults({}))
        if of_task.oversize is None:
            result: Any = [of_task.by_item.get(item) for item in range(totals[id, task])]
        else:
            result = Oversized(of_task.oversize, bound)
        requests[id].facts.results[task] = TaskResult(result)


async def _read_item_errors(tx: Transaction, requests: Requests) -> None:
    fan_outs = [
        (id, task, request.plan.graph[task].name)
        for id, request in requests.items()
        for task in request.needed.item_errors
    ]
    if not fan_outs:
        return
    for id, task, _ in fan_outs:
        requests[id].facts.item_errors[task] = {}
    for row in await stored.read_item_errors(tx, fan_outs, SHOWN_ITEMS):
        if row.item is not None:
            requests[row.workflow].facts.item_errors[row.task][row.item] = row.result


async def _read_totals(
    tx: Transaction, requests: Requests, tasks: Iterable[tuple[UUID, int]]
) -> dict[tuple[UUID, int], int]:
    """Return the number of items of each fan-out among these tasks."""
    states = {}
    unknown = []
    for id, task in tasks:
        if task in requests[id].facts.tasks:
            states[id, task] = requests[id].facts.tasks[task]
        else:
            unknown.append((id, task))
    if unknown:
        states |= {(row.workflow, row.task): row.state for row in await stored.read_tasks(tx, unknown)}
    return {key: state.fan.total for key, state in states.items() if state is not None and state.fan}


async def _read_variables(tx: Transaction, requests: Requests) -> None:
    asking = [id for id, request in requests.items() if request.needed.variables]
    if not asking:
        return
    by_workflow: dict[UUID, list[StoredVariable]] = {}
    for variable in await stored.read_variables(tx, asking, _names(requests[id].needed for id in asking)):
        by_workflow.setdefault(variable.workflow, []).append(variable)
    for id in asking:
        _, needed, facts = requests[id]
        for reader, request in needed.variables.items():
            facts.variables[reader] = (request.names, _visible(request, by_workflow.get(id, ())))


def _visible(request: VariablesRequest, variables: Iterable[StoredVariable]) -> dict[str, tuple[int, Any]]:
    """Return, by name, the value that the reader sees, and its writer."""
    latest: dict[str, StoredVariable] = {}
    for variable in variables:
        if not request.sees(variable.writer, variable.name):
            continue
        if variable.name not in latest or variable.writer >= latest[variable.name].writer:
            latest[variable.name] = variable
    return {name: (variable.writer, orjson.loads(variable.value)) for name, variable in latest.items()}


def _names(needed: Iterable[Needed]) -> list[str] | None:
    """Return the requested names of variables; None for all."""
    names: set[str] = set()
    for request in (variables for needs in needed for variables in needs.variables.values()):
        if request.names is None:
            return None
        names |= request.names
    return sorted(names)


async def _read_items(tx: Transaction, requests: Requests) -> None:
    ranges = [
        (id, task, first, end)
        for id, request in requests.items()
        for task, (first, end) in request.needed.items.items()
    ]
    if not ranges:
        return
    for row in await stored.read_items(tx, ranges):
        requests[row.workflow].facts.items.setdefault(row.task, {})[row.item] = row.value


async def _read_parameters(tx: Transaction, requests: Requests) -> None:
    ids = [id for id, request in requests.items() if request.needed.parameters]
    if not ids:
        return
    for row in await stored.read_parameters(tx, ids):
        plan, _, facts = requests[row.workflow]
        facts.parameters = plan.parameters(row.parameters)
        if row.context is not None:
            facts.context = dict(row.context)


async def _read_failures(tx: Transaction, requests: Requests) -> None:
    failures = {id: request.facts for id, request in requests.items() if request.needed.failures}
    if not failures:
        return
    for facts in failures.values():
        facts.failures = {}
    for row in await stored.read_failures(tx, list(failures)):
        of_workflow = failures[row.workflow].failures
        assert of_workflow is not None
        of_workflow[row.task] = row.state
