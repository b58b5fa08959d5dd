"""Faults of the check of schemas, one or more for each keyword: each must be found by comparing verdicts with the libraries.

A fault is planted into the functions of the running process: whoever imported a function has the faulty one, until it is mended.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from penstock.language.schemas import (
    combined_tests,
    equality,
    evaluated,
    patterns,
    scalar_keywords,
    schema_tree,
    validator,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A text of a module that becomes another one. `keyword` is the one whose cases must find it."""

    keyword: str
    module: ModuleType
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.keyword}: {self.new}"


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Replace the code of the functions that differ, and the entries of the tables, as long as the context lasts."""
    source = inspect.getsource(fault.module)
    if source.count(fault.old) != 1:
        raise AssertionError(
            f"stands {source.count(fault.old)} times in {fault.module.__name__}: {fault.old!r}"
        )
    faulty: dict[str, Any] = {"__name__": fault.module.__name__}
    exec(compile(source.replace(fault.old, fault.new), fault.module.__name__, "exec"), faulty)
    functions = dict(_functions(vars(fault.module)))
    codes = {function: function.__code__ for function in functions.values()}
    tables = {name: dict(table) for name, table in vars(fault.module).items() if _is_table(table)}
    try:
        for name, function in _functions(faulty):
            if name in functions:
                functions[name].__code__ = function.__code__
        for name in tables:
            vars(fault.module)[name].update(faulty[name])
        yield
    finally:
        for function, code in codes.items():
            function.__code__ = code
        for name, table in tables.items():
            vars(fault.module)[name].update(table)


def _functions(names: Mapping[str, Any]) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions and methods that a module defines itself."""
    for name, thing in names.items():
        if isinstance(thing, FunctionType) and thing.__module__ == names["__name__"]:
            yield name, thing
        elif isinstance(thing, type) and thing.__module__ == names["__name__"]:
            for method, function in vars(thing).items():
                if isinstance(function, FunctionType):
                    yield f"{name}.{method}", function


def _is_table(thing: Any) -> bool:
    return (
        isinstance(thing, dict)
        and bool(thing)
        and all(isinstance(value, FunctionType | partial) for value in thing.values())
    )


