"""The command `penstock worker-conformance`: runs the conformance cases against a worker in any language, and reports what
fails."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

import typer

from penstock.cli.output import Json, err, json_line, out
from penstock.extras import require


def worker_conformance(
    command: Annotated[
        list[str], typer.Argument(help="The command that starts the worker, after `--`.", metavar="COMMAND")
    ],
    only: Annotated[
        list[str] | None, typer.Option(help="Play only this case. May be repeated. Default: all.")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Play only the dozen cases that find the most faults.")
    ] = False,
    broker: Annotated[
        str | None,
        typer.Option(
            help="The address of a RabbitMQ that carries the messages. Default: PostgreSQL carries them."
        ),
    ] = None,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Connect the worker to the database instead of a gateway."),
    ] = False,
    json: Json = False,
) -> None:
    """Test a worker in any language against a real installation. It prints one line for each case. Exit code 1 if a case fails.

    The worker reads PENSTOCK_SERVER, PENSTOCK_TOKEN, PENSTOCK_ROUTES, PENSTOCK_NAME, PENSTOCK_SLOTS and PENSTOCK_GRACE,
    and has the actions conformance.play, conformance.once and conformance.brief. See docs/workers-in-any-language.md.
    With --direct it reads PENSTOCK_DATABASE_URL instead of the first two, and cases about gateways are not applicable.
    """
    require("embedded", "api")
    from penstock.testing.worker_conformance.play import chosen, play

    names = chosen(only or (), short=short)
    # The verdicts of the cases report failures, not the log of each request.
    logging.getLogger("httpx").setLevel(logging.WARNING)

    async def work() -> int:
        failures = skipped = 0
        async for verdict in play(command, names, broker, direct=direct):
            failures += verdict.fault is not None
            skipped += verdict.not_applicable is not None
            if json:
                json_line(
                    {
                        "case": verdict.name,
                        "seconds": round(verdict.seconds, 3),
                        "fault": verdict.fault,
                        "not_applicable": verdict.not_applicable,
                    }
                )
            elif verdict.not_applicable is not None:
                out.print(f"n/a     {verdict.name}: {verdict.not_applicable}", markup=False, highlight=False)
            elif verdict.fault is None:
                out.print(f"ok      {verdict.name} ({verdict.seconds:.1f} s)", markup=False, highlight=False)
            else:
                out.print(f"FAILED  {verdict.name}: {verdict.fault}", markup=False, highlight=False)
        if not json:
            played = len(names) - skipped
            text = f"{played - failures} of {played} cases passed"
            out.print(f"{text}, {skipped} are not applicable" if skipped else text, highlight=False)
        return failures

    if asyncio.run(work()):
        err.print("[red]This worker does not conform.[/red]")
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    app.command("worker-conformance")(worker_conformance)
