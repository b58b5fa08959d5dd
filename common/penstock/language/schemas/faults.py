"""The faults of a value that does not satisfy its schema, with their places, for an error message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.language.schemas import evaluated
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.patterns import compiled, search
from penstock.language.schemas.validator import Validator
from penstock.language.terms.sources import Location


@dataclass(frozen=True, slots=True)
class Fault:
    """A keyword that a value at a place does not satisfy."""

    place: Location
    word: str | None
    """None if the schema is `false`, so that no value is allowed."""
    expected: Any
    value: Any
    names: tuple[str, ...] = ()
    """The names that are missing or unknown."""
    known_names: tuple[str, ...] = ()
    """The names that the schema knows."""


def faults(validator: Validator, value: Any, budget: Budget) -> Iterator[Fault]:
    """Yield the faults of a value. Raises CheckTooCostly if the budget is used up."""
    return _Walk(validator, budget).faults(validator.document, value, ())


class _Walk:
    def __init__(self, validator: Validator, budget: Budget) -> None:
        self._validator = validator
        self._budget = budget

    def faults(self, part: Any, value: Any, place: Location) -> Iterator[Fault]:
        if self._validator.test_of(part)(value, self._budget):
            return
        if isinstance(part, bool):
            yield Fault(place, None, part, value)
            return
        for word, test in self._validator.words_of(part).items():
            self._budget.spend(1)
            if not test(value, self._budget):
                yield Fault(place, word, part[word], value)
        if "$ref" in part:
            yield from self.faults(self._validator.target(part["$ref"]), value, place)
        for branch in part.get("allOf", ()):
            yield from self.faults(branch, value, place)
        if "if" in part:
            holds = self._validator.test_of(part["if"])(value, self._budget)
            yield from self.faults(part.get("then" if holds else "else", True), value, place)
        if isinstance(value, dict):
            yield from self._of_object(part, value, place)
        elif isinstance(value, list):
            yield from self._of_array(part, value, place)

    def _of_object(self, part: Mapping[str, Any], value: dict[str, Any], place: Location) -> Iterator[Fault]:
        budget, named, patterns = self._budget, part.get("properties", {}), part.get("patternProperties", {})
        budget.spend(len(value) * (1 + len(patterns)) + len(part.get("required", ())))
        if missing := [name for name in part.get("required", ()) if name not in value]:
            yield Fault(place, "required", part["required"], value, tuple(missing))
        unmatched = []
        for name, item in value.items():
            concerned = [named[name]] if name in named else []
            concerned += [sub for pattern, sub in patterns.items() if search(compiled(pattern), name, budget)]
            if not concerned:
                unmatched.append(name)
            for sub in concerned:
                yield from self.faults(sub, item, (*place, name))
        yield from self._of_others("additionalProperties", part, value, unmatched, place)
        if "unevaluatedProperties" in part:
            unmatched = evaluated.unevaluated_names(self._validator, part, value, budget)
            yield from self._of_others("unevaluatedProperties", part, value, unmatched, place)
        for name in value if "propertyNames" in part else ():
            yield from self.faults(part["propertyNames"], name, place)
        for name, branch in part.get("dependentSchemas", {}).items():
            if name in value:
                yield from self.faults(branch, value, place)

    def _of_others(
        self, word: str, part: Mapping[str, Any], value: Any, unmatched: list[str], place: Location
    ) -> Iterator[Fault]:
        sub = part.get(word, True)
        if sub is False and unmatched:
            names = tuple(part.get("properties", ()))
            yield Fault(place, word, sub, value, tuple(unmatched), names)
        else:
            for name in unmatched:
                yield from self.faults(sub, value[name], (*place, name))

    def _of_array(self, part: Mapping[str, Any], value: list[Any], place: Location) -> Iterator[Fault]:
        self._budget.spend(len(value))
        prefix = part.get("prefixItems", ())
        for index, item in enumerate(value):
            if index < len(prefix):
                yield from self.faults(prefix[index], item, (*place, index))
            elif (sub := part.get("items", True)) is not True:
                yield from self.faults(sub, item, (*place, index))
        if "unevaluatedItems" in part:
            for index in evaluated.unevaluated_items(self._validator, part, value, self._budget):
                yield from self.faults(part["unevaluatedItems"], value[index], (*place, index))
