"""A real installation for tests: an embedded PostgreSQL, an executor, a worker and an API, in a thread of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.client.blocking import LoopThread
from penstock.client.local_installation import LocalInstallation
from penstock.client.sync_client import SyncClient

QUIET: dict[str, Any] = {"log_level": "error", "api_port": 0}


class TestInstallation(SyncClient):
    """A client of an installation that runs for a test, with all methods of `SyncClient`. `settings` are the
    installation's, for a `Client` of your own."""

    __test__ = False  # pytest would collect the class as tests

    def __init__(self, local: LocalInstallation, thread: LoopThread) -> None:
        super().__init__(local.settings, thread=thread)
        self.settings = local.settings


@contextmanager
def running(home: Path, modules: Sequence[str]) -> Iterator[TestInstallation]:
    """Run an installation with its data in `home` and the definitions of the modules, until the block ends. Raises
    DefinitionError if a definition is not valid."""
    thread = LoopThread()
    started = LocalInstallation.started(home, modules=modules, overrides=QUIET, apart=True)
    try:
        local = thread.wait(started.__aenter__())
        try:
            with TestInstallation(local, thread) as client:
                yield client
        finally:
            thread.wait(started.__aexit__(None, None, None))
    finally:
        thread.close()
