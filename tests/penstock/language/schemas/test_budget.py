"""The bound of one check: no value costs more than the budget, whatever its schema, and ordinary ones cost little of it."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from penstock.errors import CheckTooCostly, InvalidInput
from penstock.language.schemas import PAYLOAD_CAP, Schema, check_schema
from penstock.language.schemas.budget import STEPS, Budget
from penstock.language.schemas.validator import Validator

CPU_S = 0.3
"""What a check costs at most on the machine on which a step was measured."""
SLOWEST = 4
"""How much slower the machine of a test may be; the bound itself is counted in steps."""


def nested(value: Any, times: int, within: Callable[[Any], Any]) -> Any:
    for _ in range(times):
        value = within(value)
    return value


def copies(part: Any, times: int) -> dict[str, Any]:
    """A schema that holds each item against a part many times."""
    return {"items": {"allOf": [dict(part) for _ in range(times)]}}


_DEEPER = {"$ref": "#/$defs/node"}
UNION = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "oneOf": [
                {"properties": {"a": _DEEPER, "kind": {"const": 1}}, "required": ["kind"]},
                {"properties": {"a": _DEEPER, "kind": {"const": 2}}, "required": ["kind"]},
            ]
        }
    },
}
"""Both alternatives look at all that is below before they differ: exponential without a memory of verdicts."""
LAUGHS = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    | {"d60": {"type": "integer"}},
}
MANY_LAUGHS = {"items": {"$ref": "#/$defs/d0"}, "$defs": LAUGHS["$defs"]}
UNEVALUATED = nested(
    {"properties": {"a": True}}, 40, lambda part: {"allOf": [part], "unevaluatedProperties": True}
)
NAMES = {f"k{n}": n for n in range(18_000)}
ONES = [1] * 100_000
COSTLY: dict[str, tuple[Any, Any]] = {
    "unique items, one by one": ({"uniqueItems": True}, [{"a": n} for n in range(20_000)]),
    "unique items at each depth": (
        {"$ref": "#/$defs/u", "$defs": {"u": {"uniqueItems": True, "items": {"$ref": "#/$defs/u"}}}},
        nested([[n] for n in range(20_000)], 80, lambda value: [value]),
    ),
    "alternatives by items": ({"items": {"anyOf": [{"const": n} for n in range(4_900)]}}, [-1] * 80_000),
    "the last alternative by items": ({"items": {"anyOf": [{"const": n} for n in range(4_900)]}}, [4_899] * 50_000),
    "references that multiply": (LAUGHS, 1),
    "references that multiply by items": (MANY_LAUGHS, list(range(40_000))),
    "branches within branches": (UNEVALUATED, NAMES),
    "branches of unevaluated items": ({"anyOf": [{"contains": {"type": "integer"}}] * 400, "unevaluatedItems": False}, ONES),
    "names by patterns": ({"patternProperties": {f"{n}$": {} for n in range(200)}}, NAMES),
    "a pattern that backtracks": ({"items": {"pattern": "^(a|aa)+$"}}, ["a" * 60 + "!"] * 1_000),
    "a long text": ({"pattern": "(x+x+)+y"}, "x" * 250_000),
    "dependencies by items": ({"items": {"dependentSchemas": {f"k{n}": {} for n in range(8_000)}}}, [{}] * 60_000),
    "many copies of a choice": (copies({"enum": [1.5, [1]]}, 100), [[1]] * 60_000),
    "many copies of an address": (copies({"not": {"format": "ipv6"}}, 100), ["1:1:1:1:1:1:1:x"] * 14_000),
    "many copies of a prefix": (copies({"prefixItems": [{"type": "integer"}]}, 100), [[1]] * 60_000),
    "many copies of two bounds": (copies({"minimum": 0, "multipleOf": 0.5}, 100), [1.5] * 60_000),
    "many copies of names": (copies({"propertyNames": {"minLength": 1}}, 100), [{"a": 1}] * 30_000),
    "an integer too late": ({"items": {"type": "string"}}, ["a"] * 60_000 + [1]),
    "a NUL too late": ({"items": {"type": "string"}}, ["a"] * 60_000 + ["\0"]),
    "thousands of unknown names": ({"properties": {f"n{n}": {} for n in range(8_000)}, "additionalProperties": False}, NAMES),
    "thousands of missing names": ({"required": [f"n{n}" for n in range(14_000)]}, {}),
    "an unknown name of 60,000 characters": (
        {"properties": {"k" * 60_000: {}, "j" * 59_000: {}}, "additionalProperties": False}, {"j" * 59_999: 0},
    ),
    "secrets by alternatives": (
        {"anyOf": [{"items": {"properties": {f"k{n}": {"secret": True}}}} for n in range(1_500)]}, [{"x": 1}] * 20_000,
    ),
}  # fmt: skip

_MEASURE = """
import sys, time, orjson
from penstock.bounds import PAYLOAD_CAP
from penstock.errors import PenstockError
from penstock.language.schemas import Schema, check_schema
from penstock.language.terms.options import Wrong
document, value = orjson.loads(sys.stdin.buffer.read())
Schema({"pattern": "a"}).check("a", cap=9)
began = time.process_time()
schema, told = Schema(document), 0
try:
    schema.check(value, cap=PAYLOAD_CAP)
