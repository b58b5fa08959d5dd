"""`penstock run`: start an action or a workflow, and wait for it if asked to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli.arguments import parse_params
from penstock.cli.output import Json, err, json_line, out
from penstock.cli.server import done
from penstock.client.client import Client
from penstock.errors import ConnectionFailed
from penstock.store import catalog, processes

if TYPE_CHECKING:
    from penstock.client.http_client import HttpClient

PATIENCE = 3.0
"""Seconds without a result after which we look whether an executor and a worker are running that could give one."""


def run(
    ref: Annotated[
        str,
        typer.Argument(
            help="An action or workflow, such as shop.charge.", autocompletion=name_completion.actions
        ),
    ],
    params: Annotated[
        list[str] | None,
        typer.Argument(help="name=value (JSON, or plain text), or @FILE.json, or @- for stdin"),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the result, and print it.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key gives the same execution.")
    ] = None,
    delay: Annotated[float | None, typer.Option(min=0, help="Seconds to wait before it starts.")] = None,
    priority: Annotated[
        int, typer.Option(help="Higher starts first where a limit makes executions wait.")
    ] = 0,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds to wait for the result; the execution goes on.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant it belongs to.")] = "public",
    secret: Annotated[
        list[str] | None, typer.Option(help="name=SECRET: a parameter that is a secret of the store.")
    ] = None,
    json: Json = False,
) -> None:
    """Start an action or workflow. With --wait: exit code 0 when it has completed, 1 when it ended in any other way."""
    given = parse_params(params or [])
    secrets = {name: str(value) for name, value in parse_params(secret or []).items()}

    async def work(client: Client) -> tuple[UUID, Any]:
        id = await client.start(
            ref, given, key=key, delay=delay, priority=priority, tenant=tenant, secrets=secrets
        )
        if not wait:
            if warning := await _why_nothing_happens(client, ref):
                err.print(f"[yellow]it will wait:[/yellow] {escape(warning)}")
            return id, None
        err.print(f"[dim]execution {id}[/dim]")
        return id, await _result(client, ref, id, timeout)

    async def remote(client: HttpClient) -> tuple[UUID, Any]:
        id = await client.start(
            ref, given, key=key, delay=delay, priority=priority, tenant=tenant, secrets=secrets
        )
        if not wait:
            return id, None
        err.print(f"[dim]execution {id}[/dim]")
        try:
            return id, await client.result(id, timeout=timeout)
        except TimeoutError:
            raise _goes_on(id, timeout) from None

    id, result = done(work, remote)
    if json:
        json_line({"id": id, "result": result} if wait else {"id": id})
    elif wait:
        out.print_json(orjson.dumps(result).decode())
    else:
        out.print(f"Execution {id} is requested. See it with: penstock show {id}")


async def _result(client: Client, ref: str, id: UUID, timeout: float | None) -> Any:
    waiting = asyncio.ensure_future(client.result(id, timeout=timeout))
    done, _ = await asyncio.wait({waiting}, timeout=PATIENCE)
    if not done and (warning := await _why_nothing_happens(client, ref)):
        err.print(f"[yellow]still waiting:[/yellow] {escape(warning)}")
    try:
        return await waiting
    except TimeoutError:
        raise _goes_on(id, timeout) from None


def _goes_on(id: UUID, timeout: float | None) -> ConnectionFailed:
    return ConnectionFailed(
        f"execution {id} has not ended within {timeout:g} s; it goes on",
        hint=f"See it with `penstock show {id}`, or end it with `penstock cancel {id}`.",
    )


async def _why_nothing_happens(client: Client, ref: str) -> str | None:
    """The warning to print if no executor runs, or no worker that has the action; else None."""
    fresh = timedelta(seconds=client.settings.stale_threshold)
    alive = [process for process in await processes.all(client.session) if process.age < fresh]
    if not any(process.kind == "executor" for process in alive):
        return (
            "no executor is running. Start one with `penstock executor`, or everything with `penstock dev`."
        )
    if not any(ref in process.actions for process in alive) and await catalog.current(
        client.session, ["action"], [ref]
    ):
        return f"no worker that has {ref} is running. Start one with `penstock worker --module FILE`."
    return None


def add_to(app: typer.Typer) -> None:
    app.command()(run)
