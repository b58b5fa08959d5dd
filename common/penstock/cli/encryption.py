"""The commands `penstock encryption`, which encrypt the values of tenants."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.operate import encryption as operate
from penstock.store.access import tenant_keys

encryption = typer.Typer(
    help="Encrypt the parameters, payloads, results and log lines of a tenant.", no_args_is_help=True
)

Tenant = Annotated[str, typer.Argument(help="The tenant of the values.")]


@encryption.command("on")
def on(tenant: Tenant, json: Json = False) -> None:
    """Encrypt the values of a tenant that are written from now on. Needs the role of the owner, and a master key."""
    key = with_session(lambda session: operate.encrypt(session, tenant, by=ME))
    if json:
        json_line(asdict(key))
    else:
        out.print(f"New values of tenant {tenant} are encrypted. Services need master key {key.master_key}.")


@encryption.command("off")
def off(tenant: Tenant, json: Json = False) -> None:
    """Store new values of a tenant without encryption from now on. Encrypted values stay encrypted, and can still be
    read."""
    with_session(lambda session: operate.decrypt(session, tenant))
    if json:
        json_line({"tenant": tenant, "encrypted": False})
    else:
        out.print(f"New values of tenant {tenant} are stored without encryption.")


@encryption.command()
def rotate(tenant: Tenant, json: Json = False) -> None:
    """Encrypt new values of a tenant with a new data key. Values that were encrypted with an older key can still be
    read."""
    key = with_session(lambda session: operate.rotate(session, tenant, by=ME))
    if json:
        json_line(asdict(key))
    else:
        out.print(f"New values of tenant {tenant} are encrypted with key {key.number}.")


@encryption.command("list")
def list_(json: Json = False) -> None:
    """List the data keys of encrypted tenants, each with the id of its master key."""
    keys = with_session(tenant_keys.listed)
    listing(
        ["tenant", "key", "seals", "master key", "created by", "created"],
        keys,
        lambda k: (k.tenant, k.number, "yes" if k.seals else "no", k.master_key, k.made_by, k.made_at),
        json=json,
        empty="No tenant has encryption. Turn it on with: penstock encryption on TENANT",
    )


def add_to(app: typer.Typer) -> None:
    app.add_typer(encryption, name="encryption")
