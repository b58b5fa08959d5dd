"""The rules of the house find what they are there to find."""

from __future__ import annotations

from importlib import import_module
from itertools import cycle
from pathlib import Path

import pytest

from tests.house_rules import (
    ADVICE,
    JSON_READERS,
    LONGEST,
    LONGEST_FUNCTION,
    OUTSIDE_ROOMS,
    PUBLIC,
    PUBLIC_PAGE,
    SQL_ROOMS,
    UNMARKED_CUTS,
    broken,
)

# Put together, so that this file does not break the rules that it tests.
HOME = "/".join(["", "home", "someone", "penstock"])
INDEX = "-".join(["", "", "index", "url x"])


def function(name: str, lines: int = 3, comment: str = "-- Does it.\n") -> str:
    body = "    null;\n" * (lines - 3)
    return f"{comment}create or replace function {name}() returns void language plpgsql as $$\nbegin\n{body}end $$;\n"


STATEMENTS = (
    "select 1",
    "\nSELECT a\nfrom b\n",
    "insert into a (b) values (1)",
    "update a as x set b = 1",
    "delete from a",
    "\nwith recursive a (b) as (select 1) select * from a",
    "with a as materialized (select 1) delete from a",
    "create or replace function a() returns void",
    'create schema if not exists "a"',
    "alter table a add b integer",
    "drop table if exists a",
    "listen penstock",
    "notify penstock, 'a'",
    "truncate a, b",
    "lock table a in share mode",
    "copy a (b) from stdin",
    "set local lock_timeout = 1",
)
LONG_LOCKS = (
    "create index a on execution (status)",
    "create unique index a\non only execution (status)",
    "alter table execution alter column attempt type bigint",
    "alter table execution alter attempt set data type bigint",
    "alter table execution alter column task set not null",
    "alter table execution add constraint a check (attempt > 0)",
    "alter table only execution add foreign key (parent) references execution",
    "vacuum full execution",
)
SHORT_LOCKS = (
    "create index concurrently a on execution (status)",
    "create table a (id integer); create index b on a (id)",
    "alter table execution add column note text",
    "alter table execution add column kind text not null default 'a'",
    "alter table execution add constraint a check (attempt > 0) not valid",
)
SENTENCES = (
    "Create the database with createdb, or correct the address.",
    "Create or update the schema. Safe to run any time.",
    "Update it: Penstock needs PostgreSQL 14 or later.",
    "Drop what it remembers.",
    "Listen on a port.",
    "With a limit as low as this one (see above) nothing starts.",
    "listen",
    "notify",
)
"""Not SQL, though they begin with a word of it."""


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("common/__init__.py", "", "shadow"),
        ("common/penstock/a.py", "import penstock_worker.main", "common imports the service"),
        ("services/penstock_worker/a.py", "from penstock_executor import x", "imports another service"),
        *(
            ("extras/penstock-import/penstock_import/a.py", text, "is not public")
            for text in (
                "import penstock.errors",
                "from penstock import language",
                "from penstock.language import expressions",
                "from penstock.language.expressions import equality",
                "from penstock.cli.output import table",
                "from penstock.run.task_executors import asyncio",
                "from penstock.store.session import database",
                "def f():\n    from penstock.extras import require",
                "from penstock_worker.executors.cluster_attempt import frames",
                "from penstock_dask.executor import DaskExecutor",
            )
        ),
        (
            "services/penstock_worker/a.py",
            "def f():\n    import penstock_executor",
            "imports another service",
        ),
        ("migrations/versions/a.py", "from penstock.language.moves import x", "imports live code"),
        ("docs/a.md", f"cd {HOME}", "a path of one machine"),
        ("docs/decisions/0099-a.md", "# 0099 · A title\n\n**Decided.** It is so.\n", "does not begin with"),
        ("requirements.txt", "x @ https://example.com/x.whl", "an address"),
        ("bench/package-lock.json", '"resolved": "https://example.com/x.tgz"', "an address"),
        ("docs/a.md", f"pip install {INDEX}", "a package index"),
        ("migrations/versions/0002/a.sql", function("a"), "a function in a migration"),
        (
            "migrations/versions/a.py",
            f'op.execute("""{function("a", comment="")}""")',
            "a function in a migration",
        ),
        ("migrations/versions/0002/a.sql", "create trigger a after update on t", "a trigger in a migration"),
        *(("migrations/versions/0002/a.sql", f"{sql};", "execution:") for sql in LONG_LOCKS),
        ("migrations/functions/a/a.sql", function("b"), "makes b"),
        ("migrations/functions/a/a.sql", function("a") + function("b"), "makes a, b"),
        ("migrations/functions/a/a.sql", "-- Nothing.\n", "no function"),
        ("migrations/functions/a/a.sql", function("a", comment=""), "comment"),
        ("migrations/functions/a/a.sql", function("a", comment="-- planner: fast\n"), "no profile"),
        (
            "migrations/functions/a/a.sql",
            function("a", comment="-- planner: lookups\n-- planner: hashed\n"),
            "a second planner profile",
        ),
        ("migrations/functions/a/a.sql", function("a") + "set enable_seqscan = off", "a planner setting"),
        ("migrations/functions/a/a.sql", function("a") + "set plan_cache_mode = auto", "a planner setting"),
        (
            "migrations/functions/a/a.sql",
            function("a") + "update execution e set status = 'requested',\n ready_at = now() where id = 1",
            "place in line is moved",
        ),
        *(
            ("common/penstock/client/a.py", f"A = {sql!r}\n", "SQL outside of the store")
            for sql in STATEMENTS
        ),
        *(
            (f"{room}/a.py", f"value = {name}.loads(text)\n", "JSON from outside")
            for room, name in zip(OUTSIDE_ROOMS, cycle(("json", "orjson")), strict=False)
        ),
        (
            "common/penstock/operate/a.py",
            "def f(error):\n    return str(error)[:500]",
            "a cut without a mark",
        ),
        ("common/penstock/operate/a.py", 'def f(t):\n    return f"select count(*) from {t}"', "SQL outside"),
        (
            "common/penstock/operate/a.py",
            'def f(ref):\n    raise NotFound(f"no {ref}", hint="Apply {ref} first.")',
            "not filled in",
        ),
        (
            "services/penstock_api/a.py",
            'raise NotFound("no view", hint="Read " "{view.id!r} again.")',
            "not filled in",
        ),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, path: str, text: str, found: str) -> None:
    lines = _broken(tmp_path, path, text)
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}:")
    assert found in lines[0]


