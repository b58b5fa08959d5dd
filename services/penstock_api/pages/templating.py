"""The templates and their filters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
import orjson
from markupsafe import Markup, escape

from penstock.language.moves import CANCELING, FINAL, MEANINGS
from penstock.language.terms.waits import WAIT_CAUSES
from penstock.operate.why.answer import count, ordinal, span
from penstock.operate.why.queued import group_text
from penstock.run.root_cause import headline, short_cause
from penstock.store.session.noted_clock import noted
from penstock_api.pages import schema_form, static_files
from penstock_api.requests.code_elements import with_code, with_links
from penstock_api.requests.public_path import base

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
LONGEST = 20_000
"""The maximum length of a document on a page, in characters."""


def pretty(value: Any) -> str:
    """Return a JSON document for people, cut off if it is long."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str).decode()
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n... {len(text) - LONGEST:,} more characters are not shown. The API returns the whole value."


def brief(value: Any, limit: int = 90) -> str:
    """Return a value as JSON in one line of at most `limit` characters."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def compact(value: Any) -> str:
    """Return a value as JSON in one line."""
    return orjson.dumps(value).decode()


def took(value: float | timedelta | None) -> str:
    """Return a duration: 12 ms, 0.8 s, 5 min."""
    if value is None:
        return "–"
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return span(seconds)


def ago(value: datetime) -> str:
    """Return how long ago an instant is, or how far in the future."""
    seconds = (noted() - value).total_seconds()
    if -1 < seconds < 1:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"


def lasting(value: datetime) -> str:
    """Return the time since an instant: 12 ms, 5 min."""
    return took(noted() - value)


def clock(value: datetime) -> str:
    """Return an instant in UTC, to the millisecond."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


def address(path: str, /, **query: Any) -> str:
    """Return a path with the query parameters that have a value."""
    params = {name: value for name, value in query.items() if value not in (None, "", [], False)}
    return f"{base()}{path}?{urlencode(params, doseq=True)}" if params else base() + path


def short(id: object) -> str:
    """Return the end of an id, in which ids differ most."""
    return str(id)[-8:]


ID = re.compile(
    r"(See why: penstock why |See (?:step|task)s? '[^']*' with: penstock show |penstock why |penstock [a-z-]+ )?"
    r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
)


def linked(text: str) -> Markup:
    """Return a sentence with a link for each execution that it names. The link replaces the command `penstock why ID`. Another
    command stays as a person has to type it, with the whole id."""
    parts, at = Markup(), 0
    for match in ID.finditer(text):
        command, id = match[1] or "", match[2]
        parts += timed(text[at : match.start()])
        if command.startswith("See why"):
            label = "See why."
        elif command.startswith("See"):
            label = f"{command.removesuffix(' with: penstock show ')}."
        elif command and not command.startswith("penstock why"):
            parts += escape(command)
            label = id
        else:
            label = short(id)
        parts += Markup('<a href="{}/executions/{}">{}</a>').format(base(), id, label)
        at = match.end()
    return parts + timed(text[at:])


INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


def timed(text: str) -> Markup:
    """Return a sentence with its instants in UTC as times, which the browser shows in its own zone."""
    parts, at = Markup(), 0
    for match in INSTANT.finditer(text):
        try:
            instant = datetime.strptime(match[0], "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
        except ValueError:  # the text of a user, such as 2026-13-01 00:00:00 UTC
            continue
        time = Markup('<time datetime="{}" title="{}" data-clock>{}</time>')
        parts += escape(text[at : match.start()]) + time.format(instant.isoformat(), clock(instant), match[0])
        at = match.end()
    return parts + escape(text[at:])


AGE = re.compile(r"\d[\d.]* \S+ ago")


def aged(text: str, at: datetime) -> Markup:
    """Return a sentence about the instant `at` with links. Its age becomes a time that the browser keeps true, since the page of
    an ended execution is not rendered again."""
    if not (match := AGE.search(text)):
        return linked(text)
    time = Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        at.isoformat(), clock(at), ago(at)
    )
    return linked(text[: match.start()]) + time + linked(text[match.end() :])


