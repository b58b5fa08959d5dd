"""Taking workers out of service, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

from penstock.errors import NotFound
from penstock.store.processes import processes
from penstock.store.processes.processes import Process
from penstock.store.session.database import Session

SHOWN = "`penstock workers list` shows them."
OWN_LIBRARY = re.compile(r"(?:penstock|penstock-sdk)/(\d+)\.(\d+)\.(\d+)")
"""The library of a worker, if it is released with Penstock and has its version."""


def is_outdated(sdk: str | None) -> bool:
    """Return whether a worker has a library of Penstock that is older than this version. Of other libraries nothing is known."""
    theirs = OWN_LIBRARY.match(sdk or "")
    return theirs is not None and tuple(map(int, theirs.groups())) < _own_version()


@cache
def _own_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version("penstock"))[:3]))


async def listed(session: Session, *, fresh: bool = False) -> list[Process]:
    """Return the executors and workers. With `fresh`, leave out dead processes, and processes with an overdue
    heartbeat."""
    rows = await processes.all(session)
    return [process for process in rows if not fresh or process.is_online(session.settings.stale_threshold)]


async def named(session: Session, name: str) -> list[Process]:
    """Return the workers with this name. Raises NotFound if there are none."""
    workers = [process for process in await processes.all(session, "worker") if process.name == name]
    if not workers:
        raise NotFound(f"no worker {name!r}", hint=SHOWN)
    return workers


async def cordon(session: Session, names: Sequence[str]) -> list[str]:
    """Let these workers take no new work; running work goes on. Return the names of those that were active. Raises
    NotFound if none was."""
    done = await processes.cordon(session, names)
    if not done:
        raise NotFound("no active worker of that name", hint=SHOWN)
    return done


async def uncordon(session: Session, names: Sequence[str]) -> list[str]:
    """Let these workers take work again. Return the names of those that were cordoned. Raises NotFound if none was."""
    done = await processes.uncordon(session, names)
    if not done:
        raise NotFound("no cordoned worker of that name", hint=SHOWN)
    return done
