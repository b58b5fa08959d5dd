"""Every key that files of StackStorm may have: what is mapped, what says nothing new here, and of the rest what to do by hand.
A key that is in none of these is named, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.cli.imports.marked_yaml import Marked
from penstock.cli.imports.report import Report

IDENTITY = frozenset({"id", "uid", "ref", "pack", "metadata_file"})
"""Follows from the file's name and place, or is StackStorm's own."""
_TAGS = "Write `labels` of what it should say something of."


@dataclass(frozen=True, slots=True)
class Keys:
    mapped: frozenset[str]
    by_hand: Mapping[str, str] = field(default_factory=dict)
    harmless: Mapping[str, object] = field(default_factory=dict)
    """Values that say what holds here anyway."""


ACTION = Keys(
    IDENTITY | {"name", "description", "runner_type", "entry_point", "parameters"},
    {
        "enabled": "It runs here: take it out, or have nothing start it.",
        "notify": "Write `on_success` or `on_failure` of the action, or a webhook out.",
        "output_schema": "Write it as `result` of the action.",
        "output_key": "Have the function return that part.",
        "tags": _TAGS,
    },
    {"enabled": True},
)
_OF_JSON_SCHEMA = frozenset(
    {"type", "title", "description", "default", "enum", "const", "format", "items", "properties", "anyOf", "oneOf", "allOf"}
    | {"additionalProperties", "patternProperties", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"not", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)  # fmt: skip
PARAMETER = Keys(
    _OF_JSON_SCHEMA | {"required", "secret"},
    {
        "position": "Have the program read the parameter by its name, as JSON.",
        "immutable": "Write the value into the function: who starts an action may give any parameter.",
    },
    {"immutable": False},
)
RULE = Keys(
    IDENTITY | {"name", "description", "enabled", "trigger", "criteria", "action"},
    {
        "type": "Write a rule whose `when` says what the others leave.",
        "tags": _TAGS,
        "context": "Give it as parameters of the action.",
    },
    {"type": {"ref": "standard"}},
)
RULE_TRIGGER = Keys(
    frozenset({"type", "ref"}),
    {
        "parameters": "Compare with them in `when`.",
        "description": "Write it as a comment.",
    },
)
TIMER = Keys(RULE_TRIGGER.mapped | {"parameters"}, RULE_TRIGGER.by_hand)
RULE_ACTION = Keys(frozenset({"ref", "parameters"}), {"description": "Write it as a comment."})
TRIGGER = Keys(
    IDENTITY | {"name", "description", "payload_schema"},
    {
        "parameters_schema": "Rules compare with the payload, in `when`.",
        "tags": _TAGS,
    },
)
WORKFLOW = Keys(
    frozenset({"version", "name", "description", "input", "vars", "tasks", "output"}),
    {"tags": _TAGS},
)
TASK = Keys(frozenset({"action", "input", "with", "join", "delay", "retry", "next"}))
ITEMS = Keys(frozenset({"items", "concurrency"}))
RETRY = Keys(frozenset({"count", "delay", "when"}))
STEP = Keys(frozenset({"when", "publish", "do"}))


def name_left(report: Report, file: str, source: Marked, keys: Keys, subject: str) -> None:
    """A gap for each key of `source` that is not mapped."""
    for key, value in source.items():
        if (
            key in keys.mapped
            or (key in keys.harmless and value == keys.harmless[key])
            or value in (None, [], {}, "")
        ):
            continue
        by_hand = keys.by_hand.get(
            str(key), "Nothing here is known to have its meaning: see what it should do."
        )
        report.gap(file, source.line(key), f"{key} of {subject}", by_hand)


def name_left_of_rule(report: Report, file: str, source: Marked) -> None:
    """Report the unmapped keys of a rule, its trigger and its action."""
    name = source.get("name")
    name_left(report, file, source, RULE, f"rule {name}")
    name_left(report, file, source.get("action") or Marked(), RULE_ACTION, f"the action of rule {name}")
    trigger = source.get("trigger") or Marked()
    timer = str(trigger.get("type")).endswith("Timer")
    name_left(report, file, trigger, TIMER if timer else RULE_TRIGGER, f"the trigger of rule {name}")
    if timer and source.get("criteria"):
        report.gap(
            file,
            source.line("criteria"),
            f"criteria of rule {name}, which has a timer",
            "Compare in the action.",
        )
