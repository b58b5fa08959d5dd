"""Connections to PostgreSQL and to gateways on which an answer can be lost: the statement or the call is committed, and its
sender does not hear of it, because the connection is gone by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.chaos.proxy import Direction, Verdict, Watch

LENGTH = 4
"""Bytes of a message's length, which counts itself."""
ASK_FOR_TLS = 80877103
READY = b"Z\x00\x00\x00\x05I"
"""The server has committed, and waits for the next statement. The last that it says of each."""


STATEMENTS = (b"claim_executions", b"claim_executions", b"finish_attempts", b"")
"""Words of statements whose answers are lost. The empty word is in any."""
CALLS = (b"/work/take", b"/work/take", b"/work/finish", b"/work/beat", b"/work/hello", b"/work/")
"""Words of calls of a gateway whose answers are lost."""


class Answers:
    """The state that the connections of a network share: the answer that is to be lost. `words`: words of the requests
    whose answers are worth losing."""

    def __init__(self, reader: Callable[[Answers], Watch], words: Sequence[bytes]) -> None:
        self.words = words
        self._reader = reader
        self._word: bytes | None = None
        self._lost = asyncio.Event()

    def watch(self) -> Watch:
        return self._reader(self)

    async def lose(self, word: bytes, patience: float) -> bool:
        """Lose the answer to the next request that has this word. False if none came within so many seconds."""
        self._word = word
        self._lost.clear()
        try:
            async with asyncio.timeout(patience):
                await self._lost.wait()
        except TimeoutError:
            return False
        finally:
            self._word = None
        return True

    def take(self, request: bytes) -> bool:
        """Return true if the answer to this request is to be lost. Then no other answer is."""
        if self._word is None or self._word not in request:
            return False
        self._word = None
        return True

    def tell(self) -> None:
        self._lost.set()


class Statements:
    """One connection. Reads what its client sends: which statements it has prepared, and which it runs."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._prepared: dict[bytes, bytes] = {}
        self._rest = b""
        self._started = False
        self._losing = False
        self._heard = b""

    def sees(self, direction: Direction, data: bytes) -> Verdict:
        if direction == "up":
            self._read(data)
            return "pass"
        if not self._losing:
            return "pass"
        self._heard = (self._heard + data)[-len(READY) :]
        if self._heard != READY:
            return "drop"
        self._answers.tell()
        return "reset"

    def _read(self, data: bytes) -> None:
        pending = self._rest + data
        while len(pending) > LENGTH:
            kind = 1 if self._started else 0  # what comes first has no byte that says what it is
            whole = kind + int.from_bytes(pending[kind : kind + LENGTH])
            if len(pending) < whole:
                break
            self._message(pending[:kind], pending[kind + LENGTH : whole])
            pending = pending[whole:]
        self._rest = pending

    def _message(self, kind: bytes, body: bytes) -> None:
        if not kind:
            self._started = int.from_bytes(body[:4]) != ASK_FOR_TLS
        elif kind == b"P":
            name, statement, *_ = body.split(b"\0", 2)
            self._prepared[name] = statement
        elif kind == b"B":
            _portal, name, *_ = body.split(b"\0", 2)
            self._losing = self._losing or self._answers.take(self._prepared.get(name, b""))


class Calls:
    """One connection to a gateway, with one call at a time."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._losing = False

    def sees(self, direction: Direction, data: bytes) -> Verdict:
        if direction == "up":
            self._losing = self._losing or self._answers.take(data)
            return "pass"
        if not self._losing:
            return "pass"
        self._answers.tell()
        return "reset"
