"""Listening ports of services."""

from __future__ import annotations

import os
import socket

from penstock.errors import ConfigurationError

BACKLOG = 2048


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens for the API (port 0: on any free port). From now on no other process gets the port.
    Raises ConfigurationError if the port cannot be had."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise refused(host, port, error, "PENSTOCK_API_PORT") from None
    return listener


def refused(host: str, port: int, error: OSError, setting: str) -> ConfigurationError:
    """Return the error for a port that cannot be bound."""
    return ConfigurationError(
        f"nothing can listen on port {port} of {host}: {os.strerror(error.errno or 0)}",
        hint=f"Choose a free one with {setting} or --port; 0 takes any.",
    )
