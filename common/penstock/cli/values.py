"""Values as they are typed: JSON where it reads as JSON, else text."""

from __future__ import annotations

from typing import Any

import orjson


def value_of(word: str) -> Any:
    try:
        return orjson.loads(word)
    except orjson.JSONDecodeError:
        return word
