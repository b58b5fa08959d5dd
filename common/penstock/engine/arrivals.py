"""Ends arrive at the tasks after them, until each of these is decided: it runs, or it is skipped."""

from __future__ import annotations

from heapq import heappop
from typing import Any

from penstock.engine.facts import Needed
from penstock.engine.plan import Compiled
from penstock.engine.scope import Steps
from penstock.engine.state import DUE, Record, outcome_of
from penstock.engine.task_errors import error_of
from penstock.engine.transitions import settle
from penstock.engine.working_state import Arrival, Run
from penstock.errors import ExpressionError
from penstock.language.expressions import condition, holds, look_up
from penstock.language.workflows import rules
from penstock.language.workflows.graph import Node
from penstock.language.workflows.rules import FAILURE, Outcomes
from penstock.moves import FAILED, SKIPPED


def deliver(run: Run) -> Steps[None]:
    """Tell the tasks after one that ended how it came out, and those after them, until nothing more follows.

    In the workflow's order: when a task is looked at, everything that this end means for its sources is
    known."""
    while run.arriving and run.head.phase == "running":
        target = run.arriving[0].target
        node = run.plan.graph[target]
        if target not in run.facts.records:
            yield Needed(records={target})
        known = run.facts.records[target]
        if known is not None and not known.undecided:
            arrival = heappop(run.arriving)
            if known.runs and _asked_for(node, arrival):
                yield from _handle(run, arrival.source)
            continue
        record = yield from run.record(target)
        while run.arriving and run.arriving[0].target == target:
            arrival = heappop(run.arriving)
            setattr(record, arrival.outcome, getattr(record, arrival.outcome) + 1)
            record.rescues += arrival.rescue
            if arrival.source in node.named:
                record.named[arrival.source] = arrival.outcome
        if _decidable(node, record):
            yield from decide(run, run.plan[target], record)
    run.arriving.clear()


def decide(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    """A task is due, or skipped; a rule in error fails it. `deliver` then tells those after it."""
    try:
        runs = yield from _runs(run, compiled, record)
    except ExpressionError as error:
        yield from _end_unstarted(run, compiled, record, FAILED, error_of(error))
        return
    if not runs:
        yield from _end_unstarted(run, compiled, record, SKIPPED)
        return
    node = compiled.node
    if record.rescues or (record.failed and (node.claims_any or node.claims)):
        yield from run.scope.load(Needed(records=set(node.sources)))
        for source in node.sources:
            before = run.facts.records[source]
            if before is not None and before.final and _asked_for(node, _arrived(run, node, source, before)):
                yield from _handle(run, source)
    record.status, record.runs = DUE, True
    run.head.due.append(node.index)


def _decidable(node: Node, record: Record) -> bool:
    if record.arrived == len(node.sources):
        return True
    if node.early_failure and record.failed >= node.early_failure:
        return True
    return bool(node.early_success) and record.success >= node.early_success


def _runs(run: Run, compiled: Compiled, record: Record) -> Steps[bool]:
    node = compiled.node
    if record.success < node.early_success:
        return False
    if node.rule is None:
        return True
    names: dict[str, Any] = {}
    if compiled.asks:
        names = yield from run.scope.namespace(compiled.reads["decide"], node.index)
    outcomes = Outcomes(len(node.sources), record.success, record.failed, record.skipped)
    outcomes.named = {run.plan.graph[source].name: end for source, end in record.named.items()}

    def leaf(part: Any) -> bool:
        try:
            if isinstance(part, rules.Context):
                return holds(part.op, look_up(part.context, names["context"]), part.value)
            return condition(part)(names)
        except ExpressionError as error:
            raise ExpressionError(f"task `{node.name}`, when: {error.message}", hint=error.hint) from None

    return bool(rules.holds(node.rule, outcomes, leaf))


def _end_unstarted(
    run: Run, compiled: Compiled, record: Record, status: str, error: Any = None
) -> Steps[None]:
    record.status, record.error, record.given = status, error, status != SKIPPED
    run.head.left -= 1
    yield from settle(run, compiled, record)


def _arrived(run: Run, node: Node, source: int, before: Record) -> Arrival:
    """How a source that has ended came to this task."""
    led = run.plan.graph[source]
    if led.routes and node.index in led.routes:
        return Arrival(node.index, source, "", node.index in before.routes)
    return Arrival(node.index, source, outcome_of(before.status, led.step.allow_failure), False)


def _asked_for(node: Node, arrival: Arrival) -> bool:
    """Whether this task, which runs, is there for the failure that arrived."""
    if arrival.rescue:
        return True
    return arrival.outcome == FAILURE and (node.claims_any or arrival.source in node.claims)


def _handle(run: Run, source: int) -> Steps[None]:
    record = yield from run.record(source)
    if not record.handled:
        record.handled = True
        if outcome_of(record.status, run.plan.graph[source].step.allow_failure) == FAILURE:
            run.head.unhandled -= 1
