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

This page is written by `docs/written` from the models that check packs.

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

Inside a pack, names are written without the name of the pack: `shout` means `stock.shout`. A section is in `pack.yaml`, in a file
named like the section (`rules.yaml`), or in a folder named like the section with a file for each entry
(`rules/shout_deliveries.yaml`). If a file has a fault, nothing is stored. All faults of all files are reported at once, with file, line
and a suggestion. If the folder is not a pack itself, Penstock reads its Python files, YAML files and folders. It skips Compose files, and
names that begin with a dot.

"""
ACTION = """An action names its **code** in one of these ways: `function: module:name` (Python in the folder of the pack), `command: [program,
argument]`, `url: https://...`, `image: name:tag`, or `executor:` with its `options`. It also has these options:

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
        HEAD + "## The head\n\n" + ", ".join(f"`{name}`" for name in HEADER) + ". Only `name` is needed.\n\n"
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
