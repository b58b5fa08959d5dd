"""The commands `penstock secrets`: values for actions that cannot be read back."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.arguments import without_line_break
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.operate import secrets as operate
from penstock.store.access import secrets as store

secrets = typer.Typer(
    help="List, set, delete and rotate secrets, which parameters use as {{ secrets.NAME }}.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The name: parameters refer to it as {{ secrets.NAME }}.")]
Tenant = Annotated[str, typer.Option(help="The tenant of the secret: only its executions receive it.")]


@secrets.command("set")
def set_(
    name: Name,
    value: Annotated[
        str | None,
        typer.Option(
            envvar="SECRET_VALUE",
            help="The value. If it is omitted, the command asks for it. If standard input is a pipe, all of it is read, without "
            "the line break at its end.",
        ),
    ] = None,
    tenant: Tenant = "public",
    json: Json = False,
) -> None:
    """Set a secret, or replace its value. Running executions keep the value that they were given."""
    if value is None:
        value = _typed() if sys.stdin.isatty() else without_line_break(sys.stdin.read())
    saved = with_session(lambda session: operate.put(session, tenant, name, value, by=ME))
    if json:
        json_line(asdict(saved))
    else:
        out.print(f"Parameters of executions in tenant {tenant} can now refer to {{{{ secrets.{name} }}}}.")


def _typed() -> str:
    typed: str = typer.prompt("Its value", hide_input=True, confirmation_prompt=True, err=True)
    return typed


@secrets.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Only secrets of this tenant.")] = None,
    json: Json = False,
) -> None:
    """List the names of secrets. Their values cannot be read back."""
    rows = with_session(lambda session: store.listed(session, None if tenant is None else [tenant]))
    listing(
        ["tenant", "name", "encrypted with key", "set by", "last set"],
        rows,
        lambda r: (r.tenant, r.name, r.master_key, r.set_by, r.set_at),
        json=json,
        empty="There are no secrets. Set one with: penstock secrets set NAME",
    )


@secrets.command()
def delete(name: Name, tenant: Tenant = "public", json: Json = False) -> None:
    """Delete a secret. Executions that need the secret fail from now on, with an explanation. The answer names definitions that
    still use it."""
    notice = with_session(lambda session: operate.delete(session, tenant, name))
    if json:
        json_line({"deleted": name, "tenant": tenant, "notice": notice})
    else:
        out.print(f"Secret {name} of tenant {tenant} is deleted.")
        if notice is not None:
            out.print(notice, highlight=False, markup=False)


@secrets.command()
def rotate(
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Rotate without the check that executors and workers have the newest master key."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Wrap the data keys of all secrets under the newest master key, the first of PENSTOCK_SECRETS_KEY. Every service must
    have been restarted with that key before: without it, a service reads no secret. The command refuses while an executor
    or a worker may lack the key. APIs and the command line are not checked. The other master keys can then be removed."""
    done = with_session(lambda session: operate.rotate(session, force=force))
    if json:
        json_line({"rewrapped": done})
    else:
        out.print(f"{done:,} secrets were moved to the newest master key. All secrets use this key now.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(secrets, name="secrets")
