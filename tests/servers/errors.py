"""The errors between a test run and its servers."""

from __future__ import annotations


class NoServer(RuntimeError):
    """A server that the tests need is not to be had here. The message ends with the line to type."""


class CannotHere(RuntimeError):
    """Asked to kill, stop or wipe a server that the tests were only given the address of."""