@pytest.mark.parametrize(
    ("path", "longest", "longer"),
    [
        ("common/penstock/a.py", "\n" * LONGEST, "\n" * (LONGEST + 1)),
        (
            "migrations/functions/a/a.sql",
            function("a", LONGEST_FUNCTION),
            function("a", LONGEST_FUNCTION + 1),
        ),
    ],
)
def test_a_long_file_is_advice_and_breaks_no_rule(
    tmp_path: Path, path: str, longest: str, longer: str
) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(longest)
    assert list(broken(tmp_path, [path], ADVICE)) == []

    (tmp_path / path).write_text(longer)

    [advice] = broken(tmp_path, [path], ADVICE)
    assert advice.startswith(f"{path}:")
    assert list(broken(tmp_path, [path])) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("common/penstock/__init__.py", ""),
        *(
            ("extras/penstock-import/penstock_import/a.py", text)
            for text in (
                "from penstock import action",
                "from penstock.errors import NotFound",
                "from penstock.language.expressions import condition as compile_condition",
                "from penstock.run.task_executors import Outcome",
                "from penstock_import.report import Report",
                "import typer",
            )
        ),
        ("services/penstock_worker/a.py", "from penstock_worker import x\nimport penstock"),
        ("tests/a.py", "import penstock_worker, penstock_executor"),
        ("migrations/versions/a.py", "import sqlalchemy"),
        ("docs/a.md", "see https://www.postgresql.org/docs/ and /usr/lib/postgresql"),
        ("requirements.txt", "httpx==0.28.1 \\\n    --hash=sha256:0000"),
        ("common/penstock/a.py", "\n" * (LONGEST + 1)),
        (
            "migrations/functions/a/a.sql",
            function("a", LONGEST_FUNCTION + 1, "-- Does it.\n-- planner: lookups\n"),
        ),
        ("migrations/functions/a/a.sql", function("a") + "\ncreate or replace trigger a after update on t;"),
        ("migrations/versions/0002/a.sql", "create table a (id integer);"),
        *(("migrations/versions/0002/a.sql", f"{sql};") for sql in SHORT_LOCKS),
        *(("migrations/versions/0001/a.sql", f"{sql};") for sql in LONG_LOCKS),
        ("tests/a.sql", function("b")),
        *((f"{room}/a.py", f"A = {sql!r}\n") for room in SQL_ROOMS for sql in STATEMENTS),
        *(("common/penstock/cli/a.py", f"A = {words!r}\n") for words in SENTENCES),
        ("common/penstock/cli/a.py", "def f(text):\n    return text[:8] + cut_end(text, 500)"),
        ("common/penstock/store/a.py", "value = orjson.loads(row.body)"),
        ("common/penstock/cli/a.py", "value = parsed_by_hand(text, name)"),
        ("tests/a.py", "def f(text):\n    return text[:500]"),
        ("common/penstock/cli/a.py", 'def drop():\n    """Drop table after table."""\n    """Select a b."""'),
    ],
)
def test_code_that_keeps_the_rules_is_not_reported(tmp_path: Path, path: str, text: str) -> None:
    assert _broken(tmp_path, path, text) == []


def _broken(root: Path, path: str, text: str) -> list[str]:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return list(broken(root, [path]))


def test_each_public_name_of_a_package_is_there() -> None:
    assert len(PUBLIC) > 10
    rows = [line for line in PUBLIC_PAGE.read_text().splitlines() if line.startswith("| `penstock")]
    assert len(rows) == len(PUBLIC), "a row that the rule does not read"
    missing = [
        f"{module}.{name}"
        for module, names in PUBLIC.items()
        for name in names - {"all"}
        if not hasattr(import_module(module), name)
    ]
    assert missing == []


def test_each_file_with_an_exception_is_there() -> None:
    root = Path(__file__).parents[1]
    assert [name for name in [*JSON_READERS, *UNMARKED_CUTS] if not (root / name).is_file()] == []
