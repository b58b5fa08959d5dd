"""The masking of payloads, parameters and definitions in outputs: `***` replaces each value that a schema marks as
secret. Every output uses it.

All stored versions decide what is secret, since a value may be older or newer than the current version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from penstock.language.rules.secret_references import without_references
from penstock.language.schemas import Schema
from penstock.language.schemas.secrets import masked_schema
from penstock.language.terms.redaction import MASK
from penstock.language.workflows.diff import Difference
from penstock.store.definitions import catalog
from penstock.store.session.database import Session, Transaction

Body = dict[str, Any]


class Masking:
    """The masks of these definitions (kind, ref, body): for the parameters of actions and workflows, and for the
    payloads of triggers."""

    def __init__(self, marked: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        self._parameters: dict[str, list[Schema]] = {}
        self._payloads: dict[str, list[Schema]] = {}
        for kind, ref, body in marked:
            if kind == "trigger":
                self._payloads.setdefault(ref, []).append(Schema(body.get("schema")))
            else:
                self._parameters.setdefault(ref, []).append(Schema(body.get("parameters")))

    @classmethod
    async def load(cls, session: Session | Transaction) -> Masking:
        return cls(await catalog.with_secrets(session))

    def parameters(self, ref: str | None, params: Any) -> Any:
        """Mask the parameters of an action or a workflow, constants and templates alike."""
        return _by(self._parameters.get(ref or "", ()), without_references(params))

    def payload(self, trigger: str, payload: Any) -> Any:
        """Mask the payload of an event."""
        return _by(self._payloads.get(trigger, ()), payload)

    def text(self, trigger: str, body: str) -> str:
        """Mask a payload as its sender wrote it. A text that cannot be decoded is hidden if it may hold secrets."""
        if trigger not in self._payloads:
            return body
        try:
            return orjson.dumps(self.payload(trigger, orjson.loads(body))).decode()
        except orjson.JSONDecodeError:
            return MASK

    def text_of_unknown(self, trigger: str, body: str) -> str:
        """Mask a payload for an unknown trigger, such as a misspelt one: the schemas of all triggers may apply."""
        if trigger in self._payloads:  # the trigger was deleted, and its schemas are still stored
            return self.text(trigger, body)
        if not self._payloads:
            return body
        try:
            payload = orjson.loads(body)
        except orjson.JSONDecodeError:
            return MASK
        for schemas in self._payloads.values():
            payload = _by(schemas, payload)
        return orjson.dumps(payload).decode()

    def definition(self, kind: str, body: Mapping[str, Any]) -> Body:
        """Mask a definition: the values that it passes to other definitions, and the defaults of its own parameters."""
        masked = dict(body)
        for name in ("parameters", "schema"):
            if isinstance(masked.get(name), Mapping):
                masked[name] = masked_schema(masked[name])
        if "params" in masked:
            masked["params"] = self.parameters(masked.get("action"), masked["params"])
        if kind == "workflow":
            masked["tasks"] = [self._step(task) for task in masked.get("tasks", ())]
            if masked.get("on_exit"):
                masked["on_exit"] = self._step(masked["on_exit"])
        return masked

    def _step(self, step: Mapping[str, Any]) -> Body:
        if "input" not in step:
            return dict(step)
        return {**step, "input": self.parameters(step.get("action") or step.get("workflow"), step["input"])}

    def differences(
        self, changes: Sequence[Difference], old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> list[Difference]:
        """Mask the differences between two bodies of a workflow. They show that a secret has changed, but not its
        value."""
        return [
            replace(
                change, old=self._at(change.at, change.old, old), new=self._at(change.at, change.new, new)
            )
            for change in changes
        ]

    def _at(self, at: Sequence[str | int], value: Any, body: Mapping[str, Any]) -> Any:
        """Return a part of a workflow's body, masked as `definition` masks it at its place."""
        if value is None or at[:1] not in (("tasks",), ("on_exit",), ("parameters",)):
            return value
        steps = {task["name"]: task for task in body.get("tasks", ())}
        if at[0] == "parameters":
            whole: Any = {"parameters": body.get("parameters")}
        elif at[0] == "tasks":
            whole = {"tasks": [steps[at[1]]]} if len(at) > 1 and at[1] in steps else {"tasks": []}
        else:
            whole = {"on_exit": body.get("on_exit")}
        masked: Any = self.definition("workflow", whole)
        path = list(at)
        if at[0] == "tasks":
            masked, path = (masked["tasks"] or [{}])[0], path[2:]
        for step in path:
            if not isinstance(masked, Mapping | list):
                return masked  # MASK has replaced a part of the body that contains this place
            try:
                masked = masked[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                return value
        return masked


def _by(schemas: Sequence[Schema], value: Any) -> Any:
    for schema in schemas:
        value = schema.mask(value)
    return value
