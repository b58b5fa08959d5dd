"""A result store, by itself: what it takes, what it gives, what it says when it cannot."""

from __future__ import annotations

import builtins
from typing import Any
from uuid import UUID

import fsspec
import orjson
import pytest

from penstock.errors import ConfigurationError, InvalidInput, MissingExtra
from penstock.store.executions.stored_results import StoredResults

RUN = UUID(int=7)


@pytest.fixture
def store() -> StoredResults:
    fsspec.filesystem("memory").store.clear()
    return StoredResults("memory://results/of/tests", 1000)


async def put(store: StoredResults, value: Any) -> Any:
    return orjson.loads(await store.put(RUN, orjson.dumps(value)))


async def test_a_stored_value_is_resolved_wherever_it_is_referred_to(store: StoredResults) -> None:
    rows, name = await put(store, [1, 2, 3]), await put(store, "née")
    given = {"rows": rows, "more": [rows, {"name": name}, 1], "none": None}
    assert await store.resolved(given) == {
        "rows": [1, 2, 3],
        "more": [[1, 2, 3], {"name": "née"}, 1],
        "none": None,
    }
    assert await store.loads(orjson.dumps(given).decode()) == await store.resolved(given)
    assert given["rows"] == rows


async def test_a_second_try_writes_the_same_file(store: StoredResults) -> None:
    assert await put(store, [1]) == await put(store, [1]) != await put(store, [2])
    assert len(fsspec.filesystem("memory").find("/results")) == 2


@pytest.mark.parametrize(
    "value",
    [
        {"$stored": "2026-01-01/x.json", "bytes": 1},
        {"$stored": "2026-01-01/../../x", "bytes": 1},
        {"$stored": 1, "bytes": 1},
        {"$stored": f"2026-01-01/{RUN}-{'0' * 64}.json"},
        {"$stored": f"2026-01-01/{RUN}-{'0' * 64}.json", "bytes": 1, "more": 1},
        {"$stored": f"/2026-01-01/{RUN}-{'0' * 64}.json", "bytes": 1},
    ],
)
async def test_a_value_that_is_not_a_reference_stays_as_it_is(store: StoredResults, value: Any) -> None:
    assert await store.resolved({"given": value}) == {"given": value}


async def test_no_more_is_read_than_may_be(store: StoredResults) -> None:
    many = [await put(store, "x" * 400 + str(n)) for n in range(3)]
    with pytest.raises(InvalidInput, match="at most 1,000 bytes are read") as refused:
        await store.resolved(many)
    assert "PENSTOCK_RESULT_STORE_CAP" in str(refused.value.hint)
    assert await store.resolved([many[0], many[0], many[0], many[1]])  # each is read once


async def test_one_that_cannot_be_used_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    StoredResults(None, 1).open()
    for url in ("nosuch://there", "hdfs://not-installed/here"):
        with pytest.raises(ConfigurationError, match="PENSTOCK_RESULT_STORE cannot be used"):
            StoredResults(url, 1).open()
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("fsspec"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install '.+\[store\]'"):
        StoredResults("memory://there", 1).open()
