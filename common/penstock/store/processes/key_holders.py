"""The master keys that live processes hold, by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.store.session.database import Session
from penstock.store.session.master_keys import SERVICE
from penstock.store.session.rows import rows_as

SHOWN = 5
"""The maximum number of processes that a message names."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A live process, and the ids of its master keys, the newest first. `master_keys` is None for a process of an older
    version, which does not record them."""

    kind: str
    name: str
    master_keys: list[str] | None

    @property
    def title(self) -> str:
        """Return the kind and the name of the process, and a note if its keys are unknown."""
        note = " (an older version, keys unknown)" if self.master_keys is None else ""
        return f"{self.kind} {self.name}{note}"

    def lacks(self, held_key: str) -> bool:
        """Return whether the process does not hold this key, or may not. A process without any master key reads no
        secret, so it lacks none."""
        return self.master_keys is None or (bool(self.master_keys) and held_key not in self.master_keys)

    def cannot_open(self, row_key: str) -> bool:
        """Return whether the process cannot open a row under this key. A key service has keys of unknown ids, so a
        process that uses one is taken to open every row."""
        keys = self.master_keys or []
        return bool(keys) and row_key not in keys and not any(key.startswith(SERVICE) for key in keys)


# A worker that calls a gateway (with a `session`) holds no key: the gateway opens its secrets.
LIVE = """
select kind, name, master_keys from process
where state <> 'dead' and session is null and beat_at > clock_timestamp() - make_interval(secs => $1)
order by kind, name
"""


async def live(session: Session, stale: float) -> list[KeyHolder]:
    """Return the processes with a heartbeat within `stale` seconds, except workers that call a gateway."""
    return rows_as(KeyHolder, await session.fetch(LIVE, stale))


def titles(holders: Sequence[KeyHolder]) -> str:
    """Return the titles of the first holders, and the number of the other ones."""
    hidden_count = len(holders) - SHOWN
    suffix = f" and {hidden_count} more" if hidden_count > 0 else ""
    return ", ".join(holder.title for holder in holders[:SHOWN]) + suffix
