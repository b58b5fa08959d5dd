"""The split of the tests: `make test` runs what a change needs, `make proof` runs the rest, pytest by itself runs both.

A proof plays many cases of one promise (crash points, orders of a race, hostile servers), or all parts of a subject in a browser
or in another program. proofs.toml names the proofs, and representatives of them that `make test` runs all the same.
A test that is played on both transports belongs to `make test` on one of them, and to `make proof` on the other.
Of a long table that proofs.toml lists, `make test` runs a few rows of each test, and `make proof` runs the others.
`make proof SHARE=3/8` runs the third of eight shares, by files. `.ci/run` has no time for all, and takes the next one each time.
"""

from __future__ import annotations

import os
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

FILE = Path(__file__).with_suffix(".toml")
VARIABLE = "PENSTOCK_TEST_PART"
SHARE = "PENSTOCK_TEST_SHARE"
TRANSPORTS = ("postgres", "rabbitmq")
ROWS = 3
"""Rows of each test of a long table that `make test` runs."""


@cache
def read() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the prefixes of node ids of proofs, and those of their representatives."""
    document = tomllib.loads(FILE.read_text())
    return tuple(document["proofs"]), tuple(document["representatives"])


@cache
def tables() -> tuple[str, ...]:
    """Return the prefixes of node ids of tests with long tables."""
    return tuple(tomllib.loads(FILE.read_text())["tables"])


def begins(node: str, prefixes: Iterable[str]) -> bool:
    """Return true if a node id is one of these prefixes or lies below it."""
    return any(
        node == prefix or node.startswith((f"{prefix}/", f"{prefix}::", f"{prefix}[")) for prefix in prefixes
    )


def is_proof(node: str) -> bool:
    """Return true if proofs.toml leaves this test to `make proof`."""
    proofs, representatives = read()
    return begins(node, proofs) and not begins(node, representatives)


def transport_of(name: str) -> str:
    """Return the transport on which a test of this name is played first. About as many are played on each."""
    return TRANSPORTS[crc32(name.encode()) % len(TRANSPORTS)]


def part() -> str | None:
    """Return the part of the tests that this run is about: `test`, `proof`, or None for all."""
    value = os.environ.get(VARIABLE)
    assert value in (None, "test", "proof"), f"{VARIABLE} is test or proof, not {value}"
    return value


def is_shared_out(file: str) -> bool:
    """Return true if another share of the tests has this file. A share is written 3/8: the third of eight."""
    number, _, shares = os.environ.get(SHARE, "").partition("/")
    return bool(shares) and crc32(file.encode()) % int(shares) != int(number) - 1


def is_left_out(path: Path, root: Path) -> bool:
    """Return true if this run needs no test of a file, so that it need not be imported."""
    node = path.relative_to(root).as_posix()
    if path.suffix != ".py" or not path.name.startswith("test_"):
        return False
    if is_shared_out(node):
        return True
    return part() == "test" and is_proof(node) and not any(name.startswith(f"{node}::") for name in read()[1])


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this run's part."""
    if part() is None:
        return
    transports: defaultdict[str, set[str]] = defaultdict(set)
    for item in items:
        transports[_function(item)].add(_transport(item))
    first = {
        item.nodeid
        for item in items
        if not is_proof(item.nodeid)
        and (len(transports[_function(item)]) == 1 or _transport(item) == transport_of(_name(item)))
    }
    first -= _further_rows(first)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if (item.nodeid in first) is (part() == "test") else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _further_rows(nodes: Iterable[str]) -> set[str]:
    """Return the rows of long tables that are left to `make proof`. Which stay depends on nothing but their names."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if begins(node, tables()):
            rows[node.partition("[")[0]].append(node)
    return {
        node
        for all_rows in rows.values()
        for node in sorted(all_rows, key=lambda row: crc32(row.encode()))[ROWS:]
    }


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0].rpartition("::")[2]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _transport(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("transport", "")) if callspec else ""
