"""Results that are too large for the database, in a store of the user's: any that fsspec supports (S3, Azure, a
shared folder). The database has a reference instead (`penstock.language.terms.stored_references`). Penstock deletes
nothing there: a lifecycle rule of the store does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
import tenacity

from penstock.errors import ConfigurationError, InvalidInput, MissingExtra, NotFound, ResultNotStorable
from penstock.extras import missing
from penstock.language.terms.stored_references import KEY, NAME, SIZE, references_in, replaced
from penstock.store.session.database import Session
from penstock.store.session.sealed_marks import PREFIX

TRIES = 4
_UNSET = "Set PENSTOCK_RESULT_STORE to the same value as on the workers."


class StoredResults:
    """The result store at an fsspec URL; None: no store is configured. `cap` is the maximum size of a result in bytes,
    and that of all stored results that are read for one value. `session` has the codec that seals and opens the results
    of encrypted tenants."""

    def __init__(self, url: str | None, cap: int, session: Session | None = None) -> None:
        self._session = session
        self.url = url
        self.cap = cap

    @cached_property
    def _files(self) -> tuple[Any, str]:
        """Return the file system of the store, and the root path in it."""
        if self.url is None:
            raise ConfigurationError("a result is in a result store, and no store is configured", hint=_UNSET)
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError:
            raise missing(["store"]) from None
        try:
            files, root = url_to_fs(self.url)
        except Exception as error:  # the package of this kind of store is missing, or rejects the URL
            raise ConfigurationError(
                f"PENSTOCK_RESULT_STORE cannot be used: {str(error).partition(chr(10))[0]}",
                hint="The documentation of fsspec lists the kinds of stores, and the package that each needs.",
            ) from None
        return files, str(root).rstrip("/")

    def open(self) -> None:
        """Check the URL and the packages that it needs, without a request to the store. Raises ConfigurationError if
        the URL cannot be used, and MissingExtra if `penstock[store]` is not installed."""
        if self.url is not None:
            _ = self._files

    async def put(self, execution: UUID, encoded: bytes, tenant: str = "public") -> bytes:
        """Store the result of an execution (JSON), and return the reference to it (JSON). Raises ResultNotStorable
        after TRIES failed writes."""
        size = len(encoded)
        if self._session is not None and self._session.codec is not None:
            encoded = await self._session.codec.sealed_bytes(self._session.fetch, tenant, encoded)
        name = f"{datetime.now(UTC):%Y-%m-%d}/{execution}-{sha256(encoded).hexdigest()}.json"
        try:
            await self._tried(self._write, name, encoded)
        except Exception as error:
            raise ResultNotStorable(
                f"the result of {size:,} bytes could not be put into the result store: {_said(error)}",
                hint="Check that the worker may write to the store.",
            ) from error
        return orjson.dumps({KEY: name, SIZE: size})

    async def loads(self, text: str) -> Any:
        """Return the value of a stored text, with references resolved."""
        value = orjson.loads(text)
        return await self.resolved(value) if KEY in text else value

    async def resolved(self, value: Any) -> Any:
        """Return `value` with each reference replaced by its result. Raises ConfigurationError without a store,
        NotFound for a missing result, InvalidInput for results that are larger than `cap` or were changed."""
        references = {reference[KEY]: reference[SIZE] for reference in references_in(value)}
        if not references:
            return value
        if sum(references.values()) > self.cap:
            raise InvalidInput(
                f"the value refers to {sum(references.values()):,} bytes of stored results; at most {self.cap:,} bytes are read",
                hint="Raise PENSTOCK_RESULT_STORE_CAP, or pass on smaller values.",
            )
        results = {name: orjson.loads(await self._read(name)) for name in references}
        return replaced(value, results)

    async def _read(self, name: str) -> bytes:
        try:
            encoded: bytes = await self._tried(self._files[0].cat_file, f"{self._files[1]}/{name}")
        except FileNotFoundError:
            raise NotFound(
                f"the stored result {name} is not in the result store",
                hint="The lifecycle rule of the store may have deleted it, or this process uses another store.",
            ) from None
        digest = NAME.fullmatch(name)
        if digest is None or sha256(encoded).hexdigest() != digest[1]:
            raise InvalidInput(
                f"the stored result {name} was changed after it was stored", hint="Run it again."
            )
        if self._session is not None and self._session.codec is not None:
            encoded = await self._session.codec.opened_value(self._session.fetch, encoded)
        if encoded.startswith(PREFIX.encode()):
            raise ConfigurationError(
                f"the stored result {name} is encrypted, and this process lacks its key",
                hint="Set PENSTOCK_SECRETS_KEY to the same value as on the workers.",
            )
        return encoded

    def _write(self, name: str, encoded: bytes) -> None:
        files, root = self._files
        path = f"{root}/{name}"
        try:
            files.pipe_file(path, encoded)
        except FileNotFoundError:
            # The first result of a day needs a new folder. The user creates the root.
            with suppress(FileExistsError):
                files.mkdir(path.rpartition("/")[0], create_parents=False)
            files.pipe_file(path, encoded)

    async def _tried(self, call: Any, *args: Any) -> Any:
        async for attempt in tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(TRIES),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=5),
            retry=tenacity.retry_if_not_exception_type((FileNotFoundError, ConfigurationError, MissingExtra)),
            reraise=True,
        ):
            with attempt:
                return await asyncio.to_thread(call, *args)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
