"""The choices of a case, and values made from them, within a number of bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import orjson

Choices = list[float]
TEXTS = (
    "a",
    "1",
    "x" * 30,
    "1:1:1:1:1:1:1:x",
    "2030-01-01T00:00:00Z",
    "\u00e4\U0001f600",
    "k1",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
    "",
)
NUMBERS = (0, 1, -1, 1.5, 1e300, 2**63, -(2**63), 7, 0.1, 1e-7)


class Draw:
    """The choices of one case: those that are there, and then new ones."""

    def __init__(self, choices: Sequence[float], more: random.Random) -> None:
        self.choices: Choices = list(choices)
        self._place = 0
        self._more = more

    def share(self) -> float:
        if self._place == len(self.choices):
            self.choices.append(self._more.random())
        self._place += 1
        return self.choices[self._place - 1]

    def of(self, options: Sequence[Any]) -> Any:
        return options[int(self.share() * len(options))]

    def count(self, most: int) -> int:
        """Return a count from 1 to `most`, of which all orders of magnitude are as likely."""
        return max(1, int(most ** self.share()))

    def used(self) -> Choices:
        return self.choices[: self._place]


class Values:
    def __init__(self, draw: Draw, names: Sequence[str]) -> None:
        self._draw, self._names = draw, names

    def value(self, depth: int, room: int) -> Any:
        kind = int(self._draw.share() * (8 if depth < 4 and room > 60 else 3))
        if kind == 0:
            return self._draw.of(NUMBERS)
        if kind == 1:
            return self._text(room)
        if kind == 2:
            return self._draw.of((None, True, [], {}, 1, "a"))
        if kind in (3, 4):  # a list of copies, or of items that differ
            first = self.value(depth + 1, self._draw.count(max(room // 2, 2)))
            number = self._draw.count(max(room // (size(first) + 8), 1))
            differ = self._draw.share() < 0.5
            return [[first, n] if differ and kind == 4 else n if differ else first for n in range(number)]
        if kind in (5, 6):
            first = self.value(depth + 1, self._draw.count(max(room // 2, 2)))
            number = self._draw.count(max(room // (size(first) + 10), 1))
            return {f"k{n}": first for n in range(number)}
        inner = self.value(depth + 1, max(room - 900, 2))
        for _ in range(self._draw.count(90)):
            inner = [inner] if self._draw.share() < 0.5 else {self._draw.of(self._names): inner}
        return inner

    def _text(self, room: int) -> str:
        text = str(self._draw.of(TEXTS))
        times = self._draw.count(max(room // (len(text.encode()) * 2 + 1), 1))
        return (text * times)[: max(room - 4, 0) // 4] if self._draw.share() < 0.3 else text[: max(room, 1)]


def size(value: Any) -> int:
    return len(orjson.dumps(value))
