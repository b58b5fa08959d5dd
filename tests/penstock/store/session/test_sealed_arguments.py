"""The list of arguments with values: it fits the statements that there are, and each kind opens to what was sealed."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import penstock.store
from penstock.store.session.sealed_arguments import STATEMENTS, places_of, sealed_argument
from penstock.store.session.sealed_values import DataKey, digest_key, opened

RAW = bytes(range(32))
KEY = DataKey(("acme", 1), AESGCM(RAW), digest_key(RAW))
MARKER = "zebra"


class Ring:
    """The one key of these tests."""

    def cipher(self, number: tuple[str, int]) -> AESGCM | None:
        return KEY.cipher if number == KEY.number else None


def statements() -> Iterator[str]:
    for module in pkgutil.walk_packages(penstock.store.__path__, "penstock.store."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.isupper() and isinstance(value, str) and "$1" in value:
                yield value


def test_each_entry_fits_a_statement_with_such_arguments() -> None:
    texts = set(statements())
    for piece, places in STATEMENTS.items():
        fitting = [text for text in texts if piece in text and places_of(text) is places]
        assert fitting, piece
        for text in fitting:
            count = max(int(number) for number in re.findall(r"\$(\d+)", text))
            assert all(max(place.position, place.of) <= count for place in places), (piece, count)


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "json": ({}, [MARKER, {"a": MARKER}, 1]),
    "parameters": ({"paths": ("customer", "order.id")}, {"customer": MARKER, "order": {"id": MARKER, "x": 1}}),
    "secrets": ({}, {"a": f"{MARKER} {{{{ secrets.x }}}}", "$secrets": [[["a"], [MARKER, {"secret": "x"}]]]}),
    "wait": (
        {"action": "wait_for_event"},
        {"trigger": "t.t", "timeout": 3, "path": ["payload", "x"], "key": MARKER, "filter": MARKER, "bound": {"a": MARKER}},
    ),
    "inquiry": (
        {"action": "inquiry"},
        {"prompt": MARKER, "schema": {}, "assignee": "ada", "timeout": 3, "default": MARKER},
    ),
    "options": ({}, {"timeouts": {"total": 3}, "context": {"a": MARKER}}),
    "error": ({}, {"type": "ValueError", "message": MARKER, "traceback": MARKER, "steps": [["a", 1]], "told": 3}),
    "carry": ({"ends_as": "requested"}, {"state": MARKER, "answers": [MARKER]}),
    "asked": ({"ends_as": "waiting"}, {"prompt": MARKER, "default": [MARKER], "resume": {"answers": [MARKER], "state": MARKER}}),
    "completed": ({"ends_as": "completed"}, {"a": MARKER}),
    "head": ({}, {"phase": "ended", "faults": [{"message": MARKER}], "outcome": ["failed", {"message": MARKER}]}),
    "record": ({}, {"status": "failed", "result": MARKER, "error": {"a": MARKER}, "fan": {"total": 2, "first_error": MARKER}}),
    "items": ({}, [MARKER, 2, {"a": MARKER}]),
}  # fmt: skip
KINDS = {
    "secrets": "parameters",
    "wait": "parameters",
    "inquiry": "parameters",
    "carry": "ending",
    "asked": "ending",
}
KINDS["completed"] = "ending"


@pytest.mark.parametrize("case", CASES)
def test_argument_hides_its_value_and_opens_to_it(case: str) -> None:
    more, value = CASES[case]
    text = orjson.dumps(value).decode()
    sealed = sealed_argument(KINDS.get(case, case), KEY, text, **more)  # type: ignore[arg-type]
    assert MARKER not in sealed
    assert set(re.findall(r'\$sealed(?:"\s*:\s*"|:)\d+\.([^."]+)\.', sealed)) == {"acme"}
    # PostgreSQL orders the members of an object by their length.
    stored = orjson.dumps(_ordered(orjson.loads(sealed))).decode()
    assert orjson.loads(opened(Ring(), stored, "acme")) == value
    assert MARKER not in opened(Ring(), stored, "another")


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value, key=lambda name: (len(name), name))}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def test_text_and_body_open_and_changed_tokens_stay_closed() -> None:
    text = sealed_argument("text", KEY, MARKER)
    assert opened(Ring(), text, None) == MARKER
    assert opened(Ring(), sealed_argument("letter", KEY, b"\xff\x00"), None) == b"\xff\x00"
    for changed in (text.replace("acme", "acm3"), text[:-6] + "AAAAA=", text.replace(":1.", ":2.")):
        assert opened(Ring(), changed, None) == changed


def test_digests_tell_equal_values_of_one_tenant_alone() -> None:
    other = DataKey(("other", 1), KEY.cipher, digest_key(b"x" * 32))
    assert (
        sealed_argument("digest", KEY, "a")
        == sealed_argument("digest", KEY, "a")
        != sealed_argument("digest", KEY, "b")
    )
    assert sealed_argument("digest", KEY, "a") != sealed_argument("digest", other, "a")
