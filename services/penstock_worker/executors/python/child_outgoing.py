"""The way from code in a child process to its worker: requests and answers on the socket of the jobs."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from penstock.errors import InvalidInput, OutsideRun
from penstock.run.outgoing import Request, answer_of
from penstock_worker.executors.python import frames


class ChildOutgoing:
    """The way to the worker for the attempt that a child process runs. Any thread of it may send requests.

    Of the threads that wait for answers, one reads the socket, and stores the answers of the others.
    """

    def __init__(self, channel: socket.socket, limit: int) -> None:
        """Create it for one attempt. A request has at most `limit` bytes of JSON."""
        self._channel = channel
        self._limit = limit
        self._process = os.getpid()
        self._numbers = itertools.count()
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._is_reading = False
        self._is_over = False
        self._answers: dict[int, dict[str, Any]] = {}

    @property
    def is_forked(self) -> bool:
        """True in a process that the action forked. Its frames would be taken for those of its parent."""
        return os.getpid() != self._process

    def send_frame(self, frame: bytes) -> None:
        """Send a frame to the worker, never in the middle of a frame of another thread."""
        with self._sending:
            self._channel.sendall(frame)

    async def send(self, request: Request) -> Any:
        return await asyncio.to_thread(self.ask, request)

    def send_blocking(self, request: Request, is_cancelled: Callable[[], bool]) -> Any:
        """Carry out a request. A cancelled attempt gets SIGTERM, which ends the wait."""
        return self.ask(request)

    def close(self) -> None:
        """Refuse further requests: the attempt is over."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def ask(self, request: Request, item: int | None = None) -> Any:
        """Carry out a request, that of the item at this place in a batch, or else that of the attempt."""
        if self.is_forked:
            raise OutsideRun(
                "a process that the action forked has no way to the worker",
                hint="Publish and start in the process of the action itself.",
            )
        number = next(self._numbers)
        frame = frames.request_frame(number, request, item)
        if len(frame) > self._limit:
            raise InvalidInput(
                f"a request of {len(frame)} bytes is too large: at most {self._limit} can be sent",
                hint="Store the value elsewhere, and send its address.",
            )
        if self._is_over:
            raise _over()
        self.send_frame(frame)
        return answer_of(self._answer(number))

    def _answer(self, number: int) -> dict[str, Any]:
        while True:
            with self._changed:
                while number not in self._answers and self._is_reading and not self._is_over:
                    self._changed.wait()
                if number in self._answers:
                    return self._answers.pop(number)
                if self._is_over:
                    raise _over()
                self._is_reading = True
            read = None
            try:
                frame = frames.receive(self._channel)
                if frame is None:
                    raise OutsideRun(
                        "the worker has closed its connection",
                        hint="The worker is stopping: the attempt runs again on another worker.",
                    )
                read = frames.answer_in(frame)
            finally:
                with self._changed:
                    self._is_reading = False
                    if read is not None:
                        self._answers[read[0]] = read[1]
                    self._changed.notify_all()


class ItemOutgoing:
    """The way to the worker for one item of a batch."""

    def __init__(self, outgoing: ChildOutgoing, place: int) -> None:
        self._outgoing = outgoing
        self._place = place

    async def send(self, request: Request) -> Any:
        return await asyncio.to_thread(self._outgoing.ask, request, self._place)

    def send_blocking(self, request: Request, is_cancelled: Callable[[], bool]) -> Any:
        return self._outgoing.ask(request, self._place)


def _over() -> OutsideRun:
    return OutsideRun(
        "the attempt is over", hint="Wait for threads that publish or start before the action returns."
    )
