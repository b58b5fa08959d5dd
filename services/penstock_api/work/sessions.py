"""The sessions of workers: begun with `hello`, found by their secrets, and ended with `bye`."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
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
from penstock_api.work.definitions import Definitions
from penstock_api.work.remote_worker import RemoteWorker

log = structlog.get_logger()

SESSION_PREFIX = "psw_"
"""The prefix of every secret of a session, by which scanners of source code recognize it."""
CACHED_S = 5.0
"""Seconds for which a session is cached. After that time one that has ended is refused."""
MOST_CACHED = 10_000


def patience(settings: Settings) -> float:
    """Return the seconds from its last heartbeat after which a worker counts as lost. It survives an outage of the
    database that is not noted as a silence of all processes."""
    return settings.silence + 2 * settings.heartbeat_interval


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A worker that says hello. `language` and `sdk` are shown to people."""

    name: str
    routes: Sequence[str]
    actions: Sequence[str]
    labels: Mapping[str, str]
    slots: int
    language: str
    sdk: str


class Sessions:
    """The sessions that this gateway has seen lately. The rows of the workers are the truth."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self._settings = settings
        self._definitions = definitions
        self._cached: OrderedDict[bytes, tuple[RemoteWorker, float]] = OrderedDict()
        self._digests: dict[UUID, bytes] = {}
        """The digests of the cached sessions, by worker."""

    async def begin(self, session: Session, caller: Caller, hello: NewWorker) -> tuple[RemoteWorker, str]:
        """Register a worker. Return it with the secret of its session. Raises NotAllowed, InvalidInput."""
        _refuse_others("route", "routes", hello.routes, caller.routes)
        _refuse_others("pack", "packs", _packs(hello.actions), caller.packs)
        refs = await self._definitions.look_up_current(session, hello.actions)
        if unknown := sorted(set(hello.actions) - refs):
            raise InvalidInput(
                f"no action {', '.join(unknown)}",
                hint="Apply its definition first (`penstock apply`): in a pack, with `executor: remote`.",
            )
        identity = Identity(
            new_id(), "worker", hello.name, hello.routes, sorted(refs), hello.labels, hello.slots
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
        return RemoteWorker(identity, caller.name, caller.tenants), secret

    async def find(self, session: Session, caller: Caller, secret: str) -> RemoteWorker:
        """Return the worker of a session that this caller has begun. Raises UnknownSession, NotAllowed."""
        digest, now = _digest(secret), asyncio.get_running_loop().time()
        cached = self._cached.get(digest)
        if cached is not None and now - cached[1] < CACHED_S:
            worker = cached[0]
        else:
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

    def refresh(self, states: Mapping[UUID, str], at: float) -> None:
        """Cache sessions for CACHED_S from `at`, when the states of their workers were read. None of the workers is dead."""
        for id, state in states.items():
            digest = self._digests.get(id)
            if digest is not None:
                worker, read_at = self._cached[digest]
                worker.cordoned = state == "cordoned"
                self._cached[digest] = worker, max(read_at, at)

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
        if cached is not None:  # its row changes in its state alone
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
        hint="Say hello again. Its attempts are no longer this worker's: end them without a report.",
    )


def _is_within(tenants: frozenset[str] | None, allowed: frozenset[str] | None) -> bool:
    """Return whether a worker's tenants are still among those of its caller."""
    return allowed is None or (tenants is not None and tenants <= allowed)


def _packs(refs: Collection[str]) -> list[str]:
    return sorted({ref.partition(".")[0] for ref in refs})


def _refuse_others(kind: str, kinds: str, named: Sequence[str], allowed: frozenset[str] | None) -> None:
    """Raise NotAllowed if `named` has a name that the token is not for."""
    excluded = [] if allowed is None else sorted(set(named) - allowed)
    if excluded:
        raise NotAllowed(
            f"this token is not for the {kind} {', '.join(excluded)}",
            hint=f"It is for the {kinds} {', '.join(sorted(allowed or ()))}.",
        )


def _id_in(secret: str) -> UUID:
    """Return the id of the worker in the secret of a session. Raises UnknownSession."""
    try:
        return UUID(secret.removeprefix(SESSION_PREFIX)[:32])
    except ValueError:
        raise _ended() from None


def _digest(secret: str) -> bytes:
    """Return the plain SHA-256 of a secret of 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
