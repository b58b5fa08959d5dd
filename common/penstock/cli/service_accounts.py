"""The command `penstock roles`: a PostgreSQL role and a RabbitMQ user for each service."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from penstock.cli.command_runner import run, with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.client.installation import find_installation
from penstock.operate import broker_users
from penstock.operate import roles as operate
from penstock.operate.roles import MadeRole
from penstock.settings import Settings
from penstock.store.schema import grants
from penstock.store.session.database import Session


def roles(
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Create the missing roles with new passwords, and grant all their rights."
        ),
    ] = False,
    broker: Annotated[
        bool,
        typer.Option("--broker", help="Print the commands of rabbitmqctl for the users of RabbitMQ instead."),
    ] = False,
    names: Annotated[
        str, typer.Option(help="The prefix of the roles' names: `penstock` makes penstock_worker.")
    ] = "penstock",
    vhost: Annotated[str, typer.Option(help="With --broker: the vhost.")] = "/",
    declared: Annotated[
        bool,
        typer.Option(
            "--declared", help="With --broker: for services that run with PENSTOCK_DECLARE_TOPOLOGY=false."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print the SQL that gives each service a role with the rights that it needs, or run it. The schema stays with the
    role that runs `penstock migrate`. With --apply, ROLE_PASSWORD_WORKER and so on set the passwords of new and of
    existing roles."""
    services = operate.named(names)
    if broker:
        settings = run(_settings())
        for command in broker_users.commands(vhost, settings.prefix, services, declares=not declared):
            json_line({"command": command}) if json else out.print(command, markup=False, soft_wrap=True)
        return
    if not apply:
        settings = run(_settings())
        for line in grants.script(settings.database_schema, services):
            json_line({"sql": line.strip()}) if json else out.print(line, markup=False, soft_wrap=True)
        return

    async def work(session: Session) -> list[MadeRole]:
        variables = {service: os.environ.get(f"ROLE_PASSWORD_{service.upper()}") for service in services}
        passwords = {service: password for service, password in variables.items() if password}
        return await operate.apply(session, session.settings, services, passwords)

    made_roles = with_session(work)
    listing(
        ["service", "role", "PENSTOCK_DATABASE_URL, shown only now"],
        made_roles,
        lambda role: (role.service, role.role, role.address or "as before"),
        json=json,
        empty="None.",
    )


async def _settings() -> Settings:
    return await find_installation()


def add_to(app: typer.Typer) -> None:
    app.command()(roles)
