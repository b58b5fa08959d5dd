"""The versions of actions that a gateway has met. A version never changes, so each is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.attempts.action_versions import ActionVersion, version_of
from penstock.errors import InvalidInput
from penstock.language.schemas import parameters_schema, payload_schema, schema_differences
from penstock.language.terms import labels
from penstock.language.terms.options import Wrong
from penstock.service.heartbeat import Identity
from penstock.store.definitions import catalog
from penstock.store.session.database import Session


@dataclass(frozen=True, slots=True)
class RemoteAction:
    """An action that a worker runs elsewhere. This process has only the stored definition of it."""

    ref: str
    executor: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    function: None = None
    is_coroutine: bool = False

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the parameters unchanged, since the worker binds them."""
        return dict(params)


SchemaPart = Literal["parameters", "result"]
SCHEMAS: Mapping[SchemaPart, Callable[[Any], dict[str, Any]]] = {
    "parameters": parameters_schema,
    "result": payload_schema,
}
"""The schemas of an action, each with the function that returns its normal form."""


@dataclass(frozen=True, slots=True)
class OfferedAction:
    """An action for which a worker has the code, with the schemas that the worker has sent."""

    ref: str
    schemas: Mapping[SchemaPart, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A place at which a schema of a worker differs from that of the definition."""

    action: str
    part: SchemaPart
    text: str


@dataclass(frozen=True, slots=True)
class Ability:
    """The definition ids of the versions that a worker can run (`runnable`), and of the versions that it cannot run
    (`lacking`)."""

    runnable: list[int]
    lacking: list[int]


class Definitions:
    """The versions that this gateway has read, for any of its workers."""

    def __init__(self) -> None:
        self._bodies: dict[int, Mapping[str, Any]] = {}
        self._versions: dict[int, ActionVersion] = {}
        self._turn = asyncio.Lock()

    @property
    def count(self) -> int:
        return len(self._bodies)

    def __getitem__(self, definition: int) -> ActionVersion:
        version = self._versions.get(definition)
        if version is None:
            body = self._bodies[definition]
            action = RemoteAction(body["ref"], body.get("executor"), body.get("options") or {})
            version = self._versions[definition] = version_of(action, body)
        return version

    async def look_up(self, session: Session, ids: Sequence[int]) -> None:
        """Read the versions among `ids` that are new."""
        async with self._turn:
            missing = [id for id in ids if id not in self._bodies]
            if missing:
                self._bodies.update(await catalog.bodies(session, missing))

    async def look_up_current(self, session: Session, refs: Sequence[str]) -> dict[str, int]:
        """Read the current versions of these actions. Return the ids of their definitions by ref. A ref that the
        catalog does not have is left out."""
        rows = await catalog.current(session, ["action"], list(refs))
        await self.look_up(session, [row.definition_id for row in rows])
        return {row.ref: row.definition_id for row in rows}

    def differences(self, definition: int, offered: OfferedAction) -> list[SchemaDifference]:
        """Return the differences between the schemas of a worker and those of a definition. Raises InvalidInput if a schema
        of the worker is malformed."""
        body = self._bodies[definition]
        differences = []
        for part, normal in SCHEMAS.items():
            declared = offered.schemas.get(part)
            if declared is None:
                continue
            try:
                schema = normal(declared)
            except Wrong as error:
                raise InvalidInput(
                    f"the schema of the {part} of {offered.ref} {error}", hint=error.hint
                ) from None
            defined = body.get(part)
            texts = schema_differences(defined, schema) if defined else ["the definition has no schema"]
            differences += [SchemaDifference(offered.ref, part, text) for text in texts]
        return differences

    def ability(self, worker: Identity) -> Ability:
        """Return the versions that a worker can run: the versions of its actions, if it carries the required labels.
        Durable functions are left out, since this version of the protocol has no messages for their records."""
        actions = set(worker.actions)
        runnable: list[int] = []
        lacking: list[int] = []
        for id, body in self._bodies.items():
            fits = (
                body["ref"] in actions
                and not body.get("durable")
                and labels.carries_all(body.get("labels") or {}, worker.labels)
            )
            (runnable if fits else lacking).append(id)
        return Ability(runnable, lacking)
