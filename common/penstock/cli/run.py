"""The command `penstock run`, which starts an action or a workflow, and can wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli.arguments import label_option, parse_delay, parse_params
from penstock.cli.chain_options import MaxDepth, MaxDescendants
from penstock.cli.output import Json, err, json_line, out
from penstock.cli.server import by_either, chosen_server
from penstock.cli.text_values import schema_of, send_as_typed
from penstock.errors import ConnectionFailed, InvalidInput, PenstockError
from penstock.language.terms.budgets import WhenSpent, check_budget
from penstock.language.terms.debounce import StartKeep
from penstock.language.terms.options import Wrong
from penstock.store.processes.processes import Process

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

PATIENCE = 3.0
"""The seconds without a result after which the command checks that an executor and a suitable worker are running."""


def run(
    ref: Annotated[
        str,
        typer.Argument(
            help="An action or workflow, such as shop.charge.", autocompletion=name_completion.actions
        ),
    ],
    params: Annotated[
        list[str] | None,
        typer.Argument(
            help="name=value, or @FILE.json, or @- for standard input. A value is read as JSON if it is JSON and the "
            "schema does not require text."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the result, and print it.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key gives the same execution.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="The time to wait before it starts: 90 (seconds), 30s, 5m.")
    ] = None,
    priority: Annotated[
        int,
        typer.Option(help="The priority: higher starts first if executions wait for a limit or a worker."),
    ] = 0,
    timeout: Annotated[
        str | None,
        typer.Option(
            help="The time to wait for the result: 90 (seconds), 30s, 5m. After that the command ends, and the execution "
            "continues.",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of the execution.")] = "public",
    secret: Annotated[
        list[str] | None,
        typer.Option(help="name=SECRET: a parameter that takes the value of the stored secret SECRET."),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="UNIT=AMOUNT, such as tokens=1000: a budget that the execution shares with all executions that it starts."
        ),
    ] = None,
    when_spent: Annotated[
        WhenSpent,
        typer.Option(help="What to do with an execution that needs more than the remaining budget."),
    ] = "refuse",
    max_depth: MaxDepth = None,
    max_descendants: MaxDescendants = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="key=value: a label, by which lists find the execution. May be repeated."),
    ] = None,
    debounce: Annotated[
        str | None,
        typer.Option(
            help="The debounce time, such as 5s. Starts with the same debounce key become one execution. It begins when no "
            "further start comes for this time."
        ),
    ] = None,
    debounce_key: Annotated[
        str | None,
        typer.Option(
            help="The debounce key. Starts with the same key, action and tenant become one execution."
        ),
    ] = None,
    at_most: Annotated[
        str | None, typer.Option(help="The maximum debounce time after the first start, such as 1m.")
    ] = None,
    keep: Annotated[
        StartKeep,
        typer.Option(
            help="The start that gives the parameters to the debounced execution: the last or the first."
        ),
    ] = "last",
    json: Json = False,
) -> None:
    """Start an action or workflow. With --wait: exit code 0 if it completed, 1 if it ended in any other way."""
    parameters = parse_params(params or [])
    secrets = {name: str(value) for name, value in parse_params(secret or []).items()}

    delay_s = None if delay is None else parse_delay("--delay", delay)
    timeout_s = None if timeout is None else parse_delay("--timeout", timeout)
    budgets = _budgets(budget or [])
    labels = label_option(label)

    async def work(client: AnyClient) -> tuple[UUID, Any]:
        if wait and chosen_server() is not None:
            from penstock.client.http_client import HttpClient, check_reading  # slow to import

            if isinstance(client, HttpClient):
                await check_reading(client, ref)

        async def start(values: dict[str, Any]) -> UUID:
            return await client.start(
                ref, values, key=key, delay=delay_s, priority=priority, tenant=tenant, secrets=secrets,
                budget=budgets, when_spent=when_spent, max_depth=max_depth, max_descendants=max_descendants,
                labels=labels, debounce=debounce, debounce_key=debounce_key, at_most=at_most, keep=keep,
            )  # fmt: skip

        id = await send_as_typed(
            start, parameters, params or [], lambda: schema_of(client, ("action", "workflow"), ref)
        )
        if not wait:
            await _warn("it will wait", client, ref)
            return id, None
        return id, await _result(client, ref, id, timeout_s)

    id, result = by_either(work)
    if json:
        json_line({"id": id, "result": result} if wait else {"id": id})
    elif wait:
        out.print_json(orjson.dumps(result).decode())
    else:
        out.print(f"Execution {id} is requested. See it with: penstock show {id}")


def _budgets(words: list[str]) -> dict[str, float] | None:
    """Return the budgets of `unit=AMOUNT` words; None without any. Raises InvalidInput for a word that is not a budget."""
    try:
        return check_budget(parse_params(words)) if words else None
    except Wrong as wrong:
        raise InvalidInput(f"--budget {wrong}", hint="Write --budget tokens=1000000.") from None


async def _result(client: AnyClient, ref: str, id: UUID, timeout: float | None) -> Any:
    err.print(f"[dim]execution {id}[/dim]")
    waiting = asyncio.ensure_future(client.result(id, timeout=timeout))
    done, _ = await asyncio.wait({waiting}, timeout=PATIENCE)
    if not done:
        await _warn("still waiting", client, ref)
    try:
        return await waiting
    except TimeoutError:
        raise _goes_on(id, timeout) from None


def _goes_on(id: UUID, timeout: float | None) -> ConnectionFailed:
    return ConnectionFailed(
        f"execution {id} has not ended within {timeout:g} s, and continues",
        hint=f"See the execution with `penstock show {id}`, or end it with `penstock cancel {id}`.",
    )


async def _warn(subject: str, client: AnyClient, ref: str) -> None:
    """Print why nothing happens, if no executor runs or no worker has the action."""
    try:
        alive, actions = await client.workers.all(fresh=True), await client.definitions(("action",), ref)
    except PenstockError:  # NotAllowed, for example: starting does not require seeing workers
        return
    if warning := _missing(alive, ref, bool(actions)):
        err.print(f"[yellow]{subject}:[/yellow] {escape(warning)}")


def _missing(alive: Sequence[Process], ref: str, is_action: bool) -> str | None:
    """Return the warning that no executor runs, or no worker that has the action, or else None."""
    if not any(process.kind == "executor" for process in alive):
        return (
            "no executor is running. Start one with `penstock executor`, or everything with `penstock dev`."
        )
    if is_action and not any(ref in process.actions for process in alive):
        return f"no worker that has {ref} is running. Start one with `penstock worker --module FILE`."
    return None


def add_to(app: typer.Typer) -> None:
    app.command()(run)
