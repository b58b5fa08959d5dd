"""Commands about definitions: apply, actions, triggers, rules."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import orjson
import typer

from penstock.cli.command_runner import tell_of_schedules, with_session
from penstock.cli.output import Json, json_line, out, table
from penstock.errors import NotFound
from penstock.language.loading import load_all
from penstock.operate.apply import register
from penstock.store import catalog
from penstock.store.database import Row, Session

rules = typer.Typer(help="List, enable, disable, delete and try rules.", no_args_is_help=True)

SET_ENABLED = "update catalog set enabled = $3, updated_at = clock_timestamp() where kind = $1 and ref = $2 returning ref"
DELETE = "delete from catalog where kind = $1 and ref = $2 returning ref"


def apply(
    source: Annotated[list[str], typer.Argument(help="Python files or modules, or folders of YAML packs.")],
    json: Json = False,
) -> None:
    """Register what modules and packs define. Doing it twice changes nothing."""
    definitions = load_all(",".join(source))
    changes = with_session(lambda session: register(session, definitions))
    if any(change.kind == "schedule" and change.what != "unchanged" for change in changes):
        tell_of_schedules()
    if json:
        for change in changes:
            json_line({"kind": change.kind, "ref": change.ref, "what": change.what})
        return
    changed = [(c.kind, c.ref, c.what) for c in changes if c.what != "unchanged"]
    if changed:
        table(["kind", "ref", "what"], changed)
    out.print(f"{len(changed)} of {len(changes)} definitions changed.")


def _listed(kinds: list[str], json: bool, *columns: str) -> None:
    rows = with_session(lambda session: catalog.current(session, kinds))
    found = [_shown(row) for row in rows]
    if json:
        for one in found:
            json_line(one)
        return
    table(
        ["ref", "enabled", *columns],
        [(one["ref"], one["enabled"], *(_column(one, c) for c in columns)) for one in found],
        empty="None yet. Register some with `penstock apply FILE`.",
    )


def _shown(row: Row) -> dict[str, Any]:
    return {
        "kind": row["kind"],
        "ref": row["ref"],
        "enabled": row["enabled"],
        "digest": row["digest"],
        "definition": orjson.loads(row["body"]),
    }


def _column(one: dict[str, Any], column: str) -> str:
    if column == "executor" and one["kind"] == "workflow":
        return "workflow"  # executors run it themselves
    return _said(one["definition"].get(column))


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0]
    return "" if value is None else orjson.dumps(value).decode()


def actions(json: Json = False) -> None:
    """List actions and workflows."""
    _listed(["action", "workflow"], json, "executor", "description")


def triggers(json: Json = False) -> None:
    """List triggers."""
    _listed(["trigger"], json, "description")


@rules.command("list")
def list_rules(json: Json = False) -> None:
    """List rules."""
    _listed(["rule"], json, "trigger", "when", "action")


Rule = Annotated[str, typer.Argument(help="The rule's ref, such as shop.charge_big.")]


def _change(statement: str, done: str, ref: str, json: bool, *args: Any) -> None:
    async def work(session: Session) -> None:
        if not await session.fetch(statement, "rule", ref, *args):
            known = "`penstock rules list` shows the rules there are."
            raise NotFound(f"no rule {ref!r}", hint=await catalog.hint(session, ["rule"], ref, known))

    with_session(work)
    if json:
        json_line({"rule": ref, "is": done})
    else:
        out.print(f"Rule {ref} is {done}.")


@rules.command()
def enable(ref: Rule, json: Json = False) -> None:
    """Let a rule match again."""
    _change(SET_ENABLED, "enabled", ref, json, True)


@rules.command()
def disable(ref: Rule, json: Json = False) -> None:
    """Let a rule match nothing until it is enabled again."""
    _change(SET_ENABLED, "disabled", ref, json, False)


@rules.command()
def delete(ref: Rule, json: Json = False) -> None:
    """Remove a rule. What it has started goes on."""
    _change(DELETE, "deleted", ref, json)


@rules.command()
def test(event: Annotated[UUID, typer.Argument(help="An event.")], json: Json = False) -> None:
    """Try all rules of an event's trigger on it, starting nothing: which match, which do not, and why."""
    from penstock.cli.events import tried

    verdicts = with_session(lambda session: tried(session, event))
    if json:
        for verdict in verdicts:
            json_line(verdict)
        return
    table(
        ["rule", "verdict", "why"],
        [(v["rule"], v["verdict"], v["why"]) for v in verdicts],
        empty="No rule listens to this event's trigger.",
    )


def add_to(app: typer.Typer) -> None:
    app.command()(apply)
    app.command()(actions)
    app.command()(triggers)
    app.add_typer(rules, name="rules")
