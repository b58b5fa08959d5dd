"""The commands `penstock polls`, about the functions of poll triggers, which are called at an interval to find events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import orjson
import typer

from penstock.cli import name_completion
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, fields, json_line, listing, out
from penstock.errors import NotFound
from penstock.store.events import polls as store
from penstock.store.session.database import Session

polls = typer.Typer(help="List, show, enable, disable and reset poll triggers.", no_args_is_help=True)

Ref = Annotated[
    str, typer.Argument(help="The trigger, such as mail.arrived.", autocompletion=name_completion.triggers)
]


def _shown(poll: store.Poll) -> dict[str, object]:
    return {**asdict(poll), "state": orjson.loads(poll.state)}


@polls.command("list")
def list_(json: Json = False) -> None:
    """List poll triggers, each with the outcome of its last call."""
    rows = with_session(store.listed)
    listing(
        ["trigger", "every", "enabled", "next call", "call", "events", "failures", "error"],
        rows,
        lambda poll: (
            poll.trigger,
            f"{poll.every:g} s",
            poll.enabled,
            poll.next_due if poll.running is None else None,
            poll.call,
            poll.found,
            poll.failures,
            poll.error,
        ),
        json=json,
        document=_shown,
        empty="There are no poll triggers. Write one with @trigger(every=...) above a function that looks for events.",
    )


@polls.command()
def show(ref: Ref, json: Json = False) -> None:
    """Show a poll trigger, with its state."""
    rows = [poll for poll in with_session(store.listed) if poll.trigger == ref]
    if not rows:
        raise _missing(ref)
    if json:
        json_line(_shown(rows[0]))
        return
    fields(asdict(rows[0]))


def _change(ref: str, done: str, json: bool, *, enabled: bool | None = None) -> None:
    async def work(session: Session) -> bool:
        return (
            await store.forget(session, ref) if enabled is None else await store.enable(session, ref, enabled)
        )

    if not with_session(work):
        raise _missing(ref)
    if json:
        json_line({"trigger": ref, "is": done})
    else:
        out.print(f"Poll trigger {ref} is {done}.")


@polls.command()
def enable(ref: Ref, json: Json = False) -> None:
    """Enable a poll trigger. It is called at once."""
    _change(ref, "enabled", json, enabled=True)


@polls.command()
def disable(ref: Ref, json: Json = False) -> None:
    """Disable a poll trigger. It is not called until it is enabled again. A running call goes on."""
    _change(ref, "disabled", json, enabled=False)


@polls.command()
def reset(ref: Ref, json: Json = False) -> None:
    """Reset the state of a poll trigger: the next call begins with an empty state."""
    _change(ref, "reset", json)


def _missing(ref: str) -> NotFound:
    return NotFound(f"no poll trigger {ref!r}", hint="List the poll triggers with: penstock polls list")


def add_to(app: typer.Typer) -> None:
    app.add_typer(polls, name="polls")
