"""The protection of a connection from messages with properties that cannot be decoded.

Any AMQP client may publish an event, for instance with a timestamp in nanoseconds or a text that is not UTF-8. The
AMQP library then closes the whole connection, and does so again whenever the message is redelivered, for ever. So
after the first time, new connections read through `SparingReader`, which blanks parts that cannot be decoded. The
message arrives with its body and the content type `UNDECODABLE`, and is dead-lettered like any other bad input.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import aio_pika
import pamqp.frame
from aio_pika.abc import TimeoutType
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from aiormq.exceptions import InvalidFrameError
from yarl import URL

UNDECODABLE = "?"
"""The content type of a message with properties that could not be decoded. The content type is one byte long, so that
it always fits."""

METHOD, HEADER = 1, 2
DELIVER = bytes((0, 60, 0, 60))


def is_undecodable(error: BaseException | None) -> bool:
    return isinstance(error, (InvalidFrameError, OverflowError)) and "OpenOk" not in str(error.args)


class SparingConnection(aio_pika.Connection):
    """A connection that reads through SparingReader, which decodes each frame twice."""

    async def connect(self, timeout: TimeoutType = None) -> None:
        tls = self.url.scheme == "amqps"
        self.kwargs["transport_factory"] = _Factory(TLSTransportFactory() if tls else TCPTransportFactory())
        await super().connect(timeout)


class _Factory(TransportFactory):
    def __init__(self, plain: TransportFactory) -> None:
        self._plain = plain

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self._plain.create(url, **kwargs)
        return cast(asyncio.StreamReader, SparingReader(reader)), writer


class SparingReader:
    """A reader that passes frames on and blanks undecodable parts. A frame is one byte of type, six of channel and
    length, then the payload and an end byte."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._head = b""

    def at_eof(self) -> bool:
        return self._reader.at_eof()

    async def read(self, n: int = -1) -> bytes:
        return await self._reader.read(n)

    async def readexactly(self, n: int) -> bytes:
        data = await self._reader.readexactly(n)
        if len(self._head) < 7:
            self._head += data
            return data
        head, self._head = self._head, b""
        try:
            pamqp.frame.unmarshal(head + data)
        except Exception:  # a decoder can raise anything
            return spare(head[0], data)
        return data


def spare(kind: int, payload: bytes) -> bytes:
    """Return the frame's payload with the undecodable parts blanked, in the same length."""
    if kind == HEADER:
        # Keep the class, the weight and the body size (12 bytes), and replace the properties by a content type.
        blank = b"\x80\x00" + bytes([len(UNDECODABLE)]) + UNDECODABLE.encode()
        return payload[:12] + blank + payload[12 + len(blank) :]
    if kind == METHOD and payload[:4] == DELIVER:
        # The exchange follows the consumer tag, the delivery tag and a flag.
        exchange = 4 + 1 + payload[4] + 8 + 1
        key = exchange + 1 + payload[exchange]
        end = key + 1 + payload[key]
        clean = bytes(byte if byte < 0x80 else 0x3F for byte in payload[key + 1 : end])
        return payload[: key + 1] + clean + payload[end:]
    return payload
