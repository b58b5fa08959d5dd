"""A schema, compiled to check values many times."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

import orjson

from penstock.errors import CheckTooCostly, DefinitionError, InvalidInput
from penstock.language.schemas import secrets
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.fault_texts import fault_text
from penstock.language.schemas.faults import faults
from penstock.language.schemas.storable_json import check_value
from penstock.language.schemas.validator import Validator
from penstock.language.terms.options import LONGEST_WORD
from penstock.language.terms.stored_references import is_within
from penstock.run.cut_texts import cut_end

SHOWN = 5
"""The maximum number of faults of one value that an error lists."""
SHOWN_PARAMETERS = 50
"""The maximum number of parameters that a hint lists."""
CACHED = 1024
"""The maximum number of schemas with a cached compiled form in one process."""
CACHED_BYTES = 4 * 1024 * 1024
"""The maximum total size of these schemas, in bytes of JSON. The compiled form takes about 30 times as many."""


class _Compiled:
    __slots__ = ("secrets", "size", "validator")

    def __init__(self, document: Mapping[str, Any], size: int) -> None:
        try:
            self.validator = Validator(document)
        except RecursionError:
            raise DefinitionError(
                "the schema refers from part to part too often", hint="Shorten the chain of references."
            ) from None
        self.secrets = any(map(secrets.is_secret, self.validator.parts))
        self.size = size


class _Cache:
    """The compiled forms of the most recent schemas."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[bytes, _Compiled] = OrderedDict()
        self._size = 0

    def compiled(self, document: Mapping[str, Any]) -> _Compiled:
        encoded = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
        digest = sha256(encoded).digest()
        compiled = self._compiled.get(digest)
        if compiled is None:
            compiled = self._compiled[digest] = _Compiled(document, len(encoded))
            self._size += compiled.size
            while len(self._compiled) > CACHED or (self._size > CACHED_BYTES and len(self._compiled) > 1):
                self._size -= self._compiled.popitem(last=False)[1].size
        return compiled


_cache = _Cache()


class Schema:
    """A JSON Schema that was checked when it was declared (`check_schema`). Reuse it if you can: creating it computes a
    digest of the document. Each check of a value has one budget of steps."""

    __slots__ = ("_secrets", "_validator", "document")

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        self.document: Mapping[str, Any] = document or {}
        compiled = _cache.compiled(self.document)
        self._validator = compiled.validator
        self._secrets = compiled.secrets

    def check(self, value: Any, *, cap: int, what: str = "parameters", decoded: bool = False) -> bytes:
        """Return `value` as canonical JSON. Raises InvalidInput if it does not satisfy the schema or cannot be stored.
        `cap` is its maximum size in bytes, which PENSTOCK_PAYLOAD_CAP sets. `decoded` says that the value came out of a
        JSON parser."""
        encoded = check_value(value, cap, what=what)
        if self.document:
            # Validate what a reader gets: encoding turns a datetime into a text, and a tuple into an array.
            self.validate(value if decoded else orjson.loads(encoded), what=what)
        return encoded

    def validate(self, value: Any, *, what: str = "parameters") -> None:
        """Raise InvalidInput if the JSON value does not satisfy the schema, or costs too much to check."""
        budget = Budget()
        try:
            if self.document and not self._validator.fits(value, budget):
                self._refuse(value, what, budget)
        except CheckTooCostly as error:
            raise CheckTooCostly(f"{what}: {error.message}", hint=error.hint) from None
        except RecursionError:
            raise InvalidInput(f"{what} nests too deep for its schema", hint="Flatten it.") from None

    def takes(self) -> str | None:
        """Return a description of an object's properties by this schema, or None if the schema names none."""
        required, properties = self.document.get("required", []), self.document.get("properties", {})
        if not properties and self.document.get("additionalProperties") is not False:
            return None
        names = [
            f"{cut_end(name, LONGEST_WORD)}={_type(part)}" + ("" if name in required else " (optional)")
            for name, part in islice(properties.items(), SHOWN_PARAMETERS)
        ]
        ellipsis = ", ..." if len(properties) > len(names) else ""
        return f"It takes: {', '.join(names) or 'nothing'}{ellipsis}."

    def mask(self, value: Any) -> Any:
        """Return `value` with `***` in place of each part that the schema marks as secret. If there are none, return
        `value` itself."""
        return secrets.masked(value, self.document) if self._secrets else value

    def secrets_of(self, value: Any) -> list[str]:
        """Return the texts and numbers (as text) in `value` that the schema marks as secret."""
        return secrets.secret_texts(value, self.document) if self._secrets else []

    @staticmethod
    def masked(value: Any, schema: Mapping[str, Any] | None) -> Any:
        """Return the value, masked by a schema that is not compiled."""
        return Schema(schema).mask(value)

    def _refuse(self, value: Any, label: str, budget: Budget) -> None:
        """Raise InvalidInput for a value that does not satisfy the schema. A value whose faults all lie in stored
        results is accepted, since these cannot be checked here."""
        walk = (
            fault for fault in faults(self._validator, value, budget) if not is_within(value, fault.place)
        )
        try:
            texts = [fault_text(fault, label) for fault in islice(walk, SHOWN)]
        except CheckTooCostly:
            raise InvalidInput(
                f"{label}: does not fit its schema",
                hint="The value is too large to name the place: send a smaller value.",
            ) from None
        if texts:
            hint = next((hint for _, hint in texts if hint), None)
            raise InvalidInput("; ".join(text for text, _ in texts), hint=hint)


def _type(part: Mapping[str, Any] | bool) -> str:
    """Return the type of a property: `integer`, `integer or null`, or `any`."""
    declared = part.get("type", "any") if isinstance(part, Mapping) else "any"
    return declared if isinstance(declared, str) else " or ".join(declared)
