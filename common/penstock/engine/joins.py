"""The decision whether a task runs, from the ends of the tasks before it. An end arrives at each successor, until that
successor is decided."""

from __future__ import annotations

from heapq import heappop
from typing import Any

from penstock.engine.draft import Arrival, Draft
from penstock.engine.facts import Asking, Needed
from penstock.engine.plan import CompiledTask
from penstock.engine.state import DUE, TaskState, outcome_of
from penstock.engine.task_errors import describe_error
from penstock.engine.transitions import take_transitions
from penstock.errors import ExpressionError
from penstock.language.expressions import condition, holds, look_up
from penstock.language.moves import FAILED, SKIPPED
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.graph import Node
from penstock.language.workflows.task_trigger_rules import FAILURE, SourceOutcomes


def deliver_arrivals(draft: Draft) -> Asking[None]:
    """Count each arrived end at its target, and decide the targets that can be decided. A skipped target ends, and its
    end arrives at its own successors in turn.

    Targets are taken in the workflow's order. So all arrivals at earlier tasks are counted before a task is decided.
    """
    while draft.arriving and draft.state.phase == "running":
        target = draft.arriving[0].target
        node = draft.plan.graph[target]
        if target not in draft.facts.tasks:
            yield Needed(tasks={target})
        state = draft.facts.tasks[target]
        if state is not None and not state.undecided:
            arrival = heappop(draft.arriving)
            if state.runs and _wants_failure(node, arrival):
                yield from _mark_handled(draft, arrival.source)
            continue
        task_state = yield from draft.to_change(target)
        while draft.arriving and draft.arriving[0].target == target:
            arrival = heappop(draft.arriving)
            setattr(task_state, arrival.outcome, getattr(task_state, arrival.outcome) + 1)
            task_state.rescues += arrival.rescue
            if arrival.source in node.named:
                task_state.named[arrival.source] = arrival.outcome
        if node.is_decidable(task_state.success, task_state.failed, task_state.skipped):
            yield from run_or_skip(draft, draft.plan[target], task_state)
    draft.arriving.clear()


def run_or_skip(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[None]:
    """Decide whether a task runs. The task becomes due, or is skipped, or fails if its rule is in error. If it ended,
    its end is added to the arrivals at its successors (`deliver_arrivals`)."""
    try:
        runs = yield from _rule_holds(draft, compiled, task_state)
    except ExpressionError as error:
        yield from _end_unstarted(draft, compiled, task_state, FAILED, describe_error(error))
        return
    if not runs:
        yield from _end_unstarted(draft, compiled, task_state, SKIPPED)
        return
    node = compiled.node
    if task_state.rescues or (task_state.failed and (node.handles_any_failure or node.handles_failures_of)):
        yield from draft.scope.load(Needed(tasks=set(node.sources)))
        for source in node.sources:
            source_state = draft.facts.tasks[source]
            if (
                source_state is not None
                and source_state.final
                and _wants_failure(node, _arrival_from(draft, node, source, source_state))
            ):
                yield from _mark_handled(draft, source)
    task_state.status, task_state.runs = DUE, True
    draft.state.due.append(node.index)


def _rule_holds(draft: Draft, compiled: CompiledTask, task_state: TaskState) -> Asking[bool]:
    node = compiled.node
    if task_state.success < node.early_success:
        return False
    if node.rule is None:
        return True
    names: dict[str, Any] = {}
    if compiled.rule_reads_values:
        names = yield from draft.scope.namespace(compiled.reads["decide"], node.index)
    outcomes = SourceOutcomes(len(node.sources), task_state.success, task_state.failed, task_state.skipped)
    outcomes.named = {draft.plan.graph[source].name: end for source, end in task_state.named.items()}

    def leaf(part: Any) -> bool:
        try:
            if isinstance(part, task_trigger_rules.ContextComparison):
                return holds(part.op, look_up(part.context, names["context"]), part.value)
            return condition(part)(names)
        except ExpressionError as error:
            raise ExpressionError(f"task `{node.name}`, when: {error.message}", hint=error.hint) from None

    return bool(task_trigger_rules.holds(node.rule, outcomes, leaf))


def _end_unstarted(
    draft: Draft, compiled: CompiledTask, task_state: TaskState, status: str, error: Any = None
) -> Asking[None]:
    task_state.status, task_state.error, task_state.given = status, error, status != SKIPPED
    draft.state.left -= 1
    yield from take_transitions(draft, compiled, task_state)


def may_be_handled(draft: Draft, source: int, source_state: TaskState) -> Asking[bool]:
    """Return whether a task that is not decided yet would handle the failure of `source` if it ran."""
    graph = draft.plan.graph
    handlers = {
        target
        for target in graph[source].targets
        if _wants_failure(graph[target], _arrival_from(draft, graph[target], source, source_state))
    }
    yield from draft.scope.load(Needed(tasks=handlers))
    states = [draft.facts.tasks[target] for target in handlers]
    return any(state is None or state.undecided for state in states)


def _arrival_from(draft: Draft, node: Node, source: int, source_state: TaskState) -> Arrival:
    """Return the arrival of the ended task `source` at this task."""
    sender = draft.plan.graph[source]
    if sender.routes and node.index in sender.routes:
        return Arrival(node.index, source, "", node.index in source_state.routes)
    return Arrival(node.index, source, outcome_of(source_state.status, sender.step.allow_failure), False)


def _wants_failure(node: Node, arrival: Arrival) -> bool:
    """Return whether this task runs because of the failure that arrived, and so handles it."""
    if arrival.rescue:
        return True
    return arrival.outcome == FAILURE and (
        node.handles_any_failure or arrival.source in node.handles_failures_of
    )


def _mark_handled(draft: Draft, source: int) -> Asking[None]:
    task_state = yield from draft.to_change(source)
    if not task_state.handled:
        task_state.handled = True
        draft.state.unhandled -= 1
