"""Commands about executions: run, executions, history, cancel, logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer

from penstock.cli.output import Json, err, json_line, out, table
from penstock.cli.running import with_client, with_session
from penstock.client import Client
from penstock.database import Row, Session
from penstock.errors import InvalidInput, NotFound
from penstock.store import executions as store


def run(
    ref: Annotated[str, typer.Argument(help="An action or workflow, such as shop.charge.")],
    params: Annotated[
        list[str] | None, typer.Argument(help="name=value (JSON, or plain text), or @FILE.json")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the result, and print it.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key gives the same execution.")
    ] = None,
    delay: Annotated[float | None, typer.Option(help="Seconds to wait before it starts.")] = None,
    priority: Annotated[
        int, typer.Option(help="Higher starts first where a limit makes executions wait.")
    ] = 0,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for the result.")] = None,
    tenant: str = "public",
    json: Json = False,
) -> None:
    """Start an action or workflow."""
    given = parse_params(params or [])

    async def work(client: Client) -> tuple[UUID, Any]:
        id = await client.start(ref, given, key=key, delay=delay, priority=priority, tenant=tenant)
        if not wait:
            return id, None
        err.print(f"[dim]execution {id}[/dim]")
        return id, await client.result(id, timeout=timeout)

    id, result = with_client(work)
    if json:
        json_line({"id": id, "result": result} if wait else {"id": id})
    elif wait:
        out.print_json(orjson.dumps(result).decode())
    else:
        out.print(f"Execution {id} is requested. See it with: penstock show {id}")


def parse_params(words: list[str]) -> dict[str, Any]:
    """`name=value` words as parameters: a value is JSON where it reads as JSON, else text. `@FILE` gives an object.
    Raises InvalidInput."""
    given: dict[str, Any] = {}
    for word in words:
        if word.startswith("@"):
            given |= _from_file(word[1:])
            continue
        name, separator, value = word.partition("=")
        if not separator:
            raise InvalidInput(f"{word!r} is not name=value", hint="Write for example: order=7 name=Ada")
        try:
            given[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            given[name] = value
    return given


def _from_file(path: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        loaded = orjson.loads(text)
    except (OSError, orjson.JSONDecodeError) as error:
        raise InvalidInput(
            f"{path}: {error}", hint="Name a readable file that holds a JSON object."
        ) from None
    if not isinstance(loaded, dict):
        raise InvalidInput(f"{path} does not hold a JSON object")
    return loaded


def executions(
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    action: Annotated[str | None, typer.Option(help="Only those of this action.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    before: Annotated[UUID | None, typer.Option(help="Go on after this id.")] = None,
    children: Annotated[bool, typer.Option("--children", help="With the tasks of workflows.")] = False,
    json: Json = False,
) -> None:
    """List the newest executions."""
    rows = with_session(
        lambda session: store.page(
            session, status=status, action=action, before=before, limit=limit, children=children
        )
    )
    if json:
        for row in rows:
            json_line(dict(row))
        return
    table(
        ["id", "status", "action", "attempt", "created", "finished"],
        [(r["id"], r["status"], r["action"], r["attempt"], r["created_at"], r["finished_at"]) for r in rows],
        empty="No executions yet. Start one with `penstock run ACTION`.",
    )


async def described(session: Session, id: UUID) -> dict[str, Any] | None:
    """An execution with its attempts, secrets masked; None where there is none."""
    from penstock.schemas import Schema
    from penstock.store import catalog

    rows = await store.find(session, [id])
    if not rows:
        return None
    found = {key: value for key, value in rows[0].items() if key != "claim"}
    for name in ("params", "options", "origin", "result", "error"):
        found[name] = orjson.loads(found[name]) if found[name] is not None else None
    body = (await catalog.bodies(session, [found["definition_id"]])).get(found.pop("definition_id"), {})
    found["params"] = Schema(body.get("parameters")).mask(found["params"])
    found["attempts"] = [
        {**dict(row), "error": orjson.loads(row["error"]) if row["error"] else None}
        for row in await store.attempts(session, id)
    ]
    return found


def print_execution(found: dict[str, Any]) -> None:
    """One execution, for people."""
    attempts = found.pop("attempts")
    error = found.pop("error")
    table(
        ["", ""],
        [
            (k, orjson.dumps(v).decode() if isinstance(v, dict | list) else v)
            for k, v in found.items()
            if v is not None
        ],
    )
    if error:
        out.print(f"[red]{error.get('type')}[/red]: {error.get('message')}")
        if error.get("traceback"):
            out.print(error["traceback"], style="dim", markup=False)
    if attempts:
        table(
            ["attempt", "outcome", "worker", "at", "error"],
            [
                (a["attempt"], a["outcome"], a["worker"], a["at"], (a["error"] or {}).get("message"))
                for a in attempts
            ],
        )


def history(id: UUID, json: Json = False) -> None:
    """Every status an execution ever had, when, and who moved it."""

    async def work(client: Client) -> list[Row]:
        return await client.history(id)

    rows = with_client(work)
    if json:
        for row in rows:
            json_line(dict(row))
        return
    table(
        ["at", "status", "attempt", "by", "reason"],
        [(r["at"], r["new"], r["attempt"], r["actor"], r["reason"]) for r in rows],
    )


def cancel(
    ids: Annotated[list[UUID], typer.Argument(help="Executions to end.")],
    reason: Annotated[str, typer.Option(help="Kept in the history.")] = "asked on the command line",
    json: Json = False,
) -> None:
    """Ask for executions to end. A running one is told at once."""

    async def work(client: Client) -> int:
        return await client.cancel(*ids, reason=reason)

    count = with_client(work)
    if json:
        json_line({"asked": len(ids), "told": count})
    elif count:
        out.print(f"{count} of {len(ids)} told to end.")
    else:
        out.print("Nothing to cancel: all of them have ended already, or do not exist.")


LOGS = """
select attempt, seq, stream, line, at from log_line
where execution_id = $1 and seq > $2 order by attempt, seq limit 5000
"""


def logs(
    id: UUID,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it has ended.")] = False,
    json: Json = False,
) -> None:
    """What an execution printed and logged."""
    import asyncio

    async def work(session: Session) -> None:
        seen, more = 0, True
        while more:
            rows = await store.find(session, [id])
            if not rows:
                raise NotFound(f"no execution {id}")
            more = follow and rows[0]["finished_at"] is None
            for row in await session.fetch(LOGS, id, seen):
                seen = max(seen, row["seq"])
                if json:
                    json_line(dict(row))
                else:
                    out.print(row["line"], markup=False, style="red" if row["stream"] == "stderr" else None)
            if more:
                await asyncio.sleep(0.3)

    with_session(work)


def add_to(app: typer.Typer) -> None:
    for command in (run, executions, history, cancel, logs):
        app.command()(command)
