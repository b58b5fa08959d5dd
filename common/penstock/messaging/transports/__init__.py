"""The transports, which carry messages between the services: two ways, one small interface, one contract test suite.

A message is a hint: it carries ids, and PostgreSQL holds the truth. So a transport may deliver twice, late or out of order,
but a message that `publish` confirmed is delivered at least once, or dead-lettered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

OUR_HEADERS = "x-penstock-"
"""Headers that begin so are the transport's own. It takes those away that came with a message: anybody may have written
them, and what they name is inside."""

REASON_HEADER = "x-penstock-reason"
"""On a delivery of the queue `dead`: why it is there, such as `delivery_limit`, or what a handler said."""

QUEUE_HEADER = "x-penstock-queue"
"""On a delivery of the queue `dead`: the logical queue that it comes from."""

UNREADABLE = "x-penstock-unreadable"
"""On a delivery whose metadata could not be read: why. Only its body and queue are to be relied on."""


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
    """A message that arrived. `attempts` counts earlier deliveries of it (0 the first time). `user_id`: the user of the broker
    that published it, where the broker has checked that."""

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
    """A consumer of one queue. It survives lost connections: after one, unsettled deliveries come again,
    and settling one from before is a no-op."""

    queue: str

    async def receive(self, limit: int) -> list[Delivery]:
        """Wait for a delivery, then give what has arrived, at most `limit`. Never waits for more.
        An empty list says that the subscription is closed."""

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Settle: each of these was handled and its transaction committed. Only exactly these."""

    async def dead_letter(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Settle: none of these can ever be handled. Each goes to the dead letters with `reason`.
        Raises ConnectionFailed if some could not be put there: those stay unsettled, and calling again
        with the same deliveries goes on with them."""

    async def resize(self, prefetch: int) -> None:
        """Hold at most `prefetch` unsettled deliveries from now on. 0 stops taking new ones: once it returns
        no more arrive, and `receive` gives what had arrived before, which can be settled as ever."""

    async def close(self) -> None:
        """Stop. What is unsettled goes back to the queue at once."""


class Transport(Protocol):
    """Carries messages. `open` first; `close` at the end."""

    name: str

    outbox_is_queue: bool
    """Whether what is staged stays in the outbox until a consumer has settled it. Otherwise the publisher deletes it
    there, once `publish` has said that it is safe."""

    async def open(self) -> None:
        """Connect and declare (or check) the topology. Raises ConnectionFailed after the deadline."""

    async def publish(self, messages: Sequence[Message]) -> list[bool]:
        """Publish all, wait for the broker, say for each (in order) whether it is safely in a queue.
        False: returned as unroutable, refused, or not confirmed in time; publish it again later."""

    def wake(self, names: Collection[str]) -> None:
        """Announce rows in the outbox for these queues. Where the outbox is the queue, their consumers look at once."""

    async def subscribe(self, queue: str, prefetch: int) -> Subscription:
        """Consume `queue`, declaring it if need be, with at most `prefetch` unsettled deliveries."""

    async def declare(self, queue: str) -> None:
        """Make sure that `queue` exists."""

    async def depth(self, queue: str) -> int:
        """Return the number of messages that wait in `queue`, without delivered ones."""

    async def broadcast(self, body: bytes) -> None:
        """Tell every process that listens now; best effort, at most once."""

    async def listen(self) -> Subscription:
        """Subscribe to the broadcasts from now on. Their deliveries need no ack."""

    @property
    def healthy(self) -> bool:
        """False while a connection is down, or a queue has messages that do not reach its consumer."""

    async def close(self) -> None: ...
