"""The commands `penstock cancel` and `rerun`, for executions that are named or selected by a filter, `set-priority` and
`reschedule`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from penstock.cli import bulk_output, name_completion
from penstock.cli.arguments import label_option, parse_delay, parse_id, parse_instant, parse_params
from penstock.cli.bulk_output import DryRun
from penstock.cli.command_runner import ME
from penstock.cli.execution_filter import choosing
from penstock.cli.output import Json, json_line, out
from penstock.cli.server import by_either, chosen_server
from penstock.cli.text_values import schema_of, send_as_typed
from penstock.errors import InvalidInput, NotAllowed, NotFound
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY
from penstock.store.executions.execution_list import ExecutionFilter

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

All = Annotated[bool, typer.Option("--all", help="All executions.")]


@choosing
def cancel(
    ids: Annotated[
        list[UUID] | None,
        typer.Argument(
            parser=parse_id,
            help="The executions to end. Options can select them instead.",
            autocompletion=name_completion.open_executions,
        ),
    ] = None,
    *,
    chosen: ExecutionFilter,
    every: All = False,
    dry_run: DryRun = False,
    reason: Annotated[
        str, typer.Option(help="The reason, stored in the history.")
    ] = "asked on the command line",
    json: Json = False,
) -> None:
    """Ask executions to end: the named ones, or all that match a filter. Running executions are notified
    at once. The command can be repeated after an interruption."""
    _say_which(bool(ids), chosen, every, dry_run)
    if chosen_server() is None:  # a server adds the name of the token
        reason = f"{reason} (command:{ME})"

    if ids:
        named = list(ids)
        count = by_either(lambda client: client.cancel(*named, reason=reason))
    else:
        count = by_either(lambda client: client.cancel_chosen(chosen, reason=reason, dry_run=dry_run))
    if json:
        json_line({"asked": len(ids) if ids else count, "told": 0 if dry_run else count})
    elif dry_run:
        out.print(f"{count:,} would be asked to stop.")
    elif ids and count:
        out.print(f"{count} of {len(ids)} asked to stop.")
    elif count:
        out.print(f"{count:,} asked to stop.")
    else:
        out.print("Nothing to cancel: these executions have ended already, or do not exist.")


def set_priority(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id,
            help="An execution that has not ended.",
            autocompletion=name_completion.open_executions,
        ),
    ],
    priority: Annotated[
        int,
        typer.Argument(
            min=-HIGHEST_PRIORITY,
            max=HIGHEST_PRIORITY,
            help="The priority: higher goes first, and 0 is the default.",
        ),
    ],
    json: Json = False,
) -> None:
    """Change the priority of an execution, and of its tasks. Waiting work takes its new place at once. For a negative
    priority: penstock set-priority ID -- -5."""
    count = by_either(lambda client: client.set_priority(id, priority))
    if json:
        json_line({"id": id, "priority": priority, "changed": count})
    elif count:
        out.print(f"The priority of {count:,} execution{'s' if count > 1 else ''} is {priority} now.")
    else:
        out.print(f"Nothing to change: its priority is {priority} already.")


def reschedule(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id,
            help="An execution that has not begun, or waits for its next attempt.",
            autocompletion=name_completion.open_executions,
        ),
    ],
    at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="The new start, such as 2030-01-31T09:00Z.")
    ] = None,
    in_: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="DURATION",
            help="The time until the execution starts again: 90 (seconds), 30s, 5m; 0 starts it at once.",
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="The author, stored with the execution.")] = ME,
    reason: Annotated[str | None, typer.Option(help="The reason, stored in the history.")] = None,
    json: Json = False,
) -> None:
    """Change the start of an execution that has not begun, or of its next attempt. An attempt that has begun cannot be
    rescheduled."""
    if (at is None) == (in_ is None):
        raise InvalidInput(
            "the new start is missing, or was given twice", hint="Give exactly one of --at and --in."
        )
    instant = None if at is None else parse_instant("--at", at)
    delay = None if in_ is None else parse_delay("--in", in_)
    start = by_either(lambda client: client.reschedule(id, at=instant, delay=delay, by=by, reason=reason))
    if json:
        json_line({"id": id, "at": start})
    else:
        out.print(f"It starts at {start:%Y-%m-%d %H:%M:%S} UTC.")


def raise_budget(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id,
            help="An execution of the tree whose budget is raised.",
            autocompletion=name_completion.executions,
        ),
    ],
    unit: Annotated[str, typer.Argument(help="The unit of the budget, such as tokens.")],
    amount: Annotated[float, typer.Argument(help="The new amount, higher than before.")],
    json: Json = False,
) -> None:
    """Raise a budget of an execution and all that it starts. Waiting executions start until the raised budget
    is used up."""
    by_either(lambda client: client.raise_budget(id, unit, amount))
    if json:
        json_line({"id": id, "unit": unit, "amount": amount})
    else:
        out.print(f"The budget of {unit} is {amount:,.10g} now.")


@choosing
def rerun(
    id: Annotated[
        UUID | None,
        typer.Argument(
            parser=parse_id,
            help="The ids of ended executions. Leave them out to select executions by options.",
            autocompletion=name_completion.executions,
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="The author, stored with the execution.")] = ME,
    from_failed: Annotated[
        bool, typer.Option("--from-failed", help="For a workflow: keep the tasks that succeeded.")
    ] = False,
    from_task: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TASK",
            help="For a workflow: rerun this task and all tasks after it, and keep the others.",
        ),
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a parameter; only with one ID. A value is read as JSON if it is JSON and the schema does not require "
            "text. customer.name=Ada changes a part, and lines[1].sku=ink a part of an element.",
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset",
            metavar="NAME",
            help="Leave out a parameter; only with one ID. Its default applies.",
        ),
    ] = None,
    set_label: Annotated[
        list[str] | None,
        typer.Option(
            "--set-label",
            metavar="KEY=VALUE",
            help="Add or replace a label; only with one ID. If a label takes its value from a parameter, it gets the new value.",
        ),
    ] = None,
    *,
    chosen: ExecutionFilter,
    every: All = False,
    dry_run: DryRun = False,
    reason: Annotated[
        str | None, typer.Option("--reason", help="The reason, stored with the execution.")
    ] = None,
    json: Json = False,
) -> None:
    """Run ended executions again, with the same version and parameters. --set changes a parameter. With a filter,
    executions that were re-run before are skipped. The command can be repeated after an interruption."""
    if id is not None and chosen.labels:
        raise InvalidInput(
            "--label is a filter, and cannot be combined with the id of an execution",
            hint="--set-label KEY=VALUE gives the new run a label.",
        )
    _say_which(id is not None, chosen, every, dry_run)
    if id is not None:
        params = parse_params(changed or [])
        labels = label_option(set_label, "--set-label")

        async def work(client: AnyClient) -> tuple[UUID, list[str]]:
            async def send(values: dict[str, Any]) -> UUID:
                return await client.rerun(
                    id,
                    from_failed=from_failed,
                    from_task=from_task,
                    params=values or None,
                    unset=unset or (),
                    labels=labels,
                    by=by,
                    reason=reason,
                )

            async def read_schema() -> Mapping[str, Any] | None:
                action = (await client.described(id))["action"]
                return await schema_of(client, ("action", "workflow"), action)

            new = await send_as_typed(send, params, changed or [], read_schema)
            try:
                old_labels, new_labels = [(await client.described(run))["labels"] for run in (id, new)]
            except (NotAllowed, NotFound):  # the token may start executions, and not read them
                return new, []
            return new, _label_lines(old_labels, new_labels)

        new, lines = by_either(work)
        if json:
            json_line({"id": new, "rerun_of": id})
        else:
            out.print(f"Execution {new} is requested. See it with: penstock show {new}")
            for line in lines:
                out.print(line, markup=False, highlight=False)
        return
    if changed or unset:
        raise InvalidInput("--set and --unset can only be used with one id", hint="Name the run.")
    if set_label:
        raise InvalidInput("--set-label can only be used with one id", hint="Name the run.")
    if from_task is not None:
        raise InvalidInput(
            "--from can only be used with one id", hint="Give the id of one execution, or use --from-failed."
        )

    outcome_text = "would be run once more" if dry_run else "requested once more"
    outcomes = by_either(
        lambda client: client.rerun_chosen(
            chosen, by=by, reason=reason, from_failed=from_failed, dry_run=dry_run
        )
    )
    bulk_output.show(outcomes, outcome_text, each=False, json=json)


def _label_lines(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return sentences about the labels that a re-run keeps, changes and leaves out."""
    kept_labels = [f"{key}={value}" for key, value in new.items() if old.get(key) == value]
    changed = [f"{key}={value}" for key, value in new.items() if old.get(key) != value]
    missing = [f"{key}={value}" for key, value in old.items() if key not in new]
    parts = [
        ("It keeps the labels", kept_labels),
        ("It has other labels", changed),
        ("It leaves out the labels", missing),
    ]
    return [f"{text}: {', '.join(labels)}." for text, labels in parts if labels]


def _say_which(named: bool, filters: ExecutionFilter, every: bool, dry_run: bool) -> None:
    """Raise InvalidInput unless the executions are selected in exactly one way."""
    filtered = filters != ExecutionFilter() or every
    if named and (filtered or dry_run):
        raise InvalidInput(
            "executions are selected by ids and by filter options at the same time",
            hint="Use either ids or filter options.",
        )
    if not named and not filtered:
        raise InvalidInput(
            "nothing is selected",
            hint="Give ids, or select executions with --status, --action, --since ..., or --all.",
        )


def add_to(app: typer.Typer) -> None:
    app.command()(cancel)
    app.command()(rerun)
    app.command("set-priority")(set_priority)
    app.command()(reschedule)
    app.command("raise-budget")(raise_budget)
