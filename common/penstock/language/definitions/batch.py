"""Batches, in which a function gets several executions of its action in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, field_validator

from penstock.language.terms.durations import Duration
from penstock.language.terms.options import Options, Wrong
from penstock.language.terms.parameter_paths import KeyPaths, is_label

LARGEST_BATCH = 1000
LONGEST_WAIT_S = 60


class Batch(Options):
    """`Batch(100, within="200ms", by="model")` gives a function up to 100 executions in one call. The worker calls it once it
    holds 100 of them, or 200 ms after it claimed the first.

    The function takes one list of `Item`, and returns a list with one result for each. An exception in that list fails
    only its item. Each item remains a separate execution, with its result, its error and its retries. Raises
    DefinitionError if a value is not valid."""

    thing: ClassVar[str] = "batch"
    positional: ClassVar[tuple[str, ...]] = ("size",)

    size: Annotated[int, Field(ge=1, le=LARGEST_BATCH)]
    """The largest number of items in one call, at most 1,000."""
    within: Duration = 0.1
    """The maximum wait for further items after the claim of the first item, at most 60 s. With 0 the function gets the items
    that the worker claims at once."""
    by: KeyPaths = ()
    """Paths of parameters, such as `order.customer`, and labels, such as `labels.customer`. Items with different values of
    them never share a call, and a missing value counts as a value. Tenants never share a call."""

    if TYPE_CHECKING:

        def __init__(self, size: int, *, within: float | str = 0.1, by: str | Sequence[str] = ()) -> None: ...

    @field_validator("within")
    @classmethod
    def _is_brief(cls, within: float) -> float:
        if within > LONGEST_WAIT_S:
            raise Wrong(
                f"is {within:g} s: items wait at most {LONGEST_WAIT_S} s",
                "Write within='200ms'. A worker holds the items during this time, so use a schedule for longer waits.",
            )
        return within

    @property
    def by_labels(self) -> bool:
        """Return whether the items are grouped by a label, which is not among the parameters."""
        return any(map(is_label, self.by))

    def numbers(self) -> dict[str, object]:
        """Return the options with their defaults, as executors read them."""
        return {"size": self.size, "within": self.within, "by": list(self.by)}
