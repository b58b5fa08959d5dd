"""The command `penstock test`: a rule or an expression, evaluated for a payload without an event."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.markup import escape

from penstock.bounds import PAYLOAD_CAP
from penstock.cli.arguments import parse_params
from penstock.cli.output import Json, json_line, out
from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.qualified_name import is_ref
from penstock.language.definitions.rule import Rule
from penstock.language.loading import Definitions, load_all
from penstock.language.rules.event_rules import Match, event_namespace
from penstock.language.rules.trial import FORM, Played, SimulatedEvent, evaluate, play, try_rule
from penstock.language.schemas import Schema
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.windows import DROPPED
from penstock.run.json_integers import parsed_by_hand
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
    events: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file with a list of events instead of a payload: "
            '[{"trigger": "shop.paid", "at": "10m", "payload": {}}]'
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Evaluate a rule or an expression for a payload, without a server. With --events, evaluate a rule for a list of events
    with times. Exit code 1 if the evaluation fails. A rule that does not match has not failed."""
    values = parse_params(payload or [])
    with hidden_secrets():
        definitions = load_all(",".join(module or []))
    if events is not None:
        if payload:
            raise InvalidInput(
                "a payload and --events cannot be combined",
                hint="Write the payloads into the file of --events.",
            )
        _play(_rule(target, definitions), _read_events(events), definitions, json)
        return
    is_rule = is_ref(target) and target.partition(".")[0] not in ("payload", "event")
    if is_rule:
        _try_rule(target, values, definitions, json)
    else:
        event = event_namespace(SimulatedEvent("test.event"), values)
        value = evaluate(target, event=event, payload=values)
        json_line({"value": value}) if json else out.print_json(orjson.dumps(value, default=str).decode())


def _rule(ref: str, definitions: Definitions) -> Rule:
    rule: Rule | None = definitions.rules.get(ref)
    if rule is None:
        hint = (
            did_you_mean(ref, definitions.rules)
            if definitions.rules
            else "Name the file of the rule: --module shop.py."
        )
        raise NotFound(f"no rule {ref!r}", hint=hint)
    return rule


def _checked(trigger: str | None, payload: Any, definitions: Definitions) -> Any:
    """Return the payload with the defaults of its trigger's schema. Raises InvalidInput if it does not fit."""
    declared = definitions.triggers.get(trigger or "")
    if declared is None:
        return payload
    return orjson.loads(Schema(declared.payload_schema).check(payload, what="payload", cap=PAYLOAD_CAP))


def _try_rule(ref: str, payload: dict[str, Any], definitions: Definitions, json: bool) -> None:
    rule = _rule(ref, definitions)
    if rule.window is not None:
        raise InvalidInput(
            f"rule {ref} has a window, so it matches several events",
            hint="Write the events into a file: --events events.json.",
        )
    payload = _checked(rule.trigger, payload, definitions)
    match = try_rule(rule, payload, tenant=rule.tenant or "public")
    if json:
        json_line({"rule": ref, "matched": match.matched, "params": match.params, "error": match.error})
    else:
        _print(ref, rule.action, rule.when, match)
    if match.error:
        raise typer.Exit(1)


def _read_events(path: Path) -> list[Any]:
    try:
        events = parsed_by_hand(path.read_text("utf-8"), str(path))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} does not contain a list of events: {error}", hint=FORM) from None
    if not isinstance(events, list):
        raise InvalidInput(f"{path} does not contain a list of events", hint=f"Write a JSON list. {FORM}")
    return events


def _play(rule: Rule, events: list[Any], definitions: Definitions, json: bool) -> None:
    checked = [
        {**event, "payload": _checked(event.get("trigger"), event.get("payload", {}), definitions)}
        if isinstance(event, dict)
        else event
        for event in events
    ]
    played = play(rule, checked)
    if json:
        for played_match in played.matches:
            match = played_match.match
            json_line(
                {
                    "rule": rule.ref,
                    "events": played_match.events,
                    "params": match.params,
                    "error": match.error,
                }
            )
        for place, reason in sorted(played.dropped.items()):
            json_line({"rule": rule.ref, "events": [place], "dropped": reason})
    else:
        _print_played(rule, events, played)
    if any(played_match.match.error for played_match in played.matches):
        raise typer.Exit(1)


def _print_played(rule: Rule, events: list[Any], played: Played) -> None:
    for played_match in played.matches:
        places = ", ".join(f"{place} ({events[place]['trigger']})" for place in played_match.events)
        if played_match.match.error:
            out.print(f"[red]fails[/red] on events {places}: {escape(played_match.match.error)}")
        else:
            out.print(f"[green]matches[/green] events {places}: {rule.ref} would start {rule.action} with")
            out.print_json(orjson.dumps(played_match.match.params).decode())
    for place, reason in sorted(played.dropped.items()):
        out.print(f"[yellow]dropped[/yellow]: event {place} ({events[place]['trigger']}): {DROPPED[reason]}")
    if not played.matches:
        out.print("[yellow]does not match[/yellow]: no match in these events")


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
