"""The commands `penstock users`: the API's users that sign in with a password."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.arguments import without_line_break
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, json_line, listing, out
from penstock.errors import InvalidInput
from penstock.extras import require
from penstock.store.access import people as store
from penstock.store.access.people import Person

if TYPE_CHECKING:
    from penstock.store.session.database import Session

users = typer.Typer(
    help="Create, list, change and delete users, and end their sessions.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The name with which the user signs in.")]
Role = Annotated[
    list[str] | None, typer.Option(help="viewer, operator, developer or administrator; may be repeated.")
]
Tenant = Annotated[list[str] | None, typer.Option(help="Only for this tenant; may be repeated.")]
Password = Annotated[
    str | None,
    typer.Option(
        envvar="USER_PASSWORD",
        help="The password. If it is omitted, the command asks for it. If standard input is a pipe, all of it is read, without "
        "the line break at its end.",
    ),
]


@users.command()
def create(
    name: Name, role: Role = None, tenant: Tenant = None, password: Password = None, json: Json = False
) -> None:
    """Create a user."""
    new_password = password or _typed()
    _show(
        _done(
            lambda people, s: people.create(s, name, new_password, role or ["viewer"], tenant or (), by=ME)
        ),
        json,
    )


@users.command("list")
def list_(json: Json = False) -> None:
    """List users, with their roles."""
    rows = with_session(store.listed)
    listing(
        ["name", "roles", "second factor", "sessions", "created by", "created"],
        rows,
        lambda r: (
            r.name,
            _roles(r),
            "yes" if r.totp_since else "no",
            r.sessions,
            r.created_by,
            r.created_at,
        ),
        json=json,
        empty="There are no users. Create one with: penstock users create NAME --role operator",
    )


@users.command()
def roles(name: Name, role: Role = None, tenant: Tenant = None, json: Json = False) -> None:
    """Set the roles of a user for these tenants, or for all tenants. They replace the user's earlier roles there."""
    row, old_roles = _done(lambda people, s: people.set_roles(s, name, role or (), tenant or ()))
    now, earlier = _roles(row) or "without a role", ", ".join(old_roles) or "without a role"
    change = f"before: {earlier}" if now != earlier else "nothing has changed"
    _say(json, {**asdict(row), "before": old_roles}, f"{row.name} is {now} ({change}).")


@users.command()
def password(name: Name, password: Password = None, json: Json = False) -> None:
    """Set the password of a user. All sessions of the user end."""
    new_password = password or _typed()
    _done(lambda people, s: people.set_password(s, name, new_password))
    _say(
        json, {"changed": name}, f"The password of {name} is changed, and all sessions of {name} have ended."
    )


@users.command()
def logout(name: Name, json: Json = False) -> None:
    """End all sessions of a user, so that the user has to sign in again."""
    session_count = _done(lambda people, s: people.end_sessions(s, name))
    _say(json, {"name": name, "ended": session_count}, f"{session_count} sessions of {name} were ended.")


@users.command("totp-off")
def totp_off(name: Name, json: Json = False) -> None:
    """Turn off the second factor of a user that lost it."""
    require("api")
    from penstock.operate import second_factor

    was_on = with_session(lambda session: second_factor.turn_off(session, name))
    says = "has no second factor any more." if was_on else "had no second factor."
    _say(json, {"name": name, "was_on": was_on}, f"{name} {says}")


@users.command()
def delete(name: Name, json: Json = False) -> None:
    """Delete a user, and end the user's sessions."""
    _done(lambda people, s: people.delete(s, name))
    _say(json, {"deleted": name}, f"User {name} is deleted.")


def _done(work: Callable[[Any, Session], Awaitable[Any]]) -> Any:
    require("api")
    from penstock.operate import people  # the module loads the password hashing, which no other command needs

    return with_session(lambda session: work(people, session))


def _typed() -> str:
    if not sys.stdin.isatty():
        if piped := without_line_break(sys.stdin.read()):
            return piped
        raise InvalidInput(
            "no password was given: standard input is empty",
            hint="Type the password at the prompt of a terminal, pipe it into the command, or set USER_PASSWORD.",
        )
    typed: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return typed


def _show(row: Person, json: bool) -> None:
    _say(json, asdict(row), f"{row.name} is {_roles(row)}.")


def _say(json: bool, document: Any, sentence: str) -> None:
    if json:
        json_line(document)
    else:
        out.print(sentence)


def _roles(row: Person) -> str:
    pairs = zip(row.roles, row.tenants, strict=True)
    return ", ".join(f"{role} of {tenant}" if tenant else role for role, tenant in pairs)


def add_to(app: typer.Typer) -> None:
    app.add_typer(users, name="users")
