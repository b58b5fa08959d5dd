"""docs/reference/system-events.md: the events that Penstock itself writes, and the fields of their payloads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS, VERSION, Field

HEAD = f"""# System events

This page is written by `docs/written` from the table of system triggers. [Alerts from events](../how-to/alerts-from-events.md) shows rules that use
them.

Penstock writes an event of these triggers in the transaction of the move that it is about, and only if an enabled rule asks for it: a rule
of that tenant, or of all tenants. A task that waits for such an event (`wait_for_event`) asks too. No client can publish one.

`version` is {VERSION}. It rises when a field is renamed or removed, or changes its meaning. A new field does not change it. Instants are ISO 8601 in
UTC with microseconds. A field with a question mark may be null.
"""


def page() -> str:
    text = HEAD
    for ref, trigger in SYSTEM_TRIGGERS.items():
        text += f"\n## {ref}\n\n{trigger.description}\n\n| field | type | |\n|---|---|---|\n"
        for name, field in trigger.fields.items():
            text += "".join(_rows(name, field))
    return text


def _rows(name: str, field: Field) -> Iterator[str]:
    yield f"| `{name}` | {field.type}{'?' * field.optional} | {field.meaning} |\n"
    for inner, part in (field.fields or {}).items():
        yield from _rows(f"{name}.{inner}", part)