def shown_status(word: str) -> str:
    """Return a status in the spelling of the pages: `cancelling` for the value `canceling`."""
    return "cancelling" if word == CANCELING else word


LIST_COMMANDS = {
    "penstock actions": "/actions",
    "penstock dead-letters list": "/dead-letters",
    "penstock executions": "/executions",
    "penstock limit list": "/limits",
    "penstock rules list": "/rules",
    "penstock schedule list": "/schedules",
    "penstock secrets list": "/secrets",
    "penstock subscriptions list": "/subscriptions",
    "penstock tokens list": "/tokens",
    "penstock users list": "/users",
    "penstock webhooks list": "/webhooks",
    "penstock workers list": "/workers",
}
"""The commands that show the same list as a page."""


def with_pages(hint: str, menu: Sequence[Any]) -> Markup:
    """Return a hint with a link to a page of the `menu` for each command that shows the same list. Other commands are code
    elements."""
    names = {place.path: place.name for place in menu}
    links = {
        command: (base() + path, names[path]) for command, path in LIST_COMMANDS.items() if path in names
    }
    return with_links(hint, links)


def action_of(namespace: str) -> str:
    """Return the action or the task of a namespace for people: `shop.charge`, `shop.order › charge`."""
    _, pack, name, *task = namespace.split("::")
    return f"{pack}.{name} › {task[0]}" if task else f"{pack}.{name}"


def number(value: float | None) -> str:
    """Return a figure for people: 0.4, 12, 3,400."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def reply(response: str | None) -> str:
    """Return the answer to an inquiry, which is stored as JSON, for people."""
    value = None if response is None else orjson.loads(response)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else brief(value)


def failure_line(error: Any) -> str:
    """Return the sentence of a stored error, or the values in one line that an attempt carried over instead of an error."""
    return headline(error) or brief(error)


def error_line(error: Mapping[str, Any]) -> str:
    """Return the type and the whole message of a stored error."""
    return ": ".join(str(part) for part in (error.get("type"), error.get("message")) if part)


def other_members(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a stored error that are not texts for people."""
    return {
        name: value for name, value in error.items() if name not in ("type", "message", "traceback", "answer")
    }


def sentence(text: str) -> str:
    """Return a text with a full stop at its end."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def same(mapping: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    """Return a copy of a mapping with some values replaced."""
    return {**mapping, **other}


JSON_EXAMPLES = {
    "array": '["a", "b"]',
    "object": '{"key": "value"}',
    "integer": "7",
    "number": "0.5",
    "boolean": "true",
}


def example(types: Sequence[str]) -> str:
    """Return the placeholder of a field for a text or a value of one of these types."""
    examples = [JSON_EXAMPLES[type_] for type_ in types if type_ in JSON_EXAMPLES]
    return f"text, or JSON: {' or '.join(examples)}" if examples else "text"


TEMPLATES.filters.update(
    example=example,
    pretty=pretty,
    brief=brief,
    compact=compact,
    took=took,
    ago=ago,
    clock=clock,
    lasting=lasting,
    short=short,
    action_of=action_of,
    key_of=group_text,
    number=number,
    same=same,
    sentence=sentence,
    ordinal=ordinal,
    linked=linked,
    aged=aged,
    timed=timed,
    with_code=with_code,
    with_pages=with_pages,
    decision=schema_form.decision,
    reply=reply,
    failure_line=failure_line,
    short_cause=short_cause,
    error_line=error_line,
    other_members=other_members,
    shown_status=shown_status,
)
TEMPLATES.tests.update(approval=schema_form.is_approval)
TEMPLATES.globals.update(
    base=base,
    address=address,
    static=static_files.address,
    FINAL=FINAL,
    count=count,
    meanings=MEANINGS,
    wait_causes=WAIT_CAUSES,
)
TEMPLATES.globals.update(drawings=TEMPLATES.get_template("drawings.html").module)
