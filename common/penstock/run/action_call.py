"""An action with its parameters, as a value that a caller passes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ActionCall(Generic[R_co]):
    """An action with parameters, to pass to a client: `await client.run(charge.call(order=7), key="order-7")`."""

    ref: str
    parameters: Mapping[str, Any]