except PenstockError as error:
    told = len(str(error)) + len(str(error.hint))
checked = time.process_time()
schema.mask(value)
masked = time.process_time()
try:
    check_schema(document)
except Wrong:
    pass
print(checked - began, masked - checked, time.process_time() - masked, told)
"""


@pytest.mark.parametrize("name", COSTLY)
def test_no_check_costs_more_than_its_bound(name: str) -> None:
    """In processor time of a process of its own, the compiling of the schema included; an error stays short."""
    document, value = COSTLY[name]
    assert len(orjson.dumps(value)) <= PAYLOAD_CAP
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE],
        input=orjson.dumps([document, value]),
        cwd=Path(__file__).parents[4],
        capture_output=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    check, mask, declare, told = map(float, done.stdout.split())
    assert check < CPU_S * SLOWEST
    assert mask < CPU_S * SLOWEST
    assert declare < 1.0 * SLOWEST
    assert told < 3_000


@pytest.mark.parametrize("name", COSTLY)
def test_no_check_takes_more_steps_than_its_budget(name: str) -> None:
    document, value = COSTLY[name]
    budget = Budget()
    try:
        Validator(document).fits(value, budget)
    except CheckTooCostly:
        assert budget.left < 0
    else:
        assert budget.left >= -100


INT = {"type": "integer"}
NULL = {"type": "null"}
STEPS_OF: dict[str, tuple[Any, Any, int]] = {
    "a type": (INT, 1, 0),
    "three types": ({"type": ["string", "null", "integer"]}, 1, 3),
    "enum of scalars": ({"enum": [1, 2]}, 1, 1),
    "enum of scalars, a text": ({"enum": [1, "a"]}, "a", 0),
    "enum of lists": ({"enum": [[1]]}, [1], 30),
    "format": ({"format": "date-time"}, "2030-01-02T00:00:00Z", 20 + 2),
    "format that is not enforced": ({"format": "email"}, "x", 0),
    "format of no text": ({"format": "date"}, 1, 0),
    "multipleOf": ({"multipleOf": 2}, 4, 1),
    "multipleOf beyond doubles": ({"multipleOf": 2.0**-1000}, 2.0**1000, 1 + 100),
    "multipleOf of no number": ({"multipleOf": 2}, "x", 0),
    "bounds": ({"minimum": 0, "maximum": 3, "multipleOf": 1}, 2, 3 + 1),
    "unique scalars": ({"uniqueItems": True}, [1, 2, 3], 6),
    "unique lists": ({"uniqueItems": True}, [[1], [2]], 4 + 2 * 30),
    "unique items that are not wanted": ({"uniqueItems": False}, [1, 1], 0),
    "dependent names": ({"dependentRequired": {"a": ["b"], "c": []}}, {"a": 1, "b": 1}, 1 + 2 * 2),
    "dependent names of no object": ({"dependentRequired": {"a": ["b"]}}, [], 0),
    "items": ({"items": INT}, [1] * 10, 10),
    "items that are anything": ({"items": {}}, [1] * 10, 0),
    "items of no list": ({"items": INT}, {}, 0),
    "items beside a type": ({"type": "array", "items": INT}, [1] * 10, 12),
    "items beyond a prefix": ({"items": INT, "prefixItems": [{}]}, [1] * 10, 2 + 10 + 4 + 2),
    "a prefix": ({"prefixItems": [True, INT]}, [1, 2, 3], 4 + 2 * 2),
    "a prefix of a shorter list": ({"prefixItems": [True, INT]}, [1], 4 + 2),
    "a prefix of no list": ({"prefixItems": [INT]}, 1, 0),
    "properties": ({"properties": {"a": {}, "b": {"type": "string"}}}, {"a": 1, "b": "x"}, 1 + 2),
    "required": ({"required": ["a"]}, {"a": 1, "b": 1}, 1 + 2),
    "properties of no object": ({"properties": {"a": INT}}, [1], 0),
    "names by two patterns": ({"patternProperties": {"a": {}, "b": INT}}, {"a": 1, "b": 1}, 2 * 3 + 4 * 4),
    "names by patterns of no object": ({"patternProperties": {"a": {}}}, [1], 0),
    "a pattern": ({"pattern": "a"}, "xa", 4),
    "names of properties": ({"propertyNames": {"minLength": 1}}, {"a": 1, "b": 1}, 3 + 2),
    "names of no object": ({"propertyNames": INT}, ["a"], 0),
    "contains": ({"contains": {"const": 1}}, [2, 3, "1", 1], 4 + 3),
    "contains of no list": ({"contains": INT}, "x", 0),
    "two of all": ({"allOf": [INT, {"minimum": 0}]}, 1, 2),
    "three of all": ({"allOf": [INT, {"minimum": 0}, {"maximum": 3}]}, 1, 3),
    "one of all": ({"allOf": [INT]}, 1, 0),
    "all that say nothing": ({"allOf": [{}, True, {"title": "t"}]}, 1, 0),
    "any of the first": ({"anyOf": [NULL, {"type": "string"}, INT]}, None, 1),
    "any of the last": ({"anyOf": [{"type": "string"}, NULL, INT]}, 1, 3),
    "one of three": ({"oneOf": [{"type": "string"}, NULL, INT]}, None, 3),
    "not": ({"not": NULL}, 1, 0),
    "a condition": ({"if": NULL, "then": INT, "else": INT}, 1, 2),
    "dependent schemas": ({"dependentSchemas": {"a": {"required": ["a"]}, "b": {}}}, {"a": 1}, 2 + 2 * 2 + 2),
    "dependent schemas of no object": ({"dependentSchemas": {"a": INT}}, [], 0),
    "a reference": ({"$ref": "#/$defs/d", "$defs": {"d": INT}}, 1, 0),
    "a reference twice": ({"allOf": [{"$ref": "#/$defs/d"}] * 2, "$defs": {"d": INT}}, 1, 2 + 5),
    "a reference to itself": ({"properties": {"a": {"$ref": "#"}}}, {"a": {"a": {}}}, (1 + 1) + (5 + 1 + 1) + (5 + 1)),
    "unevaluated names": (
        {"properties": {"a": {}}, "unevaluatedProperties": INT}, {"a": 1, "b": 1}, 2 + (1 + 2) + (5 + 2) + (4 + 4),
    ),
    "unevaluated names of a branch": (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": INT}, {"a": 1, "b": 1},
        2 + (5 + 1 + 2) + (5 + 2) + (4 + 4) + 1 + (4 + 4),
    ),
    "unevaluated items": (
        {"prefixItems": [{}], "unevaluatedItems": INT}, [1, 1], 2 + (4 + 2) + (5 + 2) + (4 + 4),
    ),
    "unevaluated items of a branch": (
        {"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": INT}, [1, 1],
        2 + (5 + 4 + 2) + (5 + 2) + (4 + 4) + 1 + (4 + 4),
    ),
    "a schema that says nothing": ({"title": "t", "minContains": 2, "then": False}, 1, 0),
}  # fmt: skip
"""For each way through a check, the steps that it takes. Searching a pattern takes its least here: the clock stands."""


@pytest.mark.parametrize("name", STEPS_OF)
def test_steps_of_a_check_are_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: 1.0)
    schema, value, steps = STEPS_OF[name]
    check, budget = Validator(schema), Budget()
    assert check.fits(value, budget)
    assert STEPS - budget.left == steps
    assert check.fits(value, Budget(steps if "pattern" not in name else 10_000))


UNTIL_THE_NEXT = {"three types", "enum of scalars", "multipleOf", "bounds", "contains"}
"""Steps that are taken without a look at what is left: a check of scalars is over before the next look."""


@pytest.mark.parametrize(
    "name", [name for name, (*_, steps) in STEPS_OF.items() if steps and name not in UNTIL_THE_NEXT]
)
def test_check_ends_where_a_step_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: 1.0)
    schema, value, steps = STEPS_OF[name]
    with pytest.raises(CheckTooCostly):
        Validator(schema).fits(value, Budget(steps - 1))


def test_budget_ends_with_its_last_step() -> None:
    schema = Validator({"allOf": [{"items": {"type": "integer"}}, {"items": {"type": "integer"}}]})
    budget = Budget()
    assert schema.fits([1] * (STEPS // 2 - 1), budget)
    assert budget.left == 0
    with pytest.raises(CheckTooCostly):
        schema.fits([1] * (STEPS // 2), Budget())


def test_recursive_union_costs_its_value_and_not_its_branches() -> None:
    """Not two to the power of its depth: 307 bytes took an executor's connections."""
    check_schema(UNION)
    value = nested({"kind": 2}, 90, lambda inner: {"a": inner, "kind": 2})
    budget = Budget()
    assert Validator(UNION).fits(value, budget)
    assert STEPS - budget.left < 3_000


