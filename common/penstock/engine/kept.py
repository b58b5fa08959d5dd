"""What a re-run keeps of the run before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kept:
    """How a task ended in the run before. Its result, and those of its `total` items, are read from where
    they are.

    For a fan-out that is run again, `items` has a bit for each item that completed; they are kept if the list
    of items has the same `digest`. `status` None: only these items are kept. `given`, `result` and `error`
    are as in its record. `by_hand`: an operator ended it before it was decided."""

    status: str | None
    items: bytes = b""
    total: int | None = None
    digest: str = ""
    given: bool = False
    by_hand: bool = False
    result: Any = None
    error: Any = None
