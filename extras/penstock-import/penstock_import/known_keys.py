"""The advice for keys of StackStorm's files without an equivalent. A key that is in none of these tables becomes a gap
too."""

from __future__ import annotations

from collections.abc import Mapping

_TAGS = "Write `labels` of the definition that it describes."
UNKNOWN = "The import knows no equivalent: see what it should do."
UNKNOWN_OF_WORKFLOW = (
    "Orquesta refuses to start a workflow with an unknown key: remove the key, or correct it."
)
UNKNOWN_OF_CHAIN = "StackStorm refuses to start a chain with an unknown key: remove the key, or correct it."
IDENTITY = frozenset({"id", "uid", "ref", "pack", "metadata_file"})
"""The keys that follow from the file's name and place, or that only StackStorm uses."""

BY_HAND: Mapping[str, Mapping[str, str]] = {
    "action": {
        "notify": "Write `on_success` or `on_failure` of the action, or a webhook out.",
        "output_schema": "Write it as `result` of the action, without its secrets.",
        "output_key": "Have the function return that part.",
        "tags": _TAGS,
    },
    "rule": {
        "type": "Write a rule whose `when` covers the cases that no other rule covers.",
        "tags": _TAGS,
        "description": "Write it as a comment.",
        "parameters": "Write it together with the unmapped parts of the rule.",
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
