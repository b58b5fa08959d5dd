"""The check that a client may be called: it is open, and belongs to this process."""

from __future__ import annotations

import os

from penstock.errors import ClientUnusable


def check_usable(process: int, *, closed: bool) -> None:
    """Check a client that the process of this id created. Raises ClientUnusable if it is `closed`, or if this process was
    forked from that one: connections and threads do not survive a fork."""
    if os.getpid() != process:
        raise ClientUnusable(
            "this client belongs to the process from which this one was forked",
            hint="Create a client in each process, after the fork.",
        )
    if closed:
        raise ClientUnusable(
            "this client is closed", hint="Create another client, or close it after its last call."
        )
