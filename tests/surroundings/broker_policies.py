"""The policies and limits that an administrator of RabbitMQ may set on Penstock's vhost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Policy = Mapping[str, Any]

WORK = r"^penstock\.work\."
OURS = r"^penstock\.(work|execution|workflow|event)\."

POLICIES: dict[str, tuple[str, Policy]] = {
    "work expires": (WORK, {"message-ttl": 30}),
    "everything expires": (OURS, {"message-ttl": 60}),
    "work drops its oldest": (WORK, {"max-length": 2, "overflow": "drop-head"}),
    "everything drops its oldest": (OURS, {"max-length": 2, "overflow": "drop-head"}),
    "work refuses more": (WORK, {"max-length": 2, "overflow": "reject-publish"}),
    "everything refuses more": (OURS, {"max-length": 2, "overflow": "reject-publish"}),
    "few bytes, oldest dropped": (OURS, {"max-length-bytes": 200, "overflow": "drop-head"}),
    "few bytes, more refused": (OURS, {"max-length-bytes": 200, "overflow": "reject-publish"}),
    "few deliveries": (OURS, {"delivery-limit": 1}),
    "unused queues go": (OURS, {"expires": 300}),
    "another way of dying": (
        OURS,
        {"dead-letter-exchange": "amq.fanout", "dead-letter-strategy": "at-most-once"},
    ),
}
"""A pattern of queues and its definition, by a name."""
COMBINED = ("everything drops its oldest", "everything expires", "work refuses more", "unused queues go")
"""The policies of `make test`."""
