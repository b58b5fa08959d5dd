"""The sessions of workers: begun with `hello`, found by their secrets, and ended with `bye`."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson
import structlog

from penstock.errors import InvalidInput, NotAllowed, UnknownSession
from penstock.language.terms.ids import new_id
from penstock.operate.access import Caller
from penstock.service.heartbeat import Identity
from penstock.settings import Settings
from penstock.store.processes import heartbeats, remote_workers
from penstock.store.session.database import Session
from penstock_api.session_pool import SessionPool
from penstock_api.work.definitions import Definitions, OfferedAction, SchemaDifference
from penstock_api.work.remote_worker import RemoteWorker

log = structlog.get_logger()

SESSION_PREFIX = "psw_"
"""The prefix of every secret of a session, by which scanners of source code recognize it."""
CACHED_S = 5.0
"""Seconds for which a session is cached. A session that has ended is refused after that time."""
MOST_CACHED = 10_000
MOST_DIFFERENCES = 20
"""The maximum number of schema differences in the answer to a hello."""


def patience(settings: Settings) -> float:
    """Return the seconds from its last heartbeat after which a worker counts as lost. A worker with that patience
    survives an outage of the database that is not noted as a silence of all processes."""
    return settings.silence + 2 * settings.heartbeat_interval


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A worker that says hello. `language` and `sdk` are shown to people."""

    name: str
    routes: Sequence[str]
    actions: Sequence[OfferedAction]
    labels: Mapping[str, str]
    slots: int
    language: str
    sdk: str


@dataclass(frozen=True, slots=True)
class BegunSession:
    """A new session: its worker, its secret, and the differences between the worker's schemas and the definitions."""

    worker: RemoteWorker
    secret: str
    differences: Sequence[SchemaDifference]


