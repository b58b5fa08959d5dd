"""A schema, ready to check values many times."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

import orjson
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from penstock.errors import DefinitionError, InvalidInput
from penstock.language.options import did_you_mean, dotted
from penstock.language.schemas import formats, patterns, secrets
from penstock.language.schemas.fast_validator import compile_fast_validator
from penstock.language.schemas.patterns import BoundedValidator
from penstock.language.schemas.value_checks import PAYLOAD_CAP, check_value
from penstock.language.stored_references import is_within

SHOWN = 5
"""Faults of one value that an error lists."""
CACHED = 1024
"""Schemas whose compiled form is remembered, over all of a process."""

_FORMATS = formats.checker()


class _Compiled:
    __slots__ = ("quick", "secrets", "validator")

    def __init__(self, document: Mapping[str, Any]) -> None:
        # An empty registry: a reference that leads out of the schema is never fetched.
        self.validator: Validator = BoundedValidator(document, registry=Registry(), format_checker=_FORMATS)
        self.quick = compile_fast_validator(document)
        self.secrets = secrets.has_secrets(document)


_compiled: OrderedDict[bytes, _Compiled] = OrderedDict()


def _compile(document: Mapping[str, Any]) -> _Compiled:
    digest = sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).digest()
    found = _compiled.get(digest)
    if found is None:
        found = _compiled[digest] = _Compiled(document)
        if len(_compiled) > CACHED:
            _compiled.popitem(last=False)
    return found


class Schema:
    """A JSON Schema that was found sound when it was declared (`check_schema`). Hold on to it where you can: made
    anew, it costs a digest of the document."""

    __slots__ = ("_secrets", "_test", "_validator", "document")

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        self.document: Mapping[str, Any] = document or {}
        compiled = _compile(self.document)
        self._test = compiled.quick
        self._validator = compiled.validator
        self._secrets = compiled.secrets

    def check(self, value: Any, *, what: str = "parameters", cap: int = PAYLOAD_CAP) -> bytes:
        """`value` as canonical JSON. Raises InvalidInput if it does not fit the schema or cannot be stored."""
        encoded = check_value(value, cap, what=what)
        if self.document:
            with patterns.one_check:
                if self._test is None or not self._test(value):
                    # Decoded again, as only then datetimes are texts and tuples are arrays.
                    self._refuse(orjson.loads(encoded), what)
        return encoded

    def validate(self, value: Any, *, what: str = "parameters") -> None:
        """Raises InvalidInput if `value`, which is JSON already, does not fit the schema."""
        if self.document:
            with patterns.one_check:
                if self._test is None or not self._test(value):
                    self._refuse(value, what)

    def takes(self) -> str | None:
        """What an object has by this schema, for somebody who gave another one; None where it does not tell."""
        required, properties = self.document.get("required", []), self.document.get("properties", {})
        if not properties and self.document.get("additionalProperties") is not False:
            return None
        names = [
            f"{name}={_type(part)}" + ("" if name in required else " (optional)")
            for name, part in properties.items()
        ]
        return f"It takes: {', '.join(names) or 'nothing'}."

    def mask(self, value: Any) -> Any:
        """`value` with `***` in place of what the schema marks as secret; as it is if nothing is marked."""
        if not self._secrets:
            return value
        with patterns.one_check:
            return secrets.masked(value, self.document)

    def secrets_of(self, value: Any) -> list[str]:
        """The texts and numbers (as text) in `value` that the schema marks as secret."""
        if not self._secrets:
            return []
        with patterns.one_check:
            return list(secrets.secret_texts(value, self.document))

    @staticmethod
    def masked(value: Any, schema: Mapping[str, Any] | None) -> Any:
        """The same for a schema that was not compiled yet."""
        return Schema(schema).mask(value)

    def _refuse(self, value: Any, what: str) -> None:
        try:
            found = (
                one for one in self._validator.iter_errors(value) if not is_within(value, one.absolute_path)
            )
            faults = list(islice(found, SHOWN))
        except RecursionError:
            raise InvalidInput(f"{what} nests too deep for its schema", hint="Flatten it.") from None
        except Unresolvable as error:
            raise DefinitionError(
                f"the schema refers to {error.ref!r}, which is not in it", hint="Apply it again, corrected."
            ) from None
        if faults:
            said = [_said(fault, what) for fault in faults]
            raise InvalidInput(
                "; ".join(text for text, _ in said), hint=next((h for _, h in said if h), None)
            )


def _said(fault: ValidationError, what: str) -> tuple[str, str | None]:
    """A fault in words, and a hint. It shows what was expected and never the value, which may be secret."""
    place = tuple(fault.absolute_path)
    at = f"{what}.{dotted(place)}" if place and isinstance(place[0], str) else f"{what}{dotted(place)}"
    expected: Any = fault.validator_value
    found: Any = fault.instance
    match fault.validator:
        case "type":
            names = [expected] if isinstance(expected, str) else expected
            return f"{at}: expected {' or '.join(names)}, got {_kind(found)}", None
        case "required":
            missing = sorted(set(expected) - set(found))
            return f"{at}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing", None
        case "additionalProperties" | "unevaluatedProperties" if expected is False:
            schema: Mapping[str, Any] = fault.schema if isinstance(fault.schema, Mapping) else {}
            known, named = set(schema.get("properties", {})), schema.get("patternProperties", {})
            others = sorted(set(found) - known)
            unknown = [name for name in others if not any(patterns.fits(one, name) for one in named)]
            return f"{at}: unknown {', '.join(map(repr, unknown))}", did_you_mean(unknown[0], known)
        case "enum":
            return f"{at}: expected one of {_short(expected)}", None
        case "anyOf" | "oneOf":
            return f"{at}: fits none, or too many, of the {len(expected)} forms allowed", None
        case None:
            return f"{at}: nothing is allowed here", None
    return f"{at}: does not satisfy {fault.validator}: {_short(expected)}", None


def _type(part: Mapping[str, Any] | bool) -> str:
    """Of a property: `integer`, `integer or null`, or `any`."""
    given = part.get("type", "any") if isinstance(part, Mapping) else "any"
    return given if isinstance(given, str) else " or ".join(given)


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 120 else f"{text[:120]}..."
