"""docs/reference/system-events.md: the events that Penstock itself writes, and the fields of their payloads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS, VERSION, Field

HEAD = f"""# System events

This page is written by `docs/written` from the table of system triggers. [Alerts from events](../how-to/alerts-from-events.md) shows rules that use
them.

Penstock writes these events in the transaction of the change that they report. It writes an event only if an enabled rule of its tenant,
or of all tenants, has its trigger, or if a task waits for it (`wait_for_event`). Clients cannot publish events of these triggers.

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
