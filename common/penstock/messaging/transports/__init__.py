"""The transports, which carry messages between the services: two implementations, one small interface, one contract
test suite. A message is a hint: it carries ids, and PostgreSQL holds the truth. So a transport may deliver twice,
late or out of order. But a message that `publish` confirmed is delivered at least once, or dead-lettered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

OUR_HEADERS = "x-penstock-"
"""The prefix of the transport's own headers. A transport removes them from arriving messages: any client may have set
them, and code inside trusts them."""

REASON_HEADER = "x-penstock-reason"
"""A header of deliveries of the queue `dead`: the reason, such as `delivery_limit`, or the error of a handler."""

QUEUE_HEADER = "x-penstock-queue"
"""A header of deliveries of the queue `dead`: the logical queue from which the message comes."""

UNREADABLE = "x-penstock-unreadable"
"""A header with the reason why a delivery's metadata could not be decoded. Only its body and queue are reliable."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish. `queue` is the logical name (`execution.requested`, `work.default`)."""

    queue: str
    body: bytes
    id: str
    type: str
    outbox_id: int | None = None
    correlation_id: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Delivery:
    """A message that arrived. `attempts` counts its earlier deliveries (0 the first time). `user_id` is the broker's
    user that published it, if the broker has checked that."""

    queue: str
    body: bytes
    tag: Any
    id: str | None = None
    type: str | None = None
    app_id: str | None = None
    user_id: str | None = None
    content_type: str | None = None
    routing_key: str | None = None
    attempts: int = 0
    headers: Mapping[str, Any] = field(default_factory=dict)


class Subscription(Protocol):
    """A consumer of one queue. A subscription survives lost connections: unsettled deliveries come again then, and
    settling an earlier delivery is a no-op."""

    queue: str

    async def receive(self, limit: int) -> list[Delivery]:
        """Wait for a delivery, then return those that have arrived, at most `limit`. An empty list says that the
        subscription is closed."""

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Settle exactly these deliveries: each was handled, and its transaction is committed."""

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Settle these deliveries as dead letters with `reason`: none of them can ever be handled. Raises
        ConnectionFailed if some could not be dead-lettered. Those stay unsettled, and a call with the same deliveries
        continues with them."""

    async def resize(self, prefetch: int) -> None:
        """Hold at most `prefetch` unsettled deliveries from now on. With 0 no more arrive after this returns;
        `receive` still returns those that had arrived, which can be settled."""

    async def close(self) -> None:
        """Stop. Unsettled deliveries return to the queue at once."""


class Transport(Protocol):
    """A carrier of messages. Call `open` first, and `close` at the end."""

    name: str

    outbox_is_queue: bool
    """True if staged messages stay in the outbox until a consumer has settled them. Otherwise the publisher deletes
    them there, once `publish` has confirmed them."""

    async def open(self) -> None:
        """Connect and declare (or check) the topology. Raises ConnectionFailed after the deadline."""

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        """Publish all messages, wait for the broker, and return for each, in order, whether it is safely in a queue.
        False: it was returned as unroutable, refused, or not confirmed in time; publish it again later."""

    def wake(self, names: Collection[str]) -> None:
        """Announce rows in the outbox for these queues. If the outbox is the queue, their consumers read them at
        once."""

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        """Consume `queue`, declaring it if necessary, with at most `prefetch` unsettled deliveries."""

    async def declare(self, queue: str) -> None:
        """Create `queue` unless it exists."""

    async def depth(self, queue: str) -> int:
        """Return the number of messages that wait in `queue`, without delivered ones."""

    async def broadcast(self, body: bytes) -> None:
        """Send a body to every process that listens now; best effort, at most once."""

    async def listen(self) -> Subscription:
        """Subscribe to broadcasts from now on. Their deliveries need no ack."""

    @property
    def healthy(self) -> bool:
        """Return False while a connection is down, or messages of a queue do not reach its consumer."""

    async def close(self) -> None: ...