class Sessions:
    """The sessions that this gateway has cached. The rows of the workers are the truth."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self._settings = settings
        self._definitions = definitions
        self._cached: OrderedDict[bytes, tuple[RemoteWorker, float]] = OrderedDict()
        self._digests: dict[UUID, bytes] = {}
        """The digests of the cached sessions, by worker."""

    async def begin(self, session: Session, caller: Caller, hello: NewWorker) -> BegunSession:
        """Register a worker, and begin its session. Raises NotAllowed for a route or a pack that the caller's token
        does not cover, and InvalidInput for an unknown action."""
        offered = [action.ref for action in hello.actions]
        _refuse_others("route", "routes", hello.routes, caller.routes)
        _refuse_others("pack", "packs", _packs(offered), caller.packs)
        current = await self._definitions.look_up_current(session, offered)
        if unknown := sorted(set(offered) - current.keys()):
            raise InvalidInput(
                f"no action {', '.join(unknown)}",
                hint="Apply the definition of the action first (`penstock apply`): in a pack, with `executor: remote`.",
            )
        # A large schema takes a while to check, and other calls go on meanwhile.
        differences = await asyncio.to_thread(self._differences, hello.actions, current)
        identity = Identity(
            new_id(), "worker", hello.name, hello.routes, sorted(current), hello.labels, hello.slots
        )
        secret = f"{SESSION_PREFIX}{identity.id.hex}{secrets.token_urlsafe(32)}"
        await remote_workers.register(
            session,
            identity,
            language=hello.language,
            sdk=hello.sdk,
            digest=_digest(secret),
            token=caller.name,
            tenants=None if caller.tenants is None else sorted(caller.tenants),
            patience=patience(self._settings),
        )
        log.info(
            "gateway.hello", worker=hello.name, worker_id=str(identity.id), sdk=hello.sdk, by=caller.name
        )
        if differences:
            log.warning(
                "gateway.schemas_differ",
                worker=hello.name,
                worker_id=str(identity.id),
                differences=[f"{d.action}, {d.part}: {d.text}" for d in differences],
                hint="Apply the definitions that this worker was written for, or update the worker.",
            )
        return BegunSession(RemoteWorker(identity, caller.name, caller.tenants), secret, differences)

    def _differences(
        self, actions: Sequence[OfferedAction], current: Mapping[str, int]
    ) -> list[SchemaDifference]:
        """Return the first differences between the schemas of a worker and those of the current definitions."""
        differences = [
            difference
            for action in actions
            for difference in self._definitions.differences(current[action.ref], action)
        ]
        return differences[:MOST_DIFFERENCES]

    async def find(self, pool: SessionPool, caller: Caller, secret: str) -> RemoteWorker:
        """Return the worker of a session that this caller has begun. Raises UnknownSession if the session has ended or
        belongs to another caller. Raises NotAllowed if the token no longer covers the worker's routes and packs."""
        digest, now = _digest(secret), asyncio.get_running_loop().time()
        cached = self._cached.get(digest)
        if cached is not None and now - cached[1] < CACHED_S:
            worker = cached[0]
        else:
            async with pool.session() as session:
                worker = await self._read(session, secret, None if cached is None else cached[0])
            self._cached[digest] = worker, now
            self._digests[worker.id] = digest
            while len(self._cached) > MOST_CACHED:
                _, (oldest, _) = self._cached.popitem(last=False)
                del self._digests[oldest.id]
        if worker.token != caller.name or not _is_within(worker.tenants, caller.tenants):
            raise _ended()
        _refuse_others("route", "routes", worker.identity.routes, caller.routes)
        _refuse_others("pack", "packs", _packs(worker.identity.actions), caller.packs)
        return worker

    def refresh(self, workers: Iterable[RemoteWorker], cordoned: Collection[UUID], at: float) -> None:
        """Cache sessions for CACHED_S from `at`, when the states of their workers were read. None of the workers is dead."""
        for worker in workers:
            digest = self._digests.get(worker.id)
            if digest is not None:
                cached, read_at = self._cached[digest]
                cached.cordoned = worker.id in cordoned
                self._cached[digest] = cached, max(read_at, at)

    def forget(self, workers: Iterable[UUID]) -> None:
        """Read the sessions of these workers again before their next calls."""
        for id in workers:
            if (digest := self._digests.get(id)) is not None:
                self._forget(digest)

    async def end(self, session: Session, worker: RemoteWorker, secret: str) -> None:
        """Delete the registration of a worker. Attempts that it still holds are taken back soon."""
        self._forget(_digest(secret))
        await heartbeats.leave(session, worker.id)
        log.info("gateway.bye", worker=worker.identity.name, worker_id=str(worker.id))

    def _forget(self, digest: bytes) -> None:
        cached = self._cached.pop(digest, None)
        if cached is not None:
            del self._digests[cached[0].id]

    async def _read(self, session: Session, secret: str, cached: RemoteWorker | None) -> RemoteWorker:
        digest = _digest(secret)
        row = await remote_workers.find(session, _id_in(secret), digest)
        if row is None:
            self._forget(digest)
            raise _ended()
        if cached is not None:  # of the row of a session, only the state changes
            cached.cordoned = row.state == "cordoned"
            return cached
        await self._definitions.look_up_current(session, row.actions)
        identity = Identity(
            row.id, "worker", row.name, row.routes, row.actions, orjson.loads(row.labels), row.concurrency
        )
        tenants = None if row.tenants is None else frozenset(row.tenants)
        return RemoteWorker(identity, row.token, tenants, row.state == "cordoned")


def _ended() -> UnknownSession:
    return UnknownSession(
        "no worker has a session with this secret: it is unknown, or has ended",
        hint="Send another hello. The worker no longer owns its attempts: end them without a report.",
    )


def _is_within(tenants: frozenset[str] | None, allowed: frozenset[str] | None) -> bool:
    """Return whether a worker's tenants are still among those of its caller."""
    return allowed is None or (tenants is not None and tenants <= allowed)


def _packs(refs: Collection[str]) -> list[str]:
    return sorted({ref.partition(".")[0] for ref in refs})


def _refuse_others(kind: str, kinds: str, named: Sequence[str], allowed: frozenset[str] | None) -> None:
    """Raise NotAllowed if `named` has a name that the token does not cover."""
    excluded = [] if allowed is None else sorted(set(named) - allowed)
    if excluded:
        raise NotAllowed(
            f"this token may not use the {kind} {', '.join(excluded)}",
            hint=f"The token is for the {kinds} {', '.join(sorted(allowed or ()))}.",
        )


def _id_in(secret: str) -> UUID:
    """Return the id of the worker in the secret of a session. Raises UnknownSession if the secret has none."""
    try:
        return UUID(secret.removeprefix(SESSION_PREFIX)[:32])
    except ValueError:
        raise _ended() from None


def _digest(secret: str) -> bytes:
    """Return the plain SHA-256 of a secret of 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
