"""The operations on workers, for the client and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.checked_arguments import checks_arguments
from penstock.operate import workers
from penstock.store.processes.processes import Process
from penstock.store.session.database import Session


@checks_arguments
class Workers:
    """The workers and executors of an installation, each as a `penstock.store.processes.processes.Process`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def all(self, *, fresh: bool = False) -> list[Process]:
        """Return the executors and workers. With `fresh`, leave out dead processes, and processes with an overdue
        heartbeat."""
        return await workers.listed(self._session, fresh=fresh)

    async def named(self, name: str) -> list[Process]:
        """Return the workers of this name, dead ones included. Raises NotFound if no worker has it."""
        return await workers.named(self._session, name)

    async def cordon(self, names: Sequence[str], cordoned: bool) -> list[str]:
        """Cordon workers, so that they take no new work, or undo it. Return their names. Raises NotFound if none of
        these workers is active or, with `cordoned=False`, cordoned."""
        change = workers.cordon if cordoned else workers.uncordon
        return await change(self._session, names)
