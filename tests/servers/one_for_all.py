"""One RabbitMQ for all processes that share the tests of a run: a start takes as much of the machine as a hundred vhosts."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers import choose, management
from tests.servers.rabbitmq import GivenRabbitMQ, RabbitMQ

ADDRESS = "rabbitmq.address"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[RabbitMQ]:
    """Start RabbitMQ for its first user, and end it when no other process uses it. `folder` is the same in all of them."""
    with (folder / "rabbitmq.starting").open("a") as starting, (folder / "rabbitmq.used").open("a") as used:
        # Before a look for it: the process that ends it has this lock alone, and leaves nothing behind.
        fcntl.flock(used, fcntl.LOCK_SH)
        fcntl.flock(starting, fcntl.LOCK_EX)
        if (there := found(folder)) is not None:
            fcntl.flock(starting, fcntl.LOCK_UN)
            yield there
            fcntl.flock(used, fcntl.LOCK_UN)  # a fork of this process has it open, too
            return
        server = choose.shared_rabbitmq()
        try:
            tell(folder, server)
            fcntl.flock(starting, fcntl.LOCK_UN)
            yield server
            fcntl.flock(used, fcntl.LOCK_EX)
            (folder / ADDRESS).unlink(missing_ok=True)
        finally:
            server.close()
        fcntl.flock(used, fcntl.LOCK_UN)


def tell(folder: Path, server: RabbitMQ) -> None:
    """The others find this one."""
    (folder / ADDRESS).write_text(json.dumps([server.url(), server.api_port]))


def found(folder: Path) -> RabbitMQ | None:
    """Nothing where none was started, or the process that did was killed: its server is gone."""
    if not (folder / ADDRESS).exists():
        return None
    url, api_port = json.loads((folder / ADDRESS).read_text())
    address = urlsplit(url)
    if not management.greets(address.hostname or "", address.port or 5672):
        return None
    return GivenRabbitMQ(url, api_port)
