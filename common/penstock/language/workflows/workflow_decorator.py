"""Workflows written in Python: a function that wires actions together.

    @workflow
    def report(day: str):
        files = list_files(day=day)
        counts = count_lines(path=each(files, concurrency=10))
        return summarise(counts=counts).when(files | "length" > 0)

The function runs once, when it is declared. Calling an action in it adds a task and returns a stand-in for the result.
A task that uses the stand-in comes after that task. The function does not know the values of the run, so it cannot
branch on them with `if`. Use `when` instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from pydantic import ValidationError

from penstock.language.definitions.declaration import remember
from penstock.language.definitions.qualified_name import Pack, pack_of, qualified
from penstock.language.definitions.signature import signature_of
from penstock.language.terms.sources import Source, caller, of_code, of_frame
from penstock.language.workflows.check import refusal, require
from penstock.language.workflows.context_tasks import ContextTask
from penstock.language.workflows.model import FORMAT, Workflow
from penstock.language.workflows.serialization import shape_problems
from penstock.language.workflows.task_recorder import TaskRecorder
from penstock.language.workflows.value_reference import ValueReference, template
from penstock.run.call_interceptor import CALL_INTERCEPTOR


@overload
def workflow(function: Callable[..., Any], /) -> Workflow: ...


@overload
def workflow(ref: str, /, *, tasks: Sequence[ContextTask], **options: Any) -> Workflow: ...


@overload
def workflow(
    *, ref: str | None = None, pack: str | Pack | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Workflow]: ...


def workflow(
    function: Callable[..., Any] | str | None = None,
    /,
    *,
    ref: str | None = None,
    pack: str | Pack | None = None,
    tasks: Sequence[ContextTask] | None = None,
    **options: Any,
) -> Any:
    """Make a workflow of a function that wires actions (`@workflow`), or of context tasks (`workflow("etl",
    tasks=[extract, load])`).

    Its ref is `<pack>.<function name>`, with the pack from `pack=` or from `pack = Pack("shop")` in its module. The
    parameters of the function are those of the workflow. Options: `description`, `title`, `parameters`,
    `vars`, `output`, `timeout`, `warn_after`, `fail_fast`, `limits`, `run_labels`, `searchable`, `on_exit`. A call of an
    action in the function returns a `TaskHandle`. Raises one DefinitionError for all faults.
    """
    frame = caller()
    if tasks is not None or isinstance(function, str):
        name = ref or (function if isinstance(function, str) else "")
        whole = _qualified(name, pack, frame.f_globals, of_frame(frame))
        definition = _of_context_tasks(whole, tasks or (), options, of_frame(frame))
        remember(definition, frame)
        return definition
    names = {} if frame.f_code.co_name == "<module>" else dict(frame.f_locals)

    def declare(function: Callable[..., Any]) -> Workflow:
        source = of_code(inspect.unwrap(function).__code__)
        whole = _qualified(ref or function.__name__, pack, function.__globals__, source)
        definition = _of_function(function, whole, options, names, source)
        remember(definition, frame)
        return definition

    return declare if function is None else declare(function)


def _qualified(name: str, pack: str | Pack | None, module: Mapping[str, Any], source: Source) -> str:
    pack_name = pack.name if isinstance(pack, Pack) else pack
    if pack_name is None and "." not in name:
        declared = pack_of(module)
        if declared is None:
            raise source.wrong(
                f"workflow {name} belongs to no pack",
                "Put pack = Pack('shop') at the top of the module, or write @workflow(pack='shop').",
            )
        pack_name = declared.name
    return qualified(name, pack_name)


def _of_function(
    function: Callable[..., Any], ref: str, options: dict[str, Any], names: Mapping[str, Any], source: Source
) -> Workflow:
    signature = signature_of(function, ref, source, names)
    references = {
        name: ValueReference(f"parameters.{name}")
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    recorder = TaskRecorder()
    token = CALL_INTERCEPTOR.set(recorder.record_call)
    try:
        output = function(**references)
    finally:
        CALL_INTERCEPTOR.reset(token)
    if inspect.iscoroutine(output):
        output.close()
        raise source.wrong(
            f"workflow {ref} is a coroutine", "Write `def`, not `async def`: it only describes."
        )
    body: dict[str, Any] = {
        "description": inspect.getdoc(function) or "",
        "parameters": signature.parameters,
        "tasks": recorder.tasks(),
    }
    if output is not None:
        body["output"] = template(output)
    if recorder.exit is not None:
        body["on_exit"] = recorder.exit_step()
    lines: dict[tuple[str | int, ...], int] = {
        ("tasks", n): draft.source.line
        for n, draft in enumerate(recorder.drafts)
        if draft.source.file == source.file
    }
    return _made(ref, body, options, Source(source.file, source.line, lines))


def _of_context_tasks(
    ref: str, tasks: Sequence[ContextTask], options: dict[str, Any], source: Source
) -> Workflow:
    body: dict[str, Any] = {"tasks": [task.task() for task in tasks], "output": "{{ context }}"}
    return _made(ref, body, options, source)


def _made(ref: str, body: Mapping[str, Any], options: Mapping[str, Any], source: Source) -> Workflow:
    whole = {"format": FORMAT, "ref": ref, **body, **options}
    try:
        definition = Workflow.model_validate(whole)
    except ValidationError as error:
        names = [task["name"] for task in whole["tasks"]]
        raise refusal(ref, shape_problems(error, whole), source, names) from None
    return require(definition, source)
