"""The keywords `unevaluatedProperties` and `unevaluatedItems`: they apply to names and items that no other keyword has
evaluated. The keywords of the same part and of all matching branches count as evaluating (draft 2020-12, core, 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from penstock.language.schemas.budget import Budget
from penstock.language.schemas.patterns import compiled, search
from penstock.language.schemas.scalar_keywords import Test


class Parts(Protocol):
    """The functions of a compiled schema that this module uses."""

    def test(self, part: Any) -> Test: ...

    def test_of(self, part: Any) -> Test: ...

    def branch(self, part: Any) -> Test: ...

    def target(self, reference: Any) -> Any: ...


def test(validator: Parts, part: Mapping[str, Any]) -> Test:
    """Compile both keywords of a part."""
    for word in ("unevaluatedProperties", "unevaluatedItems"):
        if word in part:
            validator.test(part[word])

    def fits(value: Any, budget: Budget) -> bool:
        if isinstance(value, dict) and (sub := part.get("unevaluatedProperties", True)) is not True:
            inner = validator.test_of(sub)
            return all(
                inner(value[name], budget) for name in unevaluated_names(validator, part, value, budget)
            )
        if isinstance(value, list) and (sub := part.get("unevaluatedItems", True)) is not True:
            inner = validator.test_of(sub)
            return all(inner(value[i], budget) for i in unevaluated_items(validator, part, value, budget))
        return True

    return fits


def unevaluated_names(
    validator: Parts, part: Mapping[str, Any], value: dict[str, Any], budget: Budget
) -> list[str]:
    """Return the names in `value` to which only `unevaluatedProperties` of this part applies."""
    budget.spend(5 + len(value))
    names = _names(validator, part, value, budget, is_top=True)
    return [name for name in value if name not in names]


def unevaluated_items(
    validator: Parts, part: Mapping[str, Any], value: list[Any], budget: Budget
) -> list[int]:
    """Return the indexes in `value` to which only `unevaluatedItems` of this part applies."""
    budget.spend(5 + len(value))
    places = _items(validator, part, value, budget, is_top=True)
    return [place for place in range(len(value)) if place not in places]


def _names(
    validator: Parts, part: Any, value: dict[str, Any], budget: Budget, *, is_top: bool = False
) -> set[str]:
    if isinstance(part, bool):
        return set()
    budget.spend(4 + 2 * len(value))
    if "additionalProperties" in part or ("unevaluatedProperties" in part and not is_top):
        return set(value)
    named = part.get("properties", {})
    names = {name for name in value if name in named}
    for pattern in part.get("patternProperties", ()):
        names.update(name for name in value if search(compiled(pattern), name, budget))
    for branch in _branches(validator, part, value, budget):
        names |= _names(validator, branch, value, budget)
    return names


def _items(
    validator: Parts, part: Any, value: list[Any], budget: Budget, *, is_top: bool = False
) -> set[int]:
    if isinstance(part, bool):
        return set()
    budget.spend(4 + 2 * len(value))
    if "items" in part or ("unevaluatedItems" in part and not is_top):
        return set(range(len(value)))
    places = set(range(min(len(part.get("prefixItems", ())), len(value))))
    if "contains" in part:
        test = validator.test_of(part["contains"])
        places.update(place for place, item in enumerate(value) if test(item, budget))
    for branch in _branches(validator, part, value, budget):
        places |= _items(validator, branch, value, budget)
    return places


def _branches(validator: Parts, part: Mapping[str, Any], value: Any, budget: Budget) -> Iterator[Any]:
    """Yield the parts that apply to the same value, and that the value satisfies."""
    if "$ref" in part:
        yield from _fitting(validator, validator.target(part["$ref"]), value, budget)
    for word in ("allOf", "anyOf", "oneOf"):
        for branch in part.get(word, ()):
            yield from _fitting(validator, branch, value, budget)
    if "if" in part:
        if validator.branch(part["if"])(value, budget):
            yield part["if"]
            yield from _fitting(validator, part.get("then", True), value, budget)
        else:
            yield from _fitting(validator, part.get("else", True), value, budget)
    for name, branch in part.get("dependentSchemas", {}).items():
        if isinstance(value, dict) and name in value:
            yield from _fitting(validator, branch, value, budget)


def _fitting(validator: Parts, branch: Any, value: Any, budget: Budget) -> Iterator[Any]:
    budget.spend(1)
    if validator.branch(branch)(value, budget):
        yield branch
