"""The bound of one check: no value costs more than the budget, whatever its schema, and ordinary ones cost little of it."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
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
from penstock.errors import PenstockError
from penstock.language.schemas import Schema, check_schema
from penstock.language.terms.options import Wrong
document, value = orjson.loads(sys.stdin.buffer.read())
Schema({"pattern": "a"}).check("a")
began = time.process_time()
schema, told = Schema(document), 0
try:
    schema.check(value)
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


@pytest.mark.parametrize(
    ("schema", "value", "steps"),
    [
        ({"type": "integer"}, 1, 0),
        ({"items": {"type": "integer"}}, [1] * 10, 10),
        ({"type": "array", "items": {"type": "integer"}}, [1] * 10, 12),
        ({"properties": {"a": {}, "b": {"type": "string"}}}, {"a": 1, "b": "x"}, 3),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}]}, None, 2),
        ({"oneOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}]}, None, 3),
        ({"uniqueItems": True}, [1, 2, 3], 6),
        ({"minimum": 0, "maximum": 3, "multipleOf": 1}, 2, 4),
        ({"contains": {"const": 1}}, [2, 3, "1"], 3 + 2),
    ],
)
def test_steps_of_a_check_are_counted(schema: Any, value: Any, steps: int) -> None:
    budget = Budget()
    Validator(schema).fits(value, budget)
    assert STEPS - budget.left == steps


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


def test_ordinary_payloads_are_within_the_budget() -> None:
    """Full payloads of the kinds that schemas usually describe."""
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
        Schema(schema).check(many)


def test_refusal_names_no_value() -> None:
    with pytest.raises(InvalidInput) as refused:
        Schema({"items": {"pattern": "^(a|aa)+$", "secret": True}}).check(["a" * 60 + "!"] * 10)
    assert "aaaaaaaa" not in str(refused.value)


def test_value_too_costly_to_mask_is_secret() -> None:
    document, value = COSTLY["secrets by alternatives"]
    schema = Schema(document)
    assert schema.mask(value) == "***"
    assert "1" in schema.secrets_of(value)
