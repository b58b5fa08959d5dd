"""The protocol between a worker and its child processes: length-prefixed frames on a socket.

Jobs go down pickled, because arguments are Python objects. What comes back is JSON only: a child that runs
wild must not be able to make the worker unpickle what it likes.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import orjson

from penstock.run import results
from penstock.run.task_executors import Outcome, TaskError, TaskReadyEvent

HEADER = 4
"""Bytes of the length, big-endian. Then one byte says what the frame is:"""
LOG, RESULT, OUTCOME = b"L", b"R", b"O"


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt for a child: where to find the function, and what to call it with."""

    event: TaskReadyEvent
    params: dict[str, Any]
    carry: dict[str, Any]
    context: dict[str, Any]
    trace: dict[str, str]
    ref: str
    module: str
    qualname: str
    is_coroutine: bool
    main: dict[str, str] | None
    """How to import the worker's main script, if the function is defined there."""
    arguments: bytes
    """Keyword arguments, pickled on their own: their classes may be found in `main` only."""
    log_limit: int
    result_limit: int
    memory_limit: int | None
    """Bytes that the attempt may map beyond what its process has mapped already."""


def job_frame(job: Job) -> bytes:
    return _framed(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))


def log_frame(stream: str, line: str) -> bytes:
    return _framed(LOG + orjson.dumps([stream, line]))


def outcome_frame(outcome: Outcome) -> bytes:
    if outcome.result_json is not None:
        return _framed(RESULT + outcome.result_json)
    return _framed(OUTCOME + orjson.dumps(asdict(outcome)))


def line_of(body: bytes) -> tuple[str, str]:
    """Raises ValueError or TypeError for what no child of ours would say."""
    stream, line = orjson.loads(body)
    return str(stream), str(line)


def outcome_of(kind: bytes, body: bytes) -> Outcome:
    """Raises ValueError, KeyError or TypeError for what no child of ours would say."""
    if kind == RESULT:
        return Outcome("completed", results.check(body, len(body)))
    if kind != OUTCOME:
        raise ValueError(f"unknown frame {kind!r}")
    fields = orjson.loads(body)
    if fields["error"] is not None:
        fields["error"] = TaskError(**{**fields["error"], "kinds": tuple(fields["error"]["kinds"])})
    if fields["until"] is not None:
        fields["until"] = datetime.fromisoformat(fields["until"])
    return Outcome(**fields)


def receive(channel: socket.socket) -> bytes | None:
    """The next job for a child; None when the worker has closed."""
    header = _exactly(channel, HEADER)
    return None if header is None else _exactly(channel, int.from_bytes(header, "big"))


async def read(reader: asyncio.StreamReader, limit: int) -> tuple[bytes, bytes] | None:
    """The next frame from a child; None when it has closed, or says what no child of ours would."""
    try:
        length = int.from_bytes(await reader.readexactly(HEADER), "big")
        if not 1 <= length <= limit:
            return None
        frame = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return frame[:1], frame[1:]


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(HEADER, "big") + body


def _exactly(channel: socket.socket, length: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < length:
        piece = channel.recv(length - len(pieces))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
