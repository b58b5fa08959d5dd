"""The items of a batch: the executions that a function gets in one call."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from penstock.errors import OutsideRun
from penstock.run.context import RunContext
from penstock.run.run import Run

T = TypeVar("T")


class Item(RunContext, Generic[T]):
    """One execution in a batch: its parameters as `input`, and all that `current()` offers for a single execution.

    `input` is a value of the type in the annotation, `list[Item[Text]]`: a TypedDict, a dataclass or a model. Create items in a
    test to call the function directly: `embed([Item({"text": "a"})])`. Such an item has no run.
    """

    __slots__ = ("_call", "input")

    def __init__(self, input: T, run: Run | None = None, call: Run | None = None) -> None:
        """`run` is the run of this item, and `call` that of the whole batch."""
        self.input = input
        if run is not None:
            super().__init__(run)
        self._call = call

    @property
    def cancelled(self) -> bool:
        """Return whether this item was cancelled, or the whole call was cancelled or timed out. The result of a cancelled item is
        dropped."""
        return self._run.cancelled or (self._call is not None and self._call.cancelled)

    def __getattr__(self, name: str) -> Any:
        """Raise OutsideRun for the run of an item that has none, and AttributeError for unknown names."""
        if name == "_run":
            raise OutsideRun(
                "this item belongs to no run", hint="It was created by hand. Items of a worker have one."
            )
        raise AttributeError(f"an item has no {name!r}")

    def __repr__(self) -> str:
        return f"<item {self.input!r}>"
