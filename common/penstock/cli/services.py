"""The commands that run services: executor, worker, api, dev, migrate."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_duration
from penstock.cli.command_runner import ME, run
from penstock.cli.output import Json, err, json_line, out
from penstock.client.installation import HOME, find_installation
from penstock.extras import require
from penstock.service.assembly import run as run_service
from penstock.service.assembly import stop_on_signals, until_stopped
from penstock.service.environment import load
from penstock.service.installed_services import service
from penstock.service.log_setup import configure_logging
from penstock.service.process_secrecy import forget_secrets
from penstock.store.session import audited_change
from penstock.store.session.database import Database

Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--module", "-m", help="A Python file or module, or a folder of YAML packs. May be repeated."
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        help="The time to wait for the servers (30s, 5m), before ending with exit code 3. Unset: no bound."
    ),
]


NO_GATEWAYS: Mapping[str, str | None] = {}


def _serve(
    kind: str, /, *, wait: str | None, gateways: Mapping[str, str | None] = NO_GATEWAYS, **overrides: Any
) -> None:
    async def start() -> None:
        values = {k: v for k, v in overrides.items() if v is not None}
        if wait is not None:
            values["wait"] = parse_duration("--wait", wait)
        if not gateways:
            current = await find_installation()
            if current.database_url is not None:
                values = {"database_url": current.database_url, **values}
        settings = load(**values)
        forget_secrets()
        configure_logging(settings, service=kind)
        stop = stop_on_signals()
        await until_stopped(service(kind)(settings, stop, **gateways), stop)

    run_service(start)


def executor(
    name: Annotated[str | None, typer.Option(help="The name of this replica.")] = None,
    port: Annotated[int | None, typer.Option(help="The port of /live, /ready and /metrics.")] = None,
    wait: Wait = None,
) -> None:
    """Run an executor. Run any number of them: they are identical and compete for work."""
    _serve("executor", wait=wait, name=name, port=port)


def worker(
    module: Modules = None,
    routes: Annotated[
        str | None,
        typer.Option(
            help="Routes to serve, separated by commas.", autocompletion=name_completion.routes_by_commas
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="The labels of this worker, which actions may require: gpu=a100,zone=eu."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="The maximum number of executions at once.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of this worker.")] = None,
    port: Annotated[int | None, typer.Option(help="The port of /live, /ready and /metrics.")] = None,
    server: Annotated[
        str | None,
        typer.Option(
            help="The address of a gateway to call instead of the database; several separated by commas. Default: "
            "PENSTOCK_SERVER, unless PENSTOCK_DATABASE_URL is set."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="The token for the gateway, of scope work. PENSTOCK_TOKEN keeps it out of the list of processes.",
            envvar="PENSTOCK_TOKEN",
            show_envvar=False,
        ),
    ] = None,
    wait: Wait = None,
) -> None:
    """Run a worker for the actions of modules or packs.

    With --server it calls a gateway with a token, and needs neither the database nor the broker.
    """
    if server is None and not os.environ.get("PENSTOCK_DATABASE_URL"):
        server = os.environ.get("PENSTOCK_SERVER") or None
    _serve(
        "worker",
        wait=wait,
        gateways=NO_GATEWAYS if server is None else {"server": server, "token": token},
        modules=",".join(module) if module else None,
        routes=routes,
        labels=labels,
        concurrency=concurrency,
        name=name,
        port=port,
    )


def api(
    host: Annotated[str | None, typer.Option(help="The address to listen on; by default 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; by default 8000.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of this replica.")] = None,
    health_port: Annotated[int | None, typer.Option(help="The port of /live, /ready and /metrics.")] = None,
    wait: Wait = None,
) -> None:
    """Run an HTTP API. Run any number of them behind any load balancer: they are identical.

    Every request needs a token: `penstock tokens create` creates one.
    """
    require("api")
    _serve("api", wait=wait, api_host=host, api_port=port, name=name, port=health_port)


def gateway(
    host: Annotated[str | None, typer.Option(help="The address to listen on; by default 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; by default 8000.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of this replica.")] = None,
    health_port: Annotated[int | None, typer.Option(help="The port of /live, /ready and /metrics.")] = None,
    wait: Wait = None,
) -> None:
    """Run a gateway for workers in any language: the HTTP API with the routes of workers alone.

    It needs the database account of a worker. Its callers need tokens: `penstock tokens create NAME --scope work`.
    """
    require("api")
    _serve("gateway", wait=wait, api_host=host, api_port=port, name=name, port=health_port)


def migrate(
    check: Annotated[bool, typer.Option("--check", help="Only check whether a migration is needed.")] = False,
    json: Json = False,
) -> None:
    """Create or update the schema. It is safe at any time, also from several processes at once."""
    from penstock.store.schema import migrate as migrations  # slow to import, and only few commands need it

    async def work() -> tuple[str | None, str | None, list[str]]:
        settings = await find_installation()
        database = Database(settings, role="migrate")
        try:
            session = database.session()
            version, missing = (
                await migrations.current(session.fetch),
                await migrations.missing(session.fetch),
            )
            new_version = version if check else await migrations.upgrade(settings)
            if missing and not check:
                # The migration may have created the table of the audit, so the row is written afterwards, in a
                # transaction of its own.
                details = {"before": version, "applied": len(missing), "host": socket.gethostname()}
                change = audited_change.Change(
                    f"command:{ME}", "penstock migrate", new_version or "", None, details
                )
                await audited_change.note(session, change, audited_change.DONE)
        finally:
            await database.close()
        return version, new_version, missing

    version_before, version_after, missing = run(work())
    if json:
        json_line(
            {
                "before": version_before,
                "after": version_after,
                "missing": missing,
                "changed": bool(missing) and not check,
            }
        )
    elif not missing:
        out.print(f"The schema is up to date ({version_after}).")
    elif check:
        out.print(
            f"The schema is at {version_before or 'nothing'} and lacks {migrations.named(missing)}: run `penstock migrate`."
        )
    else:
        out.print(
            f"The schema is now at {version_after} (it was at {version_before or 'nothing'}): {migrations.named(missing)}."
        )
    if check and missing:
        raise typer.Exit(1)


def dev(
    module: Modules = None,
    reload: Annotated[
        bool, typer.Option("--reload/--no-reload", help="Reload files of definitions when they are saved.")
    ] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of earlier runs.")] = False,
    concurrency: Annotated[int | None, typer.Option(help="The maximum number of executions at once.")] = None,
    home: Annotated[
        Path, typer.Option(envvar="PENSTOCK_HOME", help="The folder of the embedded database.")
    ] = HOME,
    port: Annotated[
        int | None, typer.Option(help="The port of the pages and the API; by default 8000, or a free port.")
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")] = False,
) -> None:
    """Run everything in this one process, PostgreSQL included.

    PostgreSQL is embedded, unless PENSTOCK_DATABASE_URL names a server. The worker runs the definitions of the
    modules, and reloads saved files. Faults are printed, and the last valid definitions stay in force.
    """
    require("embedded", "api")
    from penstock.cli.dev_loop import print_executions, reload_changes
    from penstock.cli.lint_files import print_faults
    from penstock.client.local_installation import LocalInstallation
    from penstock.language.loading.likely_typos import likely_typos

    modules = module or []
    # what runs is printed line by line instead of logged
    log_level = os.environ.get("PENSTOCK_LOG_LEVEL", "warning")
    log_format = os.environ.get("PENSTOCK_LOG_FORMAT", "console")

    async def start() -> None:
        async with LocalInstallation.started(
            home,
            modules=modules,
            fresh=fresh,
            overrides={
                "concurrency": concurrency,
                "api_port": port,
                "log_level": log_level,
                "log_format": log_format,
            },
            owns_process=True,
        ) as local:
            err.print(f"[green]ready[/green]  {local.describe()}")
            err.print(f"look at it: [bold]{local.address}[/bold]  (an HTTP API, too: {local.address}/docs)")
            if local.taken_port is not None:
                err.print(
                    f"[dim]another program uses port {local.taken_port}, so this address has another port[/dim]"
                )
            print_faults(likely_typos(local.definitions), err)
            if browse and not local.show():
                err.print("[dim]there is no browser here: open the address in one[/dim]")
            err.print("[dim]stop with Ctrl-C; in another terminal: penstock executions[/dim]")
            stop_event = stop_on_signals().requested
            beside = [asyncio.create_task(print_executions(local))]
            if modules and reload:
                beside.append(asyncio.create_task(reload_changes(local, modules, stop_event)))
            try:
                await local.until(stop_event)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)

    run_service(start)


def add_to(app: typer.Typer) -> None:
    for command in (dev, executor, worker, api, gateway, migrate):
        app.command()(command)
