from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.language.schemas.fault_texts import fault_text
from penstock.language.schemas.faults import Fault

LONG = "n" * 101
CUT = "n" * 100 + "..."


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault((), "type", "string", 1), "it: expected string, got integer"),
        (Fault(("a",), "type", ["string", "null"], 1.5), "it.a: expected string or null, got number"),
        (Fault((0,), "type", "string", {}), "it[0]: expected string, got object"),
        (Fault(("a", 0, "b"), "type", "string", []), "it.a[0].b: expected string, got array"),
        (Fault((0, "a"), "type", "integer", "1"), "it[0].a: expected integer, got string"),
        (Fault((), "type", "string", True), "it: expected string, got boolean"),
        (Fault((), "type", "string", None), "it: expected string, got null"),
        (Fault((), "type", "string", date(2030, 1, 2)), "it: expected string, got date"),
        (Fault((LONG,), "type", "string", 1), f"it.{CUT}: expected string, got integer"),
        (Fault(("n" * 100,), "type", "string", 1), f"it.{'n' * 100}: expected string, got integer"),
        (Fault((), "required", [], {}, ("b",)), "it: b is missing"),
        (Fault((), "required", [], {}, ("b", "a")), "it: a, b are missing"),
        (Fault((), "required", [], {}, (LONG,)), f"it: {CUT} is missing"),
        (
            Fault((), "required", [], {}, tuple(f"k{n}" for n in range(10))),
            "it: k0, k1, k2, k3, k4, k5, k6, k7, k8, k9 are missing",
        ),
        (
            Fault((), "required", [], {}, (*(f"k{n}" for n in range(9)), "k90", "k91")),
            "it: k0, k1, k2, k3, k4, k5, k6, k7, k8, k90 and 1 more are missing",
        ),
        (Fault((), "additionalProperties", False, {}, ("b", "a")), "it: unknown 'a', 'b'"),
        (Fault((), "unevaluatedProperties", False, {}, ("a",)), "it: unknown 'a'"),
        (Fault((), "additionalProperties", False, {}, (LONG,)), f"it: unknown '{CUT}'"),
        (
            Fault((), "additionalProperties", False, {}, tuple(f"k{n:04}" for n in range(2_000))),
            f"it: unknown {', '.join(repr(f'k{n:04}') for n in range(10))} and 1,990 more",
        ),
        (
            Fault((), "additionalProperties", False, {}, tuple(f"k{n}" for n in range(10))),
            f"it: unknown {', '.join(repr(f'k{n}') for n in range(10))}",
        ),
        (Fault((), "enum", ["a", 1], 2), 'it: expected one of ["a",1]'),
        (Fault((), "enum", ["x" * 116], 2), f'it: expected one of ["{"x" * 116}"]'),
        (Fault((), "enum", ["x" * 117], 2), f'it: expected one of ["{"x" * 117}"...'),
        (Fault((), "anyOf", [{}, {}], 2), "it: fits none, or too many, of the 2 forms allowed"),
        (Fault((), "oneOf", [{}, {}, {}], 2), "it: fits none, or too many, of the 3 forms allowed"),
        (Fault((), None, False, 2), "it: nothing is allowed here"),
        (Fault((), "minimum", 3, 2), "it: does not satisfy minimum: 3"),
        (Fault((), "const", {"a": [None]}, 2), 'it: does not satisfy const: {"a":[null]}'),
    ],
)
def test_fault_is_told_with_its_place_and_expectation(fault: Fault, text: str) -> None:
    told, hint = fault_text(fault, "it")
    assert told == text
    assert (hint is not None) is (fault.word in ("additionalProperties", "unevaluatedProperties"))


@pytest.mark.parametrize(
    ("names", "known", "hint"),
    [
        (("amonut",), ("amount", "customer"), "Did you mean 'amount'?"),
        (("zz", "amonut"), ("amount",), "Did you mean 'amount'?"),
        (("x" * 101,), ("x" * 100,), f"Did you mean '{'x' * 100}'?"),
        (("q",), ("amount",), "Available: amount."),
        (("q",), (), "None is available."),
    ],
)
def test_hint_of_an_unknown_name_is_the_nearest_one(names: tuple[str, ...], known: Any, hint: str) -> None:
    assert fault_text(Fault((), "additionalProperties", False, {}, names, known), "it")[1] == hint
