"""The options that select executions and events, shared by all commands that have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Annotated, Any
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import label_option, parse_id, parse_params
from penstock.cli.server import now
from penstock.operate import list_filters
from penstock.store.executions.execution_list import ExecutionFilter

Text = str | None
_TIME = "2030-01-31T09:00 (in UTC if it has no offset), or 1h for an hour ago"

Status = Annotated[
    list[str] | None,
    typer.Option(
        help="Only executions with this status. May be repeated.", autocompletion=name_completion.statuses
    ),
]
Action = Annotated[
    Text,
    typer.Option(help="Only executions of this action or workflow.", autocompletion=name_completion.actions),
]
Tenant = Annotated[Text, typer.Option(help="Only executions of this tenant.")]
Since = Annotated[Text, typer.Option(help=f"Only executions created since this instant: {_TIME}.")]
Until = Annotated[Text, typer.Option(help="Only executions created before this instant.")]
EventTenant = Annotated[Text, typer.Option("--tenant", help="Only events of this tenant.")]
EventSince = Annotated[Text, typer.Option("--since", help=f"Only events stored since this instant: {_TIME}.")]
EventUntil = Annotated[Text, typer.Option("--until", help="Only events stored before this instant.")]
AuditSince = Annotated[Text, typer.Option("--since", help=f"Only audit rows since this instant: {_TIME}.")]
AuditUntil = Annotated[Text, typer.Option("--until", help="Only audit rows before this instant.")]
LossSince = Annotated[Text, typer.Option("--since", help=f"Only recoveries since this instant: {_TIME}.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", help="Only executions with this parameter: name=value. May be repeated."),
]
Event = Annotated[UUID | None, typer.Option(parser=parse_id, help="Only executions that this event started.")]
Parent = Annotated[
    UUID | None,
    typer.Option(
        parser=parse_id,
        help="Only the tasks of this run of a workflow.",
        autocompletion=name_completion.executions,
    ),
]
Label = Annotated[
    list[str] | None, typer.Option(help="Only executions with this label: key=value. May be repeated.")
]
Children = Annotated[bool, typer.Option("--children", help="Include the tasks of workflows.")]
WaitsForAnswer = Annotated[
    bool, typer.Option("--waits-for-answer", help="Include only executions with an open question to a human.")
]
Paused = Annotated[
    bool,
    typer.Option(
        "--paused", help="Include only executions that are paused, or that contain a paused workflow."
    ),
]
Key = Annotated[
    Text, typer.Option(help="Only the execution with this idempotency key (of --tenant, or public).")
]


def executions(
    *,
    status: Status = None,
    action: Action = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    param: Param = None,
    event: Event = None,
    parent: Parent = None,
    key: Key = None,
    label: Label = None,
    waits_for_answer: WaitsForAnswer = False,
    paused: Paused = False,
) -> ExecutionFilter:
    """Return the filter that the options describe. Raises InvalidInput for a value that an option cannot have."""
    filters = saved_filters(
        status=status,
        action=action,
        tenant=tenant,
        since=since,
        until=until,
        event=event,
        parent=parent,
        key=key,
        label=label,
        waits_for_answer=waits_for_answer,
        paused=paused,
    )
    return replace(list_filters.execution_filter(filters, now), params=parse_params(param) if param else None)


def saved_filters(
    *,
    status: Status = None,
    action: Action = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    event: Event = None,
    parent: Parent = None,
    key: Key = None,
    label: Label = None,
    children: Children = False,
    waits_for_answer: WaitsForAnswer = False,
    paused: Paused = False,
) -> dict[str, Any]:
    """Return the filters of a view that the options describe. An age stays an age. Raises InvalidInput for a value
    that an option cannot have."""
    instant("--since", since)
    instant("--until", until)
    label_option(label)
    return list_filters.checked(
        {
            "status": status or None,
            "action": action,
            "tenant": tenant,
            "since": since,
            "until": until,
            "event": event,
            "parent": parent,
            "children": children,
            "label": label or None,
            "key": key,
            "waits_for_answer": waits_for_answer,
            "paused": paused,
        }
    )


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of `executions` in place of its parameter `chosen`, which receives their
    filter."""
    return _with_options(command, "chosen", executions)


def choosing_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of `saved_filters` in place of its parameter `filters`, which receives them."""
    return _with_options(command, "filters", saved_filters)


def _with_options(
    command: Callable[..., None], replaced: str, build: Callable[..., Any]
) -> Callable[..., None]:
    options = inspect.signature(build, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @wraps(command)
    def chosen_by_options(**values: Any) -> None:
        built = build(**{name: values.pop(name) for name in options})
        command(**{replaced: built}, **values)

    parameters = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        for option in (options.values() if parameter.name == replaced else [parameter])
    ]
    chosen_by_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    chosen_by_options.__annotations__ = {option.name: option.annotation for option in parameters}
    return chosen_by_options


def instant(option: str, text: str | None) -> datetime | None:
    """Return `1h` (ago) or ISO text as an instant. Raises InvalidInput for any other text."""
    return None if text is None else list_filters.instant(option, text, now)
