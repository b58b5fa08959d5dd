"""A worker as a gateway sees it. Each replica can build the object from the worker's row."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from penstock.service.heartbeat import Identity
from penstock.store.executions.remote_attempts import RemoteClaimant
from penstock.store.outbox.queues import WORK
from penstock_api.work.definitions import Ability, Definitions

ACTOR = "gateway:"
"""The prefix of a worker's name in the history. Workers with a session with the database have `worker:`."""


@dataclass(slots=True)
class RemoteWorker:
    """A live worker. `token` is the name of the caller that began its session. The worker gets executions of `tenants`;
    None means all. `parkings` has, by queue, the number of the last parking before this worker was last offered parked
    work."""

    identity: Identity
    token: str
    tenants: frozenset[str] | None
    cordoned: bool = False
    parkings: dict[str, int] = field(default_factory=dict, repr=False)
    _ability: tuple[int, Ability] | None = field(default=None, repr=False)

    @property
    def id(self) -> UUID:
        return self.identity.id

    @property
    def actor(self) -> str:
        """Return the name of the worker in the history."""
        return f"{ACTOR}{self.identity.name}"

    @property
    def queues(self) -> list[str]:
        return [WORK + route for route in self.identity.routes]

    def ability(self, definitions: Definitions) -> Ability:
        """Return the versions that the worker can run."""
        if self._ability is None or self._ability[0] != definitions.count:
            self._ability = definitions.count, definitions.ability(self.identity)
        return self._ability[1]

    def claimant(self, claim: UUID, definitions: Definitions) -> RemoteClaimant:
        """Return the claimant of work for this worker under a claim id."""
        ability = self.ability(definitions)
        tenants = None if self.tenants is None else sorted(self.tenants)
        return RemoteClaimant(self.actor, self.id, claim, ability.runnable, ability.lacking, tenants)
