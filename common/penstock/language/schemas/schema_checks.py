"""The check of a schema: it must be valid, self-contained (no reference to another document), and of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.bounds import PATTERNS_CAP, SCHEMA_CAP, SCHEMA_PARTS_CAP
from penstock.errors import CheckTooCostly, InvalidInput
from penstock.language.schemas import patterns
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.fault_texts import fault_text
from penstock.language.schemas.faults import faults
from penstock.language.schemas.metaschema import DIALECT, METASCHEMA
from penstock.language.schemas.schema_tree import every, follow
from penstock.language.schemas.storable_json import check_value
from penstock.language.schemas.validator import Validator
from penstock.language.terms.options import Wrong, dotted
from penstock.run.cut_texts import cut_end

STEPS = 2_000_000
"""The maximum number of steps of the check of a schema. That number is enough for any schema of SCHEMA_CAP bytes."""

_metaschema = Validator(METASCHEMA)
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")


def check_schema(schema: Any) -> None:
    """Check that `schema` is a self-contained JSON Schema of draft 2020-12. For a fault, raises Wrong, which names the
    place."""
    if not isinstance(schema, Mapping):
        raise Wrong("is not a JSON Schema: it must be an object", 'Write for example {"type": "object"}.')
    try:
        check_value(schema, SCHEMA_CAP, what="the schema")
    except InvalidInput as error:
        raise Wrong(error.message, error.hint) from None
    _check_words(schema)
    if (dialect := schema.get("$schema", DIALECT)) != DIALECT:
        raise Wrong(f"names the dialect {dialect!r}", f"Penstock reads {DIALECT}; leave $schema out.")
    parts = list(every(schema))
    if len(parts) > SCHEMA_PARTS_CAP:
        raise Wrong(
            f"has {len(parts):,} schemas inside; at most {SCHEMA_PARTS_CAP:,} are taken",
            "Simplify it.",
        )
    identities = {id(part) for _, part in parts}
    for place, part in parts:
        _check_part(schema, part, identities, dotted(place) or "its top")
    _check_patterns(part for _, part in parts)
    _check_circles(schema, parts)
    try:
        Validator(schema)
    except RecursionError:
        raise Wrong("refers from part to part too often", "Shorten the chain of references.") from None


def _check_words(schema: Mapping[str, Any]) -> None:
    """Check the form of each keyword."""
    budget = Budget(STEPS)
    try:
        if _metaschema.fits(schema, budget):
            return
        fault = next(faults(_metaschema, schema, budget))
    except CheckTooCostly:
        raise Wrong("takes too long to be checked", "Split or simplify it.") from None
    where = dotted(fault.place)
    words, _ = fault_text(fault, "it")
    raise Wrong(
        f"is not a JSON Schema{f' at {where}' if where else ''}: {words.partition(': ')[2]}",
        "Types are object, array, string, integer, number, boolean and null."
        if where.endswith("type")
        else "See json-schema.org, draft 2020-12.",
    )


def _check_part(root: Mapping[str, Any], part: Mapping[str, Any], identities: set[int], place: str) -> None:
    for word in ("$id", "$dynamicRef", "$dynamicAnchor", "$anchor", "$vocabulary"):
        if word in part:
            raise Wrong(f"uses {word} at {place}", "Refer to parts of the same schema: #/$defs/name.")
    reference = part.get("$ref")
    if reference is not None and not _is_part(follow(root, reference), identities):
        raise Wrong(
            f"refers to {reference!r} at {place}, which is not a part of the schema",
            "Penstock fetches nothing: copy the schema into $defs and refer to #/$defs/name.",
        )
    if not isinstance(part.get("secret", False), bool):
        raise Wrong(f"has a value of secret that is neither true nor false at {place}", None)


def _is_part(target: Any, identities: set[int]) -> bool:
    """Return True if the target of a reference is a schema. A value in a default or an example was not checked as a
    schema."""
    return isinstance(target, bool) or id(target) in identities


def _check_patterns(parts: Iterator[Mapping[str, Any]]) -> None:
    texts: set[str] = set()
    for part in parts:
        texts.update(part.get("patternProperties", {}))
        if "pattern" in part:
            texts.add(part["pattern"])
    if patterns.length(texts) > PATTERNS_CAP:
        raise Wrong(
            f"has patterns with more than {PATTERNS_CAP:,} characters in total",
            "Write fewer or shorter patterns: each pattern counts as its length plus 64 characters.",
        )
    for pattern in texts:
        try:
            patterns.compiled(pattern)
        except ValueError as error:
            raise Wrong(
                f"has a pattern that is not a regular expression: {cut_end(pattern, 100)!r}: {error}", None
            ) from None


def _check_circles(root: Mapping[str, Any], parts: list[tuple[Any, Mapping[str, Any]]]) -> None:
    """Refuse a part that refers back to itself for the same value: its check would never end."""
    done: set[int] = set()
    for place, start in parts:
        path: dict[int, Iterator[Any]] = {}
        pending = [start]
        while pending:
            part = pending[-1]
            if id(part) not in path:
                path[id(part)] = _in_place(root, part)
            following = next((part for part in path[id(part)] if id(part) not in done), None)
            if following is None:
                done.add(id(pending.pop()))
                del path[id(part)]
            elif id(following) in path:
                at = dotted(place) or "its top"
                raise Wrong(
                    f"refers to itself without end at {at}", "Let the reference lead to a schema of its own."
                )
            else:
                pending.append(following)


def _in_place(root: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts that apply to the same value as this one."""
    inner = [follow(root, part["$ref"])] if "$ref" in part else []
    for word in _IN_PLACE_LISTS:
        inner.extend(part.get(word, ()))
    inner.extend(part[word] for word in _IN_PLACE if word in part)
    inner.extend(part.get("dependentSchemas", {}).values())
    yield from (part for part in inner if isinstance(part, Mapping))
