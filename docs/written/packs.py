"""docs/reference/packs.md: the YAML of a pack, field by field."""

from __future__ import annotations

from docs.written.fields import said_of, table
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.route import Route
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import MissedFires, Schedule
from penstock.language.definitions.trigger import Poll, Trigger
from penstock.language.definitions.window import Part, Window
from penstock.language.packs.pack_reader import HEADER
from penstock.language.packs.sections import SECTIONS
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import Inquiry, ItemFailures, Task, Transition, WaitForEvent

HEAD = """# Packs

This page is written by `docs/written` from the models that check what you write.

A pack is a folder with a `pack.yaml`, or a single YAML file. `penstock apply FOLDER` registers it, and
`penstock worker --module FOLDER` runs its actions.

```yaml
# stock/pack.yaml
name: stock
version: "1.0"
description: What comes in, and what goes out.
triggers:
  delivered:
    schema: {what: {type: string, required: true}}
actions:
  shout:
    command: [tr, a-z, A-Z]
    parameters: {what: {type: string, required: true}}
rules:
  shout_deliveries:
    trigger: delivered
    when: payload.what != "nothing"
    action: shout
    params: {what: "{{ payload.what }}"}
schedules:
  nightly: {action: shout, cron: 0 2 * * *, params: {what: good night}}
limits:
  few: {max: 5}
```

Names in a pack stand without the pack's own in front: `shout` is `stock.shout`. A section may stand in `pack.yaml`, in a file
of its name (`rules.yaml`), or in a folder of its name with a file for each entry (`rules/shout_deliveries.yaml`). All faults of all files
are told at once, with file, line and what was probably meant; then nothing is stored. In a folder that is not a pack itself, Python files, YAML
files and folders are looked at, but for Compose files and what begins with a dot.

"""
ACTION = """An action says **what to run**, in one of these ways: `function: module:name` (Python of the pack's folder), `command: [program,
argument]`, `url: https://...`, `image: name:tag`, or `executor:` with its `options`. Beside that:

| option | takes | default | |
|---|---|---|---|
| `parameters` | a mapping | | A JSON Schema, or the short form: `{what: {type: string, required: true, secret: true}}` |
| `result` | a mapping | | A JSON Schema of the result |
| `description` | text | | |

and all [options of an action](actions.md#options-of-an-action).

"""
MODELS = {
    "triggers": (Trigger, ()),
    "rules": (Rule, (("`window`", Window), ("A part of a window", Part))),
    "limits": (Limit, ()),
    "routes": (Route, ()),
    "schedules": (Schedule, (("`missed`", MissedFires),)),
    "workflows": (
        Workflow,
        (
            ("A task", Task),
            ("`next`: a list of these", Transition),
            ("`wait_for_event`", WaitForEvent),
            ("`inquiry`", Inquiry),
            ("`item_failures`", ItemFailures),
        ),
    ),
}
MORE = {
    "triggers": ("`poll` (and in it `function`: module:name)", Poll),
}


def page() -> str:
    text = (
        HEAD
        + "## The head\n\n"
        + ", ".join(f"`{name}`" for name in HEADER)
        + ": of these only `name` is needed.\n\n"
    )
    for section in SECTIONS:
        text += f"## `{section}`\n\n"
        if section == "actions":
            text += ACTION
            continue
        model, inside = MODELS[section]
        text += f"{said_of(model)}\n\n{table(model, without=('ref', 'format'))}\n"
        for title, part in (*inside, *([MORE[section]] if section in MORE else [])):
            text += f"### {title}\n\n{said_of(part)}\n\n{table(part, without=('name',))}\n"
    return text.rstrip() + "\n"
