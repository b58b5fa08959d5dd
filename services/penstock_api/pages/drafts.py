"""Drafts of rules and schedules: what a person has typed into the form of a page, as options of a declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from penstock.errors import InvalidInput
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.packs.declaration_text import python_of, yaml_of
from penstock.operate import definitions
from penstock.run.json_integers import parsed_by_hand
from penstock.store.definitions import catalog
from penstock.store.session.database import Session

MORE = "more"
"""The field of a form with all options that have no field of their own, as JSON."""


def options_of(form: Mapping[str, str], texts: Sequence[str]) -> dict[str, Any]:
    """Return the options in a form: `texts` as they are, `params` and all others from JSON. Raises InvalidInput for a
    text that is not a JSON object."""
    options: dict[str, Any] = {name: form[name].strip() for name in texts if form.get(name, "").strip()}
    if params := _document(form, "params"):
        options["params"] = params
    return options | _document(form, MORE)


async def stored_options(session: Session, kind: str, ref: str) -> dict[str, Any]:
    """Return the options of a stored rule or schedule. Raises NotFound if the definition does not exist, and
    InvalidInput if a page may not show all of its values."""
    masked = (await definitions.one(session, [kind], ref))["definition"]
    [stored] = await catalog.current(session, [kind], [ref])
    if masked != orjson.loads(stored.body):
        raise InvalidInput(
            f"{ref} contains a secret, so it cannot be edited on a page",
            hint=f"Change {ref} in its file, and load the file with `penstock apply`.",
        )
    return dict(masked)


def form_of_options(options: Mapping[str, Any], texts: Sequence[str]) -> dict[str, str]:
    """Return the fields of a form with these options."""
    other = {name: value for name, value in options.items() if name not in (*texts, "params", "ref")}
    form = {name: str(options[name]) for name in texts if options.get(name) is not None}
    return {**form, "params": _text(options.get("params") or {}), MORE: _text(other) if other else ""}


def draft(declaration: Rule | Schedule) -> dict[str, Any]:
    """Return a draft for its template: the ref, the options, and the texts to copy."""
    options = declaration.body()
    return {
        "ref": options.pop("ref"),
        "options": options,
        "yaml": yaml_of(declaration),
        "python": python_of(declaration),
    }


def _document(form: Mapping[str, str], name: str) -> dict[str, Any]:
    text = form.get(name, "").strip()
    if not text:
        return {}
    hint = 'Write names and values, such as {"order": "{{ payload.order }}"}.'
    try:
        value = parsed_by_hand(text, name)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{name} is not JSON: {error}", hint=hint) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is not a JSON object", hint=hint)
    return value


def _text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
