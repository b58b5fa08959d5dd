"""The codec of a process: it seals the values of encrypted tenants before they are written, and opens them after they
are read. A process with a master key has a codec. The codec reads the tenants' data keys from the table `tenant_key`
before it first writes a value. The codec reads the keys again for a value under an unknown key, when the database
refuses a plain value, and after some time. A process without a master key reads sealed values as they are. The database
refuses the plain values that it would write for an encrypted tenant."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.session.master_keys import MasterKeys, master_keys
from penstock.store.session.opened_rows import is_sealed, opened_row
from penstock.store.session.sealed_arguments import Place, places_of, sealed_argument, tenant_of_headers
from penstock.store.session.sealed_values import DataKey, Number, Unknown, digest_key, opened, sealed_bytes

Fetch = Callable[..., Awaitable[list[Any]]]
"""A callable that runs a statement with its arguments unchanged."""

FRESH_S = 30.0
"""Seconds for which the read keys are used for sealing without a check, if any tenant is encrypted."""
PATHS_FRESH_S = 1.0
"""Seconds for which the parameters by which limits group are used without a check, if any tenant is encrypted. The
database groups by their digests, so an execution that is started without the digest comes under the limit of those
without the parameter."""
SETTLED_S = 60.0
"""Seconds after which no statement of this process is under way that was written with older keys."""
REMEMBERED_EXECUTIONS = 20_000
"""The maximum number of executions with a cached tenant and action, the most recent ones."""

LIMIT_PATHS = """
select path from (select distinct unnest(by || fair) as path from concurrency_limit) p where not starts_with(path, 'labels.')
"""
KEYS = "select tenant, number, data_key, master_key, seals from tenant_key order by tenant, number"
NAMESPACES = (
    "select id, split_part(name, '::', 1) as tenant, action from namespace where id = any ($1::integer[])"
)
EXECUTIONS = """
select e.id, split_part(n.name, '::', 1) as tenant, n.action from execution e join namespace n on n.id = e.namespace_id
where e.id = any ($1::uuid[])
"""
ARCHIVED = (
    "select id, split_part(namespace, '::', 1) as tenant, action from archive where id = any ($1::uuid[])"
)
"""The tenants of executions that were archived before their last log lines arrived."""


def key_context(tenant: str, number: int) -> bytes:
    """Return the context to which a wrapped data key is bound."""
    return f"penstock tenant key\0{tenant}\0{number}".encode()


class Codec:
    """The codec of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded_at: float | None = None
        self._was_refused = False
        self._wrapped: dict[Number, tuple[bytes, str]] = {}
        self._raw: dict[Number, bytes] = {}
        self._ciphers: dict[Number, AESGCM] = {}
        self._errors: dict[Number, str] = {}
        self._current: dict[str, DataKey] = {}
        self._sealed_since: dict[str, float] = {}
        self._paths: tuple[str, ...] = ()
        """Parameters by which limits group executions."""
        self._paths_read_at = 0.0
        self._namespaces: dict[int, tuple[str, str]] = {}
        self._executions: OrderedDict[UUID, tuple[str, str]] = OrderedDict()

    # -- keys ----------------------------------------------------------------------------------------------------

    def cipher(self, number: Number) -> AESGCM | None:
        """Return an open data key, as `Ring.cipher` does."""
        cipher = self._ciphers.get(number)
        if cipher is None and number not in self._errors:
            raise Unknown(number)
        return cipher

    def is_defect(self, tenant: str | None) -> bool:
        """Return whether the refusal of a plain value of this tenant is a defect of Penstock. The refusal is a defect
        if this process has sealed the tenant's values for so long that no older statement is under way."""
        since = self._sealed_since.get(tenant or "")
        return since is not None and time.monotonic() - since > SETTLED_S

    def forget(self) -> None:
        """Read the keys again before the next write, because the database reported that they have changed."""
        self._loaded_at, self._was_refused = None, True

    def seals(self, tenant: str) -> bool:
        """Return whether this process knows that the values of a tenant are encrypted."""
        return tenant in self._current

    async def load(self, fetch: Fetch) -> None:
        """Read the keys. Raises ConfigurationError if one that is used for sealing cannot be opened here."""
        rows = await fetch(KEYS)
        self._wrapped = {(r["tenant"], r["number"]): (r["data_key"], r["master_key"]) for r in rows}
        self._errors = {number: error for number, error in self._errors.items() if number in self._wrapped}
        current = {}
        for row in rows:
            if row["seals"]:
                tenant = row["tenant"]
                number, first = (tenant, row["number"]), min(n for n in self._wrapped if n[0] == tenant)
                await self._unwrap(number)
                await self._unwrap(first)
                for needed in (number, first):
                    if needed in self._errors:
                        raise ConfigurationError(
                            f"this process cannot decrypt the key of the encrypted tenant {tenant}: {self._errors[needed]}",
                            hint="Give this process the master key that `penstock encryption list` names.",
                        )
                current[tenant] = DataKey(number, self._ciphers[number], digest_key(self._raw[first]))
        if current:
            await self._load_paths(fetch)
        now = time.monotonic()
        self._sealed_since = {tenant: self._sealed_since.get(tenant, now) for tenant in current}
        self._current = current
        self._loaded_at, self._was_refused = now, False

    async def _load_paths(self, fetch: Fetch) -> None:
        self._paths_read_at = time.monotonic()
        self._paths = tuple(sorted(row["path"] for row in await fetch(LIMIT_PATHS)))

    async def _unwrap(self, number: Number) -> None:
        if number in self._raw:
            return
        if number not in self._wrapped:
            self._errors[number] = "there is no such key"
            return
        data_key, master_key = self._wrapped[number]
        try:
            keys: MasterKeys = master_keys(self._settings)
            raw = await asyncio.to_thread(keys.unwrap, master_key, data_key, key_context(*number))
        except Exception as error:  # a key service may raise any error
            self._errors[number] = f"{type(error).__name__}: {error}"
            return
        self._errors.pop(number, None)
        self._raw[number], self._ciphers[number] = raw, AESGCM(raw)

    async def _learn(self, fetch: Fetch, number: Number) -> None:
        # No lock is taken: a task that waited for it could hold the connection that the holder of the lock needs.
        if number not in self._wrapped:
            await self.load(fetch)
        await self._unwrap(number)

    # -- reading -------------------------------------------------------------------------------------------------

    async def opened(self, fetch: Fetch, rows: list[Any]) -> list[Any]:
        """Return rows with their sealed values open, as far as this process has the keys."""
        if not any(map(is_sealed, rows)):
            return rows
        while True:
            try:
                return [opened_row(self, row) for row in rows]
            except Unknown as unknown:
                await self._learn(fetch, unknown.number)

    async def opened_value(self, fetch: Fetch, value: Any) -> Any:
        """Return a text or bytes with its sealed values open."""
        while True:
            try:
                return opened(self, value, None) if is_sealed(value) else value
            except Unknown as unknown:
                await self._learn(fetch, unknown.number)

    # -- writing -------------------------------------------------------------------------------------------------

    async def ready(self, fetch: Fetch) -> bool:
        """Read the keys if it is time to. Return whether the values of any tenant are encrypted."""
        age = None if self._loaded_at is None else time.monotonic() - self._loaded_at
        if age is None or (self._current and age > FRESH_S):
            await self.load(fetch)
        elif self._current and time.monotonic() - self._paths_read_at > PATHS_FRESH_S:
            await self._load_paths(fetch)
        return bool(self._current)

    async def sealed(self, fetch: Fetch, sql: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of a statement with the values of encrypted tenants sealed."""
        places = places_of(sql)
        if not places and not self._was_refused:
            return args
        if not await self.ready(fetch) or not places:
            return args
        result = list(args)
        for place in places:
            if place.position <= len(args):
                result[place.position - 1] = await self._sealed(fetch, place, args)
        return tuple(result)

    async def sealed_bytes(self, fetch: Fetch, tenant: str, content: bytes) -> bytes:
        """Return a tenant's bytes, sealed if the tenant is encrypted."""
        await self.ready(fetch)
        key = self._current.get(tenant)
        return content if key is None else sealed_bytes(key, content)

    async def _sealed(self, fetch: Fetch, place: Place, args: Sequence[Any]) -> Any:
        value, owners = args[place.position - 1], args[place.of - 1]
        if value is None or owners is None:
            return value
        if not isinstance(value, list):  # the statement has one value for all of the owners
            tenants = await self._tenants(fetch, place, owners if isinstance(owners, list) else [owners])
            return self._sealed_once(place, value, tenants)
        alike = owners if isinstance(owners, list) else [owners] * len(value)
        tenants = await self._tenants(fetch, place, alike)
        statuses = args[place.position - 2] if place.kind == "ending" else None
        return [
            item
            if tenant is None or (key := self._current.get(tenant)) is None
            else sealed_argument(
                place.kind,
                key,
                item,
                action=action,
                paths=self._paths,
                ends_as=None if statuses is None else statuses[n],
            )
            for n, (item, (tenant, action)) in enumerate(zip(value, tenants, strict=True))
        ]

    def _sealed_once(self, place: Place, value: Any, tenants: Sequence[tuple[str | None, str | None]]) -> Any:
        keys = {tenant: self._current.get(tenant) for tenant, _ in tenants if tenant is not None}
        encrypted = [key for key in keys.values() if key is not None]
        if not encrypted:
            return value
        if len(keys) == 1:
            [(_, action), *_] = tenants
            return sealed_argument(place.kind, encrypted[0], value, action=action, paths=self._paths)
        # The text names executions of several tenants, but only one tenant's key could seal it. So the text is left
        # out.
        return (
            "of an encrypted tenant"
            if place.kind == "text"
            else '{"type":"Hidden","message":"of an encrypted tenant"}'
        )

    async def _tenants(
        self, fetch: Fetch, place: Place, owners: Collection[Any]
    ) -> list[tuple[str | None, str | None]]:
        """Return the tenant of each owner, and its action if it is an execution or a namespace."""
        if place.owner == "tenant":
            return [(owner, None) for owner in owners]
        if place.owner == "headers":
            return [(tenant_of_headers(owner), None) for owner in owners]
        if place.owner == "namespace":
            unknown = {id for id in owners if id is not None and id not in self._namespaces}
            if unknown:
                for row in await fetch(NAMESPACES, list(unknown)):
                    self._namespaces[row["id"]] = (row["tenant"], row["action"])
            return [self._namespaces.get(id, (None, None)) for id in owners]
        unknown = {id for id in owners if id is not None and id not in self._executions}
        if unknown:
            for sql in (EXECUTIONS, ARCHIVED):
                for row in await fetch(sql, list(unknown)) if unknown else ():
                    self._executions[row["id"]] = (row["tenant"], row["action"])
                unknown -= self._executions.keys()
        tenants: list[tuple[str | None, str | None]]
        tenants = [self._executions.get(id, (None, None)) for id in owners]
        while len(self._executions) > REMEMBERED_EXECUTIONS:
            self._executions.popitem(last=False)
        return tenants
