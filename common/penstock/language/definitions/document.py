"""The stored form of a definition: plain JSON, addressed by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from penstock.errors import InvalidInput
from penstock.language.schemas.storable_json import check_value
from penstock.language.terms.sources import Source

DOCUMENT_CAP = 1024 * 1024
"""The maximum size of a definition, in bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Document:
    """A version of a definition. Equal meanings have equal digests, whether declared in Python or in YAML."""

    kind: str
    """action, trigger, rule, route, limit, schedule or workflow."""
    ref: str
    body: dict[str, Any]
    digest: str
    """sha256 of the canonical JSON of kind, ref and body, in hexadecimal."""

    @classmethod
    def of(cls, kind: str, ref: str, body: Mapping[str, Any], source: Source | None = None) -> Document:
        """Return the document of a body. Raises DefinitionError for a body that is not JSON, is too large, or holds
        NUL, NaN or Infinity."""
        try:
            encoded = check_value(
                {"kind": kind, "ref": ref, "body": body}, DOCUMENT_CAP, what=f"{kind} {ref}"
            )
        except InvalidInput as error:
            raise (source or Source("?", 0)).wrong(error.message, error.hint) from None
        return cls(kind, ref, orjson.loads(encoded)["body"], sha256(encoded).hexdigest())
