"""The command `penstock test`: a rule or an expression, evaluated for a payload without an event."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.markup import escape

from penstock.bounds import PAYLOAD_CAP
from penstock.cli.arguments import parse_params
from penstock.cli.output import Json, json_line, out
from penstock.errors import NotFound
from penstock.language.definitions.qualified_name import is_ref
from penstock.language.loading import Definitions, load_all
from penstock.language.rules.event_rules import Match, event_namespace
from penstock.language.rules.trial import SimulatedEvent, evaluate, try_rule
from penstock.language.schemas import Schema
from penstock.language.terms.options import did_you_mean
from penstock.service.process_secrecy import hidden_secrets


def test(
    target: Annotated[
        str, typer.Argument(help="A rule, such as shop.charge_big, or an expression over payload.")
    ],
    payload: Annotated[
        list[str] | None,
        typer.Argument(help="name=value (JSON, or plain text), or @FILE.json, or @- for stdin"),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(
            "--module", "-m", help="The source of the rule: a Python file or module, or a folder of packs."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Evaluate a rule or an expression for a payload, without a server. Exit code 1 if it fails. A rule that does not
    match has not failed."""
    values = parse_params(payload or [])
    with hidden_secrets():
        definitions = load_all(",".join(module or []))
    is_rule = is_ref(target) and target.partition(".")[0] not in ("payload", "event")
    if is_rule:
        _try_rule(target, values, definitions, json)
    else:
        event = event_namespace(SimulatedEvent("test.event"), values)
        value = evaluate(target, event=event, payload=values)
        json_line({"value": value}) if json else out.print_json(orjson.dumps(value, default=str).decode())


def _try_rule(ref: str, payload: dict[str, Any], definitions: Definitions, json: bool) -> None:
    rule = definitions.rules.get(ref)
    if rule is None:
        hint = (
            did_you_mean(ref, definitions.rules) if definitions.rules else "Name its file: --module shop.py."
        )
        raise NotFound(f"no rule {ref!r}", hint=hint)
    trigger = definitions.triggers.get(rule.trigger)
    if trigger is not None:
        payload = orjson.loads(Schema(trigger.payload_schema).check(payload, what="payload", cap=PAYLOAD_CAP))
    match = try_rule(rule, payload, tenant=rule.tenant or "public")
    if json:
        json_line({"rule": ref, "matched": match.matched, "params": match.params, "error": match.error})
    else:
        _print(ref, rule.action, rule.when, match)
    if match.error:
        raise typer.Exit(1)


def _print(ref: str, action: str, when: str | None, match: Match) -> None:
    if match.error:
        out.print(f"[red]fails[/red]: {escape(match.error)}")
    elif match.matched:
        out.print(f"[green]matches[/green]: {ref} would start {action} with")
        out.print_json(orjson.dumps(match.params).decode())
    else:
        out.print(f"[yellow]does not match[/yellow]: {escape(str(when))} is not true")


def add_to(app: typer.Typer) -> None:
    app.command()(test)
