"""The differences between two versions of a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from penstock.language.terms.options import dotted
from penstock.language.terms.sources import Location
from penstock.language.workflows.model import Workflow

_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A place that differs between two versions. Its path names a task instead of giving its index."""

    what: Annotated[
        Literal["added", "removed", "changed", "moved"],
        Field(description="`added`, `removed`, `changed`, `moved`"),
        WithJsonSchema({"type": "string"}),
    ]
    at: Annotated[
        Location,
        Field(
            description='The path of the place, with names of tasks instead of indexes: `["tasks", "charge", "retry"]`.'
        ),
    ]
    old: Annotated[
        Any,
        Field(
            description="The value in the old version; null if it was added. For `moved`: the names of the "
            "tasks in the old order."
        ),
    ]
    new: Annotated[
        Any,
        Field(
            description="The value in the new version; null if it was removed. For `moved`: the names of the "
            "tasks in the new order."
        ),
    ]

    def __str__(self) -> str:
        place = dotted(self.at)
        if self.what == "changed":
            return f"~ {place}: {_short(self.old)} -> {_short(self.new)}"
        if self.what == "moved":
            return f"~ {place}: the order is now {', '.join(self.new)}"
        value = self.old if self.what == "removed" else self.new
        return f"{'-' if self.what == 'removed' else '+'} {place}: {_short(value)}"


def diff(old: Workflow, new: Workflow) -> list[Difference]:
    """Return the differences between `old` and `new`, in the order of the document. Empty if their digests are equal."""
    differences = list(_differences((), _by_name(old), _by_name(new)))
    old_names, new_names = ([task.name for task in workflow.tasks] for workflow in (old, new))
    both = set(old_names) & set(new_names)
    if [name for name in old_names if name in both] != [name for name in new_names if name in both]:
        differences.append(Difference("moved", ("tasks",), old_names, new_names))
    return differences


def _by_name(workflow: Workflow) -> dict[str, Any]:
    body = workflow.body()
    body["tasks"] = {
        task["name"]: {key: value for key, value in task.items() if key != "name"} for task in body["tasks"]
    }
    return body


def _differences(at: Location, old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences((*at, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif old is _ABSENT:
        yield Difference("added", at, None, new)
    elif new is _ABSENT:
        yield Difference("removed", at, old, None)
    elif old != new or type(old) is not type(new):
        yield Difference("changed", at, old, new)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
