"""A task has ended: what it publishes, which ways it opens, and how its end counts for what comes after
it."""

from __future__ import annotations

from heapq import heappush
from typing import Any

from penstock.engine.decision import Published
from penstock.engine.facts import Ended
from penstock.engine.plan import Compiled, Way
from penstock.engine.scope import Steps, end_names
from penstock.engine.state import Record, outcome_of
from penstock.engine.task_errors import error_of
from penstock.engine.working_state import Arrival, Run
from penstock.errors import ExpressionError
from penstock.language.workflows.rules import FAILURE, SKIP, SUCCESS
from penstock.moves import COMPLETED, FAILED, SKIPPED

MAX_FAULTS = 10


def settle(run: Run, compiled: Compiled, record: Record) -> Steps[None]:
    """Publish, take transitions, and send the task's outcome on its way to those after it
    (`run.arriving`)."""
    node = compiled.node
    taken: set[int] = set()
    rescued: set[int] = set()
    if record.status != SKIPPED and ("publish" in compiled.render or compiled.ways):
        names = yield from run.scope.namespace(compiled.reads["settle"], node.index)
        if record.status == COMPLETED and "publish" in compiled.render:
            _publish(run, compiled, record, names | _end(run, node.index, record))
        names |= _end(run, node.index, record)
        for number, way in enumerate(compiled.ways):
            if _take(run, compiled, number, way, names):
                taken.update(way.do)
                if record.status != COMPLETED and not _taken_anyway(way, names):
                    rescued.update(way.do)
                    record.handled |= not way.do
    record.routes = sorted(rescued)
    outcome = outcome_of(record.status, node.step.allow_failure)
    if outcome == FAILURE and not record.handled:
        run.head.unhandled += 1
    elif outcome == SUCCESS and record.status != COMPLETED:
        record.handled = True
    for target in node.targets:
        if node.routes and target in node.routes:
            led = SUCCESS if target in taken else SKIP
            heappush(run.arriving, Arrival(target, node.index, led, target in rescued))
        else:
            heappush(run.arriving, Arrival(target, node.index, outcome, False))


def _end(run: Run, task: int, record: Record) -> dict[str, Any]:
    return end_names(record.status, run.scope.ended(task, record))


def _publish(run: Run, compiled: Compiled, record: Record, names: dict[str, Any]) -> None:
    """A task whose publishing fails has failed, whatever its execution did."""
    try:
        _set(
            run,
            compiled.node.index,
            compiled.render["publish"](names),
            f"task `{compiled.node.name}`, publish",
        )
    except ExpressionError as error:
        record.status, record.error = FAILED, error_of(error)


def _take(run: Run, compiled: Compiled, number: int, way: Way, names: dict[str, Any]) -> bool:
    """Whether a transition is taken. One that is in error is not, and the workflow will fail for it."""
    place = f"task `{compiled.node.name}`, next.{number}"
    try:
        try:
            taken = way.when(names)
        except ExpressionError as error:
            raise ExpressionError(f"{place}.when: {error.message}", hint=error.hint) from None
        if taken and way.publish is not None:
            _set(run, compiled.node.index, way.publish(names), f"{place}.publish")
        return taken
    except ExpressionError as error:
        run.head.faults = [*run.head.faults, error_of(error)][:MAX_FAULTS]
        return False


def _taken_anyway(way: Way, names: dict[str, Any]) -> bool:
    """Whether a transition that was taken after a failure would be taken after a success as well. If not, it
    is a failure route, and it handles the failure."""
    if way.always:
        return True
    try:
        return way.when(names | end_names(COMPLETED, Ended(names["result"])))
    except ExpressionError:
        return False


def _set(run: Run, writer: int, values: Any, place: str) -> None:
    if not isinstance(values, dict):
        raise ExpressionError(
            f"{place}: it gives a {type(values).__name__}, not a mapping of names to values",
            hint="Write `publish: {name: value}`, or an expression whose value is a mapping.",
        )
    run.decision.published.extend(Published(writer, str(name), value) for name, value in values.items())
