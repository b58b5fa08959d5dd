"""The advice for keys of StackStorm's files without an equivalent. A key that is in none of these tables becomes a gap
too."""

from __future__ import annotations

from collections.abc import Mapping

_TAGS = "Write `labels` of what it should say something of."
UNKNOWN = "Nothing here is known to have its meaning: see what it should do."
UNKNOWN_OF_WORKFLOW = (
    "Orquesta refuses a workflow with a key that it does not know, as it starts: take it out, or correct it."
)
UNKNOWN_OF_CHAIN = (
    "StackStorm refuses a chain with a key that it does not know, as it starts: take it out, or correct it."
)
IDENTITY = frozenset({"id", "uid", "ref", "pack", "metadata_file"})
"""The keys that follow from the file's name and place, or that only StackStorm uses."""

BY_HAND: Mapping[str, Mapping[str, str]] = {
    "action": {
        "notify": "Write `on_success` or `on_failure` of the action, or a webhook out.",
        "output_schema": "Write it as `result` of the action, without what is secret in it.",
        "output_key": "Have the function return that part.",
        "tags": _TAGS,
    },
    "rule": {
        "type": "Write a rule whose `when` says what the others leave.",
        "tags": _TAGS,
        "description": "Write it as a comment.",
        "parameters": "Write it together with what is not mapped of the rule.",
    },
    "trigger": {"parameters_schema": "Rules compare with the payload, in `when`.", "tags": _TAGS},
    "workflow": {"tags": _TAGS, "notify": "Write `on_success` or `on_failure` of the task."},
    "chain": {"notify": "Write `on_success` or `on_failure` of the task."},
    "sensor": {"parameters_schema": "Read it as a setting of the function."},
    "policy": {},
    "alias": {},
    "pack": {},
}
"""The advice by kind of file, and by the last key of the path."""


def by_hand(kind: str, path: str) -> str:
    """Return the advice for a remaining path in a file of this kind."""
    last = path.rpartition(".")[2].partition("[")[0]
    unknown = {"workflow": UNKNOWN_OF_WORKFLOW, "chain": UNKNOWN_OF_CHAIN}.get(kind, UNKNOWN)
    return BY_HAND.get(kind, {}).get(last, unknown)
