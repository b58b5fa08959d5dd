"""The declaration `each(...)`, with which a task runs once for each item of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from penstock.language.workflows.value_reference import ValueReference, template

T = TypeVar("T")


class FanOutItem(ValueReference):
    """A stand-in for one item of the list. Its fields are `e.path` and so on; its position is `index`."""

    __slots__ = ("_options",)

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__("item", self)
        self._options = options


@overload
def each(
    items: str,
    *,
    concurrency: Any = None,
    batch_size: int | None = None,
    tolerate: int | str = 0,
    then: Literal["finish", "stop", "cancel"] = "finish",
) -> Any: ...
@overload
def each(
    items: Sequence[T],
    *,
    concurrency: Any = None,
    batch_size: None = None,
    tolerate: int | str = 0,
    then: Literal["finish", "stop", "cancel"] = "finish",
) -> T: ...
@overload
def each(
    items: Sequence[T],
    *,
    concurrency: Any = None,
    batch_size: int,
    tolerate: int | str = 0,
    then: Literal["finish", "stop", "cancel"] = "finish",
) -> list[T]: ...
@overload
def each(
    items: Any,
    *,
    concurrency: Any = None,
    batch_size: int | None = None,
    tolerate: int | str = 0,
    then: Literal["finish", "stop", "cancel"] = "finish",
) -> Any: ...
def each(
    items: Any,
    *,
    concurrency: Any = None,
    batch_size: int | None = None,
    tolerate: int | str = 0,
    then: Literal["finish", "stop", "cancel"] = "finish",
) -> Any:
    """Run a task once for each item of a list (a reference, or a list of values and references):
    `resize(image=each(images))`.

    At most `concurrency` run at a time. With `batch_size` an item is a list of that many values. Up to `tolerate`
    items (3, or "10%") may fail; with more failures the task fails: after all items, after those that have begun
    (`then="stop"`), or after cancelling these (`"cancel"`).
    """
    options: dict[str, Any] = {"with_items": template(items)}
    values = {"concurrency": concurrency, "batch_size": batch_size}
    options |= {name: template(value) for name, value in values.items() if value is not None}
    if tolerate != 0 or then != "finish":
        options["item_failures"] = {"tolerate": tolerate, "then": then}
    return FanOutItem(options)


def options_of(item: FanOutItem) -> dict[str, Any]:
    """Return the task options that the `each(...)` sets."""
    return dict(item._options)
