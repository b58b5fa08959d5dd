"""The functions for tasks of a workflow function, besides calls of actions: tasks with options, waits, inquiries, the
exit task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

from penstock.language.definitions.qualified_name import ref_of
from penstock.language.terms.sources import Source, caller, of_frame
from penstock.language.workflows.context_tasks import ContextTask, context_task
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import FAIL, NOOP
from penstock.language.workflows.task_handle import TaskDraft, TaskHandle, draft_of
from penstock.language.workflows.task_recorder import TaskRecorder, current_recorder


@overload
def task(
    *, dependencies: Any = (), trigger_rule: Any = None, **options: Any
) -> Callable[[Callable[..., Any]], ContextTask]: ...


@overload
def task(called: Any, input: Any = None, /, **options: Any) -> TaskHandle: ...


def task(called: Any = None, input: Any = None, /, **options: Any) -> Any:
    """Add a task of an action or workflow, or of a ref, with its own options to a workflow function.

        task(charge, {"amount": order.total}, name="charge_again", retry={"max_attempts": 3}, after=[shipped])

    Elsewhere it is a decorator for a function that takes the shared context: see
    `penstock.language.workflows.context_tasks`.

        @task(dependencies=[extract], trigger_rule="all_done")
        async def load(context): ...
    """
    recorder = current_recorder()
    if recorder is None:
        if called is None:
            return context_task(of_frame(caller()), **options)
        raise of_frame(caller()).wrong(
            "task(...) adds to a workflow, and none is being described here",
            "Call it in a function under @workflow. As a decorator write @task(dependencies=[...]).",
        )
    ref = ref_of(called)
    if not isinstance(ref, str):
        raise of_frame(caller()).wrong(
            f"{called!r} is neither an action nor a workflow",
            "Put @action on the function, or give a ref as text.",
        )
    kind = "workflow" if isinstance(called, Workflow) else "action"
    return recorder.add({kind: ref, "input": {} if input is None else input, **options}, of_frame(caller()))


def wait_for_event(trigger: Any, *, filter: Any = None, timeout: Any = None, **options: Any) -> TaskHandle:
    """Add a task that waits for an event of this trigger. Its result is the event."""
    recorder, source = _recorder_and_source("wait_for_event")
    fields = {"trigger": ref_of(trigger), "filter": filter, "timeout": timeout}
    wait = {name: value for name, value in fields.items() if value is not None}
    return recorder.add({"wait_for_event": wait, **options}, source)


def inquiry(
    prompt: Any,
    *,
    schema: Mapping[str, Any] | None = None,
    assignee: Any = None,
    timeout: Any = None,
    default: Any = None,
    **options: Any,
) -> TaskHandle:
    """Add a task that asks a human. Its result is the answer."""
    recorder, source = _recorder_and_source("inquiry")
    fields = {
        "prompt": prompt,
        "schema": schema,
        "assignee": assignee,
        "timeout": timeout,
        "default": default,
    }
    question = {name: value for name, value in fields.items() if value is not None}
    return recorder.add({"inquiry": question, **options}, source)


def noop(input: Mapping[str, Any] | None = None, /, **options: Any) -> TaskHandle:
    """Add a task that does nothing. Its result is its input. Use it to join tasks, or to evaluate values once."""
    recorder, source = _recorder_and_source("noop")
    return recorder.add({"action": NOOP, "input": dict(input or {}), **options}, source)


def fail(message: Any, **options: Any) -> TaskHandle:
    """Add a task that fails with `message`."""
    recorder, source = _recorder_and_source("fail")
    return recorder.add({"action": FAIL, "input": {"message": message}, **options}, source)


def on_exit(called: Any, /, **input: Any) -> None:
    """Declare the task that runs when all tasks have ended, whatever their outcome. It is an action or a workflow with
    its input, or a task with its options, as `on_exit(release(order=order).set(retry={"max_attempts": 3}))`."""
    recorder, source = _recorder_and_source("on_exit")
    if isinstance(called, TaskHandle) and not input:
        recorder.at_exit(draft_of(called), source)
        return
    kind = "workflow" if isinstance(called, Workflow) else "action"
    recorder.at_exit(TaskDraft("", {kind: ref_of(called), "input": input}, source), source)


def _recorder_and_source(name: str) -> tuple[TaskRecorder, Source]:
    source = of_frame(caller())
    recorder = current_recorder()
    if recorder is None:
        raise source.wrong(
            f"{name}(...) adds to a workflow, and none is being described here",
            "Call it in a function under @workflow.",
        )
    return recorder, source
