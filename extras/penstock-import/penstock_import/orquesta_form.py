"""A check of a workflow's form. Orquesta refuses to start a workflow with a part of another form, so StackStorm refuses
such a workflow, whatever its parts mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock_import.consumed import Node
from penstock_import.parameters import Tell

REFUSED = "StackStorm refuses this workflow: correct it, and import again."
_ONE_KEY = "mappings with one key each"


def tell_refused(root: Node, tell: Tell) -> None:
    """Record a gap for each part of an Orquesta workflow with a form that Orquesta refuses."""
    for part in list(_refused(root)):
        tell(part.node.line, " ".join(part.subject.split()), REFUSED)
        for node in part.node.parts() if part.node.is_list else [part.node]:
            if not node.is_mapping or not part.node.is_list:
                node.drop()


@dataclass(frozen=True, slots=True)
class _Refused:
    """A part of a workflow with a form that Orquesta refuses."""

    node: Node
    subject: str


def _refused(root: Node) -> Iterator[_Refused]:
    """Yield each part of an Orquesta workflow with a form that Orquesta refuses."""
    for key in ("vars", "output"):
        yield from _part(root, key, "", _is_list_of(_is_pair), f"a list of {_ONE_KEY}")
    is_input = _is_list_of(lambda value: _is_text(value) or _is_pair(value))
    yield from _part(root, "input", "", is_input, f"a list of names and of {_ONE_KEY}")
    tasks = root.get("tasks")
    for name, task in tasks.items() if tasks is not None else ():
        if not task.is_mapping:
            yield _Refused(task, f"the task {name}, which has to be a mapping")
            continue
        yield from _task(name, task)


def _task(name: str, task: Node) -> Iterator[_Refused]:
    where = f" of {name}"
    yield from _part(task, "action", where, _is_text, "a text")
    is_input = lambda value: _is_text(value) or (isinstance(value, dict) and value != {})  # noqa: E731
    yield from _part(task, "input", where, is_input, "a text or a mapping with keys")
    yield from _part(task, "delay", where, _is_text_or_count, "an integer or an expression")
    yield from _part(
        task, "join", where, lambda value: value == "all" or _is_count(value), "`all` or an integer"
    )
    is_with = lambda value: _is_text(value) or isinstance(value, dict)  # noqa: E731
    yield from _part(task, "with", where, is_with, "a text or a mapping")
    yield from _part(task, "retry", where, lambda value: isinstance(value, dict), "a mapping")
    if (items := task.get("with")) is not None and items.is_mapping:
        yield from _part(items, "items", where, _is_text, "a text")
        yield from _part(items, "concurrency", where, _is_text_or_count, "an integer or an expression")
    if (retry := task.get("retry")) is not None and retry.is_mapping:
        if not retry.has("count"):
            yield _Refused(Node(retry.line), f"`retry`{where}, which has to have a `count`")
        yield from _part(retry, "when", where, _is_text, "a text")
        for key in ("count", "delay"):
            yield from _part(retry, key, where, _is_text_or_count, "an integer or an expression")
    is_next = lambda value: isinstance(value, list) and all(isinstance(part, dict) for part in value)  # noqa: E731
    yield from _part(task, "next", where, is_next, "a list of mappings")
    for step in (task.get("next") or Node(1)).parts():
        yield from _part(step, "when", where, _is_text, "a text")
        is_published = lambda value: _is_text(value) or _is_list_of(_is_pair)(value)  # noqa: E731
        yield from _part(step, "publish", where, is_published, f"a text or a list of {_ONE_KEY}")
        is_do = lambda value: _is_text(value) or _is_list_of(_is_text)(value)  # noqa: E731
        yield from _part(step, "do", where, is_do, "a text or a list of different names")


def _part(
    node: Node, key: str, where: str, is_accepted: Callable[[Any], bool], form: str
) -> Iterator[_Refused]:
    child = node.get(key)
    if child is not None and not is_accepted(child.peek()):
        yield _Refused(child, f"`{key}`{where}, which has to be {form}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return is_integer and not isinstance(value, bool) and value >= 0


def _is_text_or_count(value: Any) -> bool:
    return _is_text(value) or _is_count(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1


def _is_list_of(is_accepted: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check of a list: it has parts, each of them is accepted, and none of them twice."""

    def check(value: Any) -> bool:
        if not isinstance(value, list) or not value or not all(is_accepted(part) for part in value):
            return False
        texts = [repr(part) for part in value]
        return len(set(texts)) == len(texts)

    return check