def test_references_that_multiply_are_checked_once() -> None:
    budget = Budget()
    assert Validator(LAUGHS).fits(1, budget)
    assert STEPS - budget.left < 1_000


def test_ordinary_payloads_are_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full payloads of the kinds that schemas usually describe. A search of a pattern takes a microsecond here: the real time
    depends on what else the machine does."""
    monkeypatch.setattr("time.thread_time", count(0, 1e-6).__next__)
    item = {
        "properties": {"sku": {"type": "string"}, "count": {"type": ["integer", "null"], "minimum": 1}},
        "required": ["sku"],
    }
    for part, value in (
        (item, {"sku": "a", "count": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ({"pattern": "^[a-z]+$"}, "abcdef"),
        ({"format": "date-time"}, "2030-01-01T00:00:00Z"),
        ({"enum": ["a", "b", 1]}, "b"),
    ):
        schema = {"type": "array", "items": part, "uniqueItems": False}
        many = [value] * (PAYLOAD_CAP // (len(orjson.dumps(value)) + 1) - 1)
        Schema(schema).check(many, cap=PAYLOAD_CAP)


def test_refusal_names_no_value() -> None:
    with pytest.raises(InvalidInput) as refused:
        Schema({"items": {"pattern": "^(a|aa)+$", "secret": True}}).validate(["a" * 60 + "!"] * 10)
    assert "aaaaaaaa" not in str(refused.value)


def test_value_too_costly_to_mask_is_secret() -> None:
    document, value = COSTLY["secrets by alternatives"]
    schema = Schema(document)
    assert schema.mask(value) == "***"
    assert "1" in schema.secrets_of(value)
