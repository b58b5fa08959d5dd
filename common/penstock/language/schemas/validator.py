"""A schema as functions that test a value, within the budget of one check.

Penstock has its own, since no library for JSON Schema can be stopped: `docs/decisions/0041-checks-under-a-budget.md`
has the figures. A loop pays for each iteration before it begins. If several references lead to one part, the part is
tested against a value once a check. So references that multiply, or recurse through alternatives, do not multiply the
cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.schemas import evaluated, scalar_keywords
from penstock.language.schemas.budget import Budget, too_costly
from penstock.language.schemas.combined_tests import all_of, object_with_patterns
from penstock.language.schemas.patterns import compiled
from penstock.language.schemas.scalar_keywords import Test, anything, nothing
from penstock.language.schemas.schema_tree import every, follow

_UNEVALUATED = {"unevaluatedItems", "unevaluatedProperties"}


class Validator:
    """The compiled form of one schema document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._tests: dict[int, Test] = {}
        self._words: dict[int, dict[str, Test]] = {}
        parts = self.parts = [part for _, part in every(document)]
        """Every schema of the document."""
        self._referred = Counter(id(follow(document, part["$ref"])) for part in parts if "$ref" in part)
        self.evaluates = any(_UNEVALUATED & part.keys() for part in parts)
        """Whether anything asks what other keywords have looked at: then branches are asked more than once."""
        self._test = self.test(document)

    def fits(self, value: Any, budget: Budget) -> bool:
        """Return whether the value fits. Raises CheckTooCostly if the budget is used up."""
        return self._test(value, budget)

    def test_of(self, part: Any) -> Test:
        """Return the compiled test of a part of the document."""
        if isinstance(part, bool):
            return anything if part else nothing
        return self._tests[id(part)]

    def words_of(self, part: Mapping[str, Any]) -> Mapping[str, Test]:
        """Return the tests of a part's keywords that an error names as a whole, without looking inside."""
        return self._words[id(part)]

    def target(self, reference: Any) -> Any:
        """Return the target of a reference. Raises DefinitionError if it has none."""
        if (node := follow(self.document, reference)) is None:
            raise DefinitionError(
                f"the schema refers to {reference!r}, which is not a part of the schema",
                hint="Correct the schema, and apply it again.",
            )
        return node

    def test(self, part: Any) -> Test:
        """Compile a part of the document, once."""
        if isinstance(part, bool):
            return anything if part else nothing
        existing = self._tests.get(id(part))
        if existing is not None:
            return existing
        # A part may refer to itself. While the part is compiled, this function stands in for its test.
        self._tests[id(part)] = lambda value, budget: self._tests[id(part)](value, budget)
        tests: list[Test] = []
        words: dict[str, Test] = {}
        for word, expected in part.items():
            if (make := _COMPOSED.get(word)) is not None:
                test = make(self, expected, part)
                if word in _WHOLE:
                    words[word] = test
            elif (make_scalar := scalar_keywords.KEYWORDS.get(word)) is not None:
                test = words[word] = make_scalar(expected)
            else:
                continue
            if test is not anything:
                tests.append(test)
        if not _OBJECT.isdisjoint(part):
            tests.append(self._object(part))
        if not _UNEVALUATED.isdisjoint(part):
            tests.append(evaluated.test(self, part))
        self._words[id(part)] = words
        test = self._tests[id(part)] = all_of(tests)
        return test

    def branch(self, part: Any) -> Test:
        """Return the test of a part that applies to the same value as the part around it. The test runs once a check,
        even if several references lead to that part."""
        test = self.test(part)
        return self._once(part, test) if self.evaluates and not isinstance(part, bool) else test

    def _once(self, part: Any, test: Test) -> Test:
        identity = id(part)

        def fits(value: Any, budget: Budget) -> bool:
            place = (identity, id(value))
            verdict = budget.verdicts.get(place)
            if verdict is None:
                budget.spend(5)
                verdict = budget.verdicts[place] = test(value, budget)
            return verdict

        return fits

    def _reference(self, reference: Any, part: Any) -> Test:
        try:
            target = self.target(reference)
        except DefinitionError:
            return lambda value, budget: bool(self.target(reference))
        test = self.test(target)
        if isinstance(target, bool):
            return test
        if self._referred[id(target)] > 1 or id(target) not in self._words or self.evaluates:
            return self._once(target, lambda value, budget: self._tests[id(target)](value, budget))
        return test

    def _object(self, part: Mapping[str, Any]) -> Test:
        properties = {name: self.test(item) for name, item in part.get("properties", {}).items()}
        required = frozenset(part.get("required", ()))
        patterned = [
            (compiled(item), self.test(sub)) for item, sub in part.get("patternProperties", {}).items()
        ]
        other = self.test(part.get("additionalProperties", True))
        if patterned:
            return object_with_patterns(properties, required, patterned, other)

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, dict):
                return True
            budget.left -= 1 + len(value)
            if budget.left < 0:
                raise too_costly()
            if not required <= value.keys():
                return False
            for name, item in value.items():
                test = properties.get(name, other)
                if test is not anything and not test(item, budget):
                    return False
            return True

        return fits

    def _items(self, items: Any, part: Mapping[str, Any]) -> Test:
        test, first = self.test(items), len(part.get("prefixItems", ()))

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, list):
                return True
            budget.spend(len(value))
            for item in value[first:] if first else value:  # noqa: SIM110 (a generator takes twice as long)
                if not test(item, budget):
                    return False
            return True

        return anything if test is anything else fits

    def _prefix_items(self, prefix: Sequence[Any], part: Mapping[str, Any]) -> Test:
        tests = [self.test(item) for item in prefix]

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, list):
                return True
            budget.spend(4 + 2 * min(len(value), len(tests)))
            return all(test(item, budget) for test, item in zip(tests, value, strict=False))

        return fits

    def _contains(self, sub: Any, part: Mapping[str, Any]) -> Test:
        test, highest = self.test(sub), part.get("maxContains")
        least: float = part.get("minContains", 1)

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, list):
                return True
            budget.spend(len(value))
            count = 0
            for item in value:
                if test(item, budget):
                    count += 1
                    if count >= least and highest is None:
                        return True
                    if highest is not None and count > highest:
                        return False
            return count >= least

        return fits

    def _property_names(self, sub: Any, part: Mapping[str, Any]) -> Test:
        test = self.test(sub)

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, dict):
                return True
            budget.spend(3 + len(value))
            return all(test(name, budget) for name in value)

        return fits

    def _any_of(self, branches: Sequence[Any], part: Mapping[str, Any]) -> Test:
        tests = [self.branch(branch) for branch in branches]

        def fits(value: Any, budget: Budget) -> bool:
            for test in tests:
                budget.left -= 1
                if budget.left < 0:
                    raise too_costly()
                if test(value, budget):
                    return True
            return False

        return fits

    def _all_of(self, branches: Sequence[Any], part: Mapping[str, Any]) -> Test:
        return all_of([self.branch(branch) for branch in branches])

    def _one_of(self, branches: Sequence[Any], part: Mapping[str, Any]) -> Test:
        tests = [self.branch(branch) for branch in branches]

        def fits(value: Any, budget: Budget) -> bool:
            budget.spend(len(tests))
            hits = 0
            for test in tests:
                if test(value, budget):
                    hits += 1
                    if hits > 1:
                        return False
            return hits == 1

        return fits

    def _not(self, sub: Any, part: Mapping[str, Any]) -> Test:
        test = self.test(sub)
        return lambda value, budget: not test(value, budget)

    def _if(self, condition: Any, part: Mapping[str, Any]) -> Test:
        test = self.branch(condition)
        then, otherwise = self.branch(part.get("then", True)), self.branch(part.get("else", True))

        def fits(value: Any, budget: Budget) -> bool:
            budget.spend(2)
            return then(value, budget) if test(value, budget) else otherwise(value, budget)

        return fits

    def _dependent_schemas(self, schemas: Mapping[str, Any], part: Mapping[str, Any]) -> Test:
        tests = {name: self.branch(item) for name, item in schemas.items()}

        def fits(value: Any, budget: Budget) -> bool:
            if not isinstance(value, dict):
                return True
            budget.spend(2 + 2 * len(tests))
            return all(name not in value or test(value, budget) for name, test in tests.items())

        return fits


_OBJECT = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
_WHOLE = frozenset({"anyOf", "oneOf", "not", "contains"})
"""The keywords that fail as a whole: an error names them, and nothing inside them."""
_COMPOSED: dict[str, Callable[[Validator, Any, Mapping[str, Any]], Test]] = {
    "$ref": Validator._reference,
    "contains": Validator._contains,
    "items": Validator._items,
    "prefixItems": Validator._prefix_items,
    "propertyNames": Validator._property_names,
    "anyOf": Validator._any_of,
    "allOf": Validator._all_of,
    "oneOf": Validator._one_of,
    "not": Validator._not,
    "if": Validator._if,
    "dependentSchemas": Validator._dependent_schemas,
}
