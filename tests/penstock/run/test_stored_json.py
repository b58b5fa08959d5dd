"""The stored form of JSON, compared with that of a real PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.run.stored_json import as_stored, stored_form, stored_value
from tests.servers.postgres import Postgres

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
NUMBERS = (
    st.integers(-(2**63), 2**64 - 1).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: orjson.dumps(number).decode())
    | st.from_regex(r"-?(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,4})?[eE][+-]?[0-9]{1,2}", fullmatch=True)
    | st.sampled_from(["-0", "-0.0", "-0.00", "0e5", "-0e-5", "1e16", "1e19", "2e19", "1.0e2", "100.0e-1"])
)
SCALARS = (
    NUMBERS | st.sampled_from(["null", "true", "false"]) | NAMES.map(lambda text: orjson.dumps(text).decode())
)


def _array(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{orjson.dumps(name).decode()}: {value}" for name, value in members) + "}"


DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(_array)
        | st.lists(st.tuples(NAMES, inner), max_size=5).map(_object)  # with doubled names
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def runner() -> Any:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def connection(runner: asyncio.Runner, postgres_server: Postgres) -> Any:
    connection = runner.run(asyncpg.connect(postgres_server.dsn()))
    yield connection
    runner.run(connection.close())


def test_stored_value_equals_that_of_postgresql(runner: asyncio.Runner, connection: Any) -> None:
    @given(DOCUMENTS)
    @example('{"bb": 1, "a": 2, "é": 3, "b": 4, "bb": -0.0}')
    @example('["-0.0 and 1e16", "\\\\", 1e16, 18446744073709551615e0, 18446744073709551616e0, 1e-400]')
    def check(document: str) -> None:
        text = runner.run(connection.fetchval("select $1::text::jsonb::text", document))
        assert repr(stored_value(document.encode())) == repr(orjson.loads(text))

    check()


def test_deeply_nested_value_is_converted() -> None:
    document = b'{"bb": ' * 500 + b"1e2" + b', "a": 1}' * 500
    value = stored_value(document)
    for _ in range(500):
        assert list(value) == ["a", "bb"]
        value = value["bb"]
    assert repr(value) == "100"


def test_python_value_is_converted() -> None:
    assert repr(as_stored({"bb": -0.0, "a": (1e16,)})) == "{'a': [10000000000000000], 'bb': 0.0}"


def test_documents_that_are_stored_alike_have_one_form() -> None:
    assert stored_form(b'{"a":1e16,"bb":-0.0}') == stored_form(b'{"a":10000000000000000,"bb":0.0}')
    assert stored_form(b'{"a":"1e16"}') == b'{"a":"1e16"}'
    assert len({stored_form(b'{"a":%s}' % number) for number in (b"1", b"1.0", b"1e-7", b"0")}) == 4