_V, _S, _E, _C, _T = validator, scalar_keywords, evaluated, combined_tests, schema_tree
FAULTS = (
    Fault("type", _S, "value.__class__ is float and value.is_integer()", "False"),
    Fault("type", _S, 'isinstance(value, bool),\n    "null"', 'isinstance(value, int),\n    "null"'),
    Fault(
        "type",
        _S,
        "            if test(value, budget):\n                return True\n        return False",
        "            return test(value, budget)\n        return False",
    ),
    Fault("enum", _S, "return value in allowed_keys", "return True"),
    Fault("enum", _S, "not any(isinstance(choice, Mapping | list) for choice in choices)", "True"),
    Fault(
        "const",
        _S,
        "return not isinstance(value, dict | list) and key",
        "return isinstance(value, dict | list) or key",
    ),
    Fault("const", equality, "    if value is True:\n        return _TRUE\n", ""),
    Fault("const", equality, "return int(value)", "return value"),
    Fault("pattern", patterns, "pattern.search(", "pattern.match("),
    Fault("format", _S, "return formats.fits(name, value)", "return True"),
    Fault("multipleOf", _S, "if not isinstance(factor, float)", "if isinstance(value, int)"),
    Fault("multipleOf", _S, "return (Fraction(value) / Fraction(factor)).denominator == 1", "return False"),
    Fault(
        "minimum",
        _S,
        '"minimum": partial(_bound_of_numbers, operator.ge)',
        '"minimum": partial(_bound_of_numbers, operator.gt)',
    ),
    Fault(
        "maximum",
        _S,
        '"maximum": partial(_bound_of_numbers, operator.le)',
        '"maximum": partial(_bound_of_numbers, operator.lt)',
    ),
    Fault(
        "exclusiveMinimum",
        _S,
        "partial(_bound_of_numbers, operator.gt)",
        "partial(_bound_of_numbers, operator.ge)",
    ),
    Fault(
        "exclusiveMaximum",
        _S,
        "partial(_bound_of_numbers, operator.lt)",
        "partial(_bound_of_numbers, operator.le)",
    ),
    Fault(
        "minLength",
        _S,
        "partial(_bound_of_length, str, operator.ge)",
        "partial(_bound_of_length, str, operator.gt)",
    ),
    Fault(
        "maxLength",
        _S,
        "partial(_bound_of_length, str, operator.le)",
        "partial(_bound_of_length, str, operator.lt)",
    ),
    Fault(
        "maxLength",
        _S,
        "or holds(len(value), bound)",
        "or holds(len(value.encode() if isinstance(value, str) else value), bound)",
    ),
    Fault(
        "minItems",
        _S,
        "partial(_bound_of_length, list, operator.ge)",
        "partial(_bound_of_length, list, operator.gt)",
    ),
    Fault(
        "maxItems",
        _S,
        "partial(_bound_of_length, list, operator.le)",
        "partial(_bound_of_length, list, operator.lt)",
    ),
    Fault(
        "minProperties",
        _S,
        "partial(_bound_of_length, dict, operator.ge)",
        "partial(_bound_of_length, dict, operator.gt)",
    ),
    Fault(
        "maxProperties",
        _S,
        "partial(_bound_of_length, dict, operator.le)",
        "partial(_bound_of_length, dict, operator.lt)",
    ),
    Fault("uniqueItems", _S, "return fits if is_required else anything", "return fits"),
    Fault("uniqueItems", _S, "return len(keys) == len(value)", "return len(keys) >= len(value) - 1"),
    Fault("required", _V, "if not required <= value.keys()", "if not required < value.keys()"),
    Fault("dependentRequired", _S, "name not in value or dependents", "name in value or dependents"),
    Fault(
        "$ref",
        _V,
        "self._tests[id(part)] = lambda value, budget: self._tests[id(part)](value, budget)",
        "self._tests[id(part)] = nothing",
    ),
    Fault("$ref", _V, "place = (identity, id(value))", "place = (identity, 0)"),
    Fault("$ref", _T, '.replace("~1", "/").replace("~0", "~")', '.replace("~0", "~")'),
    Fault(
        "$ref",
        _V,
        "if isinstance(target, bool):\n            return test",
        "if isinstance(target, bool):\n            return anything",
    ),
    Fault(
        "properties",
        _V,
        "test = properties.get(name, other)",
        "test = properties.get(name, other) if other is anything else other",
    ),
    Fault("patternProperties", _C, "tests += [test for", "tests = tests or [test for"),
    Fault("additionalProperties", _C, "[properties[name]] if name in properties else []", "[]"),
    Fault(
        "additionalProperties",
        _V,
        "test = properties.get(name, other)",
        "test = properties.get(name, anything)",
    ),
    Fault("additionalProperties", _C, "for test in tests or [other])", "for test in [*tests, other])"),
    Fault("additionalProperties", _C, "for test in tests or [other])", "for test in tests)"),
    Fault(
        "propertyNames",
        _V,
        "return all(test(name, budget) for name in value)",
        "return any(test(name, budget) for name in value)",
    ),
    Fault("dependentSchemas", _V, "all(name not in value or test(value, budget)", "all(test(value, budget)"),
    Fault("items", _V, "for item in value[first:] if first else value:", "for item in value:"),
    Fault(
        "items",
        _V,
        "for item in value[first:] if first else value:",
        "for item in value[first + 1:] if first else value:",
    ),
    Fault(
        "prefixItems",
        _V,
        "for test, item in zip(tests, value, strict=False))",
        "for test, item in zip(tests[1:], value, strict=False))",
    ),
    Fault(
        "prefixItems",
        _V,
        "return all(test(item, budget) for test, item",
        "return len(value) >= len(tests) and all(test(item, budget) for test, item",
    ),
    Fault(
        "prefixItems",
        _V,
        "return all(test(item, budget) for test, item",
        "return any(test(item, budget) for test, item",
    ),
    Fault("contains", _V, 'part.get("minContains", 1)', 'part.get("minContains", 0)'),
    Fault("minContains", _V, "if count >= least and highest is None", "if highest is None"),
    Fault("minContains", _V, "            return count >= least", "            return count >= 1"),
    Fault(
        "maxContains",
        _V,
        "highest is not None and count > highest",
        "highest is not None and count >= highest",
    ),
    Fault(
        "allOf",
        _C,
        "return first(value, budget) and second(value, budget)",
        "return first(value, budget) or second(value, budget)",
    ),
    Fault(
        "allOf",
        _C,
        "            if not test(value, budget):\n                return False\n        return True",
        "            return test(value, budget)\n        return True",
    ),
    Fault(
        "anyOf",
        _V,
        "                if test(value, budget):\n                    return True\n            return False",
        "                return test(value, budget)\n            return False",
    ),
    Fault("oneOf", _V, "return hits == 1", "return hits >= 0"),
    Fault(
        "oneOf",
        _V,
        "                    if hits > 1:\n                        return False\n",
        "                    return True\n",
    ),
    Fault("not", _V, "return lambda value, budget: not test(value, budget)", "return test"),
    Fault(
        "if",
        _V,
        "return then(value, budget) if test(value, budget) else otherwise(value, budget)",
        "return then(value, budget)",
    ),
    Fault("then", _V, 'self.branch(part.get("then", True))', "anything"),
    Fault("else", _V, 'self.branch(part.get("else", True))', "anything"),
    Fault("unevaluatedProperties", _E, '"additionalProperties" in part or ', ""),
    Fault(
        "unevaluatedProperties",
        _E,
        '("unevaluatedProperties" in part and not is_top)',
        '("unevaluatedProperties" in part)',
    ),
    Fault(
        "unevaluatedProperties",
        _E,
        "names.update(name for name in value if search(compiled(pattern), name, budget))",
        "pass",
    ),
    Fault(
        "unevaluatedProperties",
        _E,
        "        names |= _names(validator, branch, value, budget)",
        "        pass",
    ),
    Fault(
        "unevaluatedProperties",
        _E,
        "    if validator.branch(branch)(value, budget):\n        yield branch",
        "    yield branch",
    ),
    Fault("unevaluatedProperties", _E, '            yield part["if"]\n', ""),
    Fault("unevaluatedProperties", _E, 'part.get("else", True), value', 'part.get("then", True), value'),
    Fault(
        "unevaluatedProperties",
        _E,
        "if isinstance(value, dict) and name in value:",
        "if isinstance(value, dict):",
    ),
    Fault(
        "unevaluatedProperties",
        _E,
        '        yield from _fitting(validator, validator.target(part["$ref"]), value, budget)',
        "        pass",
    ),
    Fault("unevaluatedItems", _E, '"items" in part or ', ""),
    Fault("unevaluatedItems", _E, 'part.get("prefixItems", ())', "()"),
    Fault(
        "unevaluatedItems",
        _E,
        'set(range(min(len(part.get("prefixItems", ())), len(value))))',
        'set(range(len(value))) if "prefixItems" in part else set()',
    ),
    Fault(
        "unevaluatedItems",
        _E,
        "places.update(place for place, item in enumerate(value) if test(item, budget))",
        "pass",
    ),
    Fault(
        "unevaluatedItems", _E, "        places |= _items(validator, branch, value, budget)", "        pass"
    ),
    Fault("unevaluatedItems", _E, "isinstance(value, dict) and name in value", "name in value"),
    Fault("unevaluatedItems", _E, '("unevaluatedItems" in part and not is_top)', "False"),
)
