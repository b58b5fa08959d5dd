"""The protocol between a worker and its child processes: length-prefixed frames on a socket.

Jobs are pickled, because arguments are Python objects. Answers are JSON only: a child that was taken over must not
make the worker unpickle arbitrary data.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
from pydantic_core import PydanticSerializationError, to_jsonable_python

from penstock.errors import InvalidInput
from penstock.run import result_encoding
from penstock.run.costs import cost_amount
from penstock.run.outgoing import Request, request_document, request_of
from penstock.run.task_executors import Outcome, TaskError, TaskReadyEvent

HEADER = 4
"""The bytes of the length, big-endian. Then one byte has the kind of the frame:"""
LOG, RESULT, OUTCOME, REQUEST, ANSWER = b"L", b"R", b"O", b"Q", b"A"
COSTS = b"C"
"""The kind of a frame with the costs of the attempt as JSON, a newline, and the kind and body of its outcome."""


BATCH = b"B"
"""The kind of a frame with the outcomes of the items of a batch: each is a frame of its own."""


@dataclass(frozen=True, slots=True)
class JobItem:
    """An item of a job that is a batch."""

    event: TaskReadyEvent
    params: dict[str, Any]
    carry: dict[str, Any]
    context: dict[str, Any]
    log_limit: int


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt as a job for a child: the place of the function, and its arguments. Or a batch, with its `items`."""

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
    """The way to import the worker's main script, if the function is defined there."""
    arguments: bytes
    """The pickled keyword arguments, or the list of the items' inputs. The inputs are pickled separately, since their
    classes may be in `main` only."""
    log_limit: int
    result_limit: int
    memory_limit: int | None
    """The bytes that the attempt may map beyond those that its process has mapped already."""
    items: list[JobItem] | None = None


def job_frame(job: Job) -> bytes:
    return _framed(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))


def log_frame(stream: str, text: str, item: int | None = None) -> bytes:
    """Return the frame of a text of the log: that of the item at this place in a batch, or else that of the job. A text
    without a newline is a piece of an unfinished line."""
    return _framed(LOG + orjson.dumps([stream, text, item]))


def outcome_frame(outcome: Outcome) -> bytes:
    if outcome.items is not None:
        return _framed(BATCH + b"".join(map(outcome_frame, outcome.items)))
    if outcome.costs is not None:
        costs = {unit: str(amount) for unit, amount in outcome.costs.items()}
        frame = outcome_frame(replace(outcome, costs=None))
        return _framed(COSTS + orjson.dumps(costs) + b"\n" + frame[HEADER:])
    if outcome.result_json is not None:
        return _framed(RESULT + outcome.result_json)
    return _framed(OUTCOME + orjson.dumps(asdict(outcome)))


def request_frame(number: int, request: Request, item: int | None = None) -> bytes:
    """Return the frame of a request of the child's code: that of the item at this place in a batch, or else that of the job.
    `number` tells its answer apart from others. Raises InvalidInput for a value that is not JSON."""
    try:
        document = to_jsonable_python(request_document(request))
        return _framed(REQUEST + orjson.dumps([number, document, item]))
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"a request has a value that JSON cannot represent: {error}",
            hint="Pass only texts, numbers, true, false, null, lists and mappings.",
        ) from None


def numbered_request(body: bytes) -> tuple[int, Request, int | None]:
    """Return the number and the request in a frame, and the place of its item. Raises ValueError, TypeError or InvalidInput
    for an invalid frame."""
    number, document, item = orjson.loads(body)
    return int(number), request_of(document), None if item is None else int(item)


def answer_frame(number: int, document: Mapping[str, Any]) -> bytes:
    return _framed(ANSWER + orjson.dumps([number, document]))


def is_answer(frame: bytes) -> bool:
    """Return True for the answer to a request, and False for a job, which is a pickle."""
    return frame[:1] == ANSWER


def answer_in(frame: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return the number and the document of an answer. None: the frame is a job."""
    if not is_answer(frame):
        return None
    number, document = orjson.loads(frame[1:])
    return number, document


def text_of(body: bytes) -> tuple[str, str, int | None]:
    """Return the stream and the text of a frame, and the place of its item. Raises ValueError or TypeError for an invalid
    frame."""
    stream, text, item = orjson.loads(body)
    return str(stream), str(text), None if item is None else int(item)


def outcome_of(kind: bytes, body: bytes) -> Outcome:
    """Return the outcome in a frame. Raises ValueError, KeyError or TypeError for an invalid frame."""
    if kind == RESULT:
        return Outcome("completed", result_encoding.check(body, len(body)))
    if kind == COSTS:
        costs, _, answer = body.partition(b"\n")
        amounts = {str(unit): cost_amount(Decimal(amount)) for unit, amount in orjson.loads(costs).items()}
        return replace(outcome_of(answer[:1], answer[1:]), costs=amounts)
    if kind == BATCH:
        return Outcome("batch", items=[outcome_of(frame[:1], frame[1:]) for frame in _frames_in(body)])
    if kind != OUTCOME:
        raise ValueError(f"unknown frame {kind!r}")
    fields = orjson.loads(body)
    if fields["kind"] == "batch":
        raise ValueError("the outcomes of a batch have a frame of their own")
    if fields["error"] is not None:
        fields["error"] = TaskError(**{**fields["error"], "kinds": tuple(fields["error"]["kinds"])})
    if fields["until"] is not None:
        fields["until"] = datetime.fromisoformat(fields["until"])
    return Outcome(**fields)


def receive(channel: socket.socket) -> bytes | None:
    """Return the next job for a child, or None when the worker has closed the socket."""
    header = _exactly(channel, HEADER)
    return None if header is None else _exactly(channel, int.from_bytes(header, "big"))


async def read(reader: asyncio.StreamReader, limit: int) -> tuple[bytes, bytes] | None:
    """Return the kind and the body of the next frame from a child. Return None when it has closed the socket, or sends
    an invalid frame."""
    try:
        length = int.from_bytes(await reader.readexactly(HEADER), "big")
        if not 1 <= length <= limit:
            return None
        frame = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return frame[:1], frame[1:]


def _frames_in(body: bytes) -> Iterator[bytes]:
    """Yield the frames that follow each other in the body of another. Raises ValueError if one is cut off."""
    start = 0
    while start < len(body):
        end = start + HEADER + int.from_bytes(body[start : start + HEADER], "big")
        if end > len(body) or end <= start + HEADER:
            raise ValueError("a frame in a batch is cut off")
        yield body[start + HEADER : end]
        start = end


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
