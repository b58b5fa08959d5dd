"""Each command that works on the database and over HTTP prints the same both ways, for random records."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import random
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
import uvicorn

from penstock import Limit, action
from penstock.language.terms.ids import new_id
from tests.penstock.cli.commands import Said, penstock
from tests.penstock.operate.keys import KEY
from tests.penstock_api.conftest import Api

SEED = random.randrange(2**32)
"""The seed of the random records. A failure prints it."""
SPANS = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h)\b|(?<= in )\d+(?:\.\d+)?(?= s)")
NUMBERS = re.compile(r'"(age|seconds|ran|waited|rate|probe_in|p50|p95|span)": (?:-?[\d.e-]+|null)')
INSTANTS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+\d\d:\d\d)?")
"""A command that changes something has another instant the second time."""


@action(pack="twice", breaker={"failures": 2, "of": 4, "by": "host"}, limits=[Limit(2)])
async def call(host: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Records:
    """The random records of an installation that commands read."""

    executions: tuple[UUID, ...]
    workflow: UUID
    event: UUID
    delayed: tuple[UUID, UUID]
    worker: str


@pytest.fixture
async def server(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of the API. The environment names the database of the same installation."""
    database = api.house.settings().database_url
    assert database is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database.get_secret_value())
    monkeypatch.setenv("PENSTOCK_SECRETS_KEY", KEY)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    monkeypatch.setenv("PENSTOCK_TOKEN", api.secrets["all"])
    monkeypatch.setenv("COLUMNS", "400")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = uvicorn.Server(uvicorn.Config(api.app, log_config=None, lifespan="off", access_log=False))
        task = asyncio.create_task(served.serve(sockets=[listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        served.should_exit = True
        await task


@pytest.fixture
async def records(api: Api) -> Records:
    """Random executions, events, inquiries, holds, breakers and losses, at rest."""
    chance, client = random.Random(SEED), api.house.client
    await api.house.apply(call)
    ended = []
    for _ in range(chance.randrange(8, 14)):
        calls: list[tuple[str, dict[str, Any]]] = [
            ("shop.count", {"words": "a " * chance.randrange(5)}),
            ("shop.charge", {"order": chance.randrange(99), "amount": chance.random()}),
            ("shop.flaky", {"failures": chance.randrange(5)}),
            ("shop.hopeless", {}),
        ]
        ref, params = chance.choice(calls)
        labels = chance.choice([None, {"customer": "acme"}, {"customer": "umbrella", "region": "eu"}])
        tenant = chance.choice(["public", "acme"])
        id = await client.start(ref, params, priority=chance.randrange(3), tenant=tenant, labels=labels)
        ended.append(id)
    workflow = await client.start("shop.approved", {})
    event = await client.publish("shop.order_placed", {"id": 13, "amount": chance.choice([5, 500])})
    delayed = [await client.start("shop.count", {"words": "a"}, delay=90_000) for _ in range(2)]
    for id in ended:
        await api.house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    await api.house.until(
        "select 1 from inquiry i join execution e on e.id = i.execution_id where $1 in (e.id, e.parent)",
        workflow,
    )
    await api.house.until("select 1 where not exists (select from unmatched)")
    await api.house.until(
        "select 1 where not exists (select from execution where status = 'scheduled' "
        "or (status = 'requested' and not_before is null))"
    )
    await api.house.rows(
        "insert into attempt (execution_id, attempt, outcome, worker, error) values ($1, 9, 'lost', $2, $3)",
        chance.choice(ended),
        f"worker-{chance.randrange(9)}",
        '{"message": "its worker went silent"}',
    )
    await client.breakers.open("twice.call", {"host": f"h{chance.randrange(9)}"}, by="ada", reason="it moves")
    await client.holds.hold("tenant", f"t{chance.randrange(9)}", by="ada", reason="it moves", force=True)
    await client.views.create(
        "Ended", {"status": ["completed"], "since": "1h"}, by="ada", shared=True, replace=True
    )
    [worker] = await api.house.rows("select name from process where kind = 'worker'")
    return Records((*ended, *delayed), workflow, event, (delayed[0], delayed[1]), worker["name"])


def plain(said: Said, *, is_json: bool) -> tuple[int, list[str]]:
    """Return the exit code and the lines of a command's outputs, without what differs between two moments."""
    errors = [line for line in said.err.splitlines() if not line.startswith("event=")]  # of the services here
    lines = [*said.out.splitlines(), "", *errors]
    if is_json:  # the order of the names has no meaning, nor has the white space of a JSON text inside
        lines = [
            json.dumps(normal(json.loads(line)), indent=1) if line[:1] == "{" else line for line in lines
        ]
    text = INSTANTS.sub("AT", NUMBERS.sub(r'"\1": 0', SPANS.sub("SPAN", "\n".join(lines))))
    cells = [re.sub(r"[─━ ]{2,}", "  ", line).rstrip() for line in text.splitlines()]
    return said.code, [re.sub(r"(?<=  )-(?=  |$)", "SPAN", line) for line in cells]  # not counted yet


def normal(value: Any) -> Any:
    """Return a JSON value with its names sorted, also within texts that are JSON."""
    if isinstance(value, dict):
        return {name: normal(item) for name, item in sorted(value.items())}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError):
            return normal(json.loads(value))
    return value


async def difference(server: str, *words: object) -> str | None:
    """Run a command on the database and over HTTP. Return the difference of the outputs, or None."""
    is_json = "--json" in words
    direct = plain(await penstock(*words), is_json=is_json)
    served = plain(await penstock("--server", server, *words), is_json=is_json)
    if direct == served:
        return None
    lines = [line for line in difflib.ndiff(direct[1], served[1]) if line[:1] != " "]
    return "\n".join([f"seed {SEED}: penstock {' '.join(map(str, words))}: {direct[0]}, {served[0]}", *lines])


def readings(records: Records) -> list[tuple[Any, ...]]:
    """Return the commands that read, with random options."""
    chance = random.Random(SEED)
    some, absent = chance.choice(records.executions), new_id()
    return [
        ("executions", "--limit", chance.randrange(1, 30)),
        ("executions", "--status", chance.choice(["failed", "completed", "nothing"])),
        ("executions", "--label", "customer=acme", "--children"),
        ("executions", "--before", some, "--limit", 3),
        ("history", some),
        ("history", absent),
        ("why", some),
        ("why", records.workflow),
        ("why", records.workflow, "last"),
        ("why", records.event),
        ("why", absent),
        ("show", some),
        ("show", records.workflow),
        ("show", records.event),
        ("show", absent),
        ("show", records.workflow, "--mermaid"),
        ("show", records.workflow, "--dot"),
        ("show", some, "--dot"),
        ("logs", chance.choice(records.executions[:5])),
        ("watch", chance.choice(records.executions[:5])),
        ("inquiries",),
        ("inquiries", "--all"),
        ("inquiries", "--assignee", "ada"),
        ("enforcements", "--limit", chance.randrange(1, 20)),
        ("enforcements", "--event", records.event),
        ("enforcements", "--rule", "shop.broken", "--status", "failed"),
        ("enforcements", "--status", "odd"),
        ("enforcements", "--before", "odd"),
        ("recoveries",),
        ("recoveries", "--kind", chance.choice(["attempt", "fire"]), "--limit", 1),
        ("recoveries", "--worker", "worker-3", "--since", "1h"),
        ("limit", "list"),
        ("limit", "totals"),
        ("limit", "totals", "shop.door", "--hours", "1"),
        ("limit", "totals", "no.such"),
        ("holds",),
        ("views", "list"),
        ("views", "show", "Ended"),
        ("views", "show", "Ende"),
        ("executions", "--view", "Ended", "--limit", "5"),
        ("executions", "--view", "No such"),
        ("breaker", "list"),
        ("workers", "list"),
        ("workers", "show", records.worker),
        ("workers", "show", "no-such"),
        ("schedule", "list"),
        ("actions",),
        ("triggers",),
        ("rules", "list"),
        ("types",),
        ("types", "--language", "typescript"),
        ("top",),
    ]


async def test_command_that_reads_prints_the_same(api: Api, server: str, records: Records) -> None:
    differences = []
    for words in readings(records):
        differences.append(await difference(server, *words))
        if words[0] != "types" and "--mermaid" not in words and "--dot" not in words:
            differences.append(await difference(server, *words, "--json"))
    assert not any(differences), "\n\n".join(filter(None, differences))


async def test_command_that_changes_prints_the_same(api: Api, server: str, records: Records) -> None:
    """Each command is repeatable, or another command undoes it both ways."""
    chance = random.Random(SEED)
    differences = []
    for words in (
        ("limit", "set", "shop.door", chance.randrange(1, 9)),
        ("limit", "set", "shop.door", "--rate", "fast"),
        ("limit", "set", "no.such", 3),
        ("limit", "rm", "no.such"),
        ("rules", "disable", "shop.big_orders"),
        ("rules", "enable", "shop.big_orders"),
        ("rules", "enable", "shop.no"),
        ("rules", "delete", "shop.no"),
        ("rules", "replay", "shop.big_orders", "--since", "1h", "--dry-run"),
        ("schedule", "pause", "shop.nightly", "--for", "1h"),
        ("schedule", "disable", "shop.nightly"),
        ("schedule", "enable", "shop.nightly"),
        ("schedule", "enable", "shop.no"),
        ("workers", "cordon", "no-such"),
        ("workers", "uncordon", "no-such"),
        ("hold", "pack", "elsewhere", "--for", "1h", "--force"),
        ("hold", "action", "twice.cal"),
        ("release", "pack", "nowhere"),
        ("views", "save", "Ended", "--status", "complete"),
        ("views", "save", "Empty"),
        ("views", "delete", "Ende"),
        ("breaker", "open", "twice.call", "host=a"),
        ("breaker", "open", "twice.call"),
        ("breaker", "close", "no.such"),
        ("cancel", "--action", "shop.never"),
        ("cancel", "--status", "delayed", "--dry-run"),
        ("cancel", new_id()),
        ("rerun", "--action", "shop.hopeless", "--dry-run"),
        ("rerun", new_id()),
        ("set-priority", records.delayed[0], 3),
        ("set-priority", records.delayed[0], 3),
        ("reschedule", records.delayed[0], "--at", "2100-01-31T09:00Z"),
        ("reschedule", records.executions[0], "--in", "1h"),
        ("raise-budget", records.executions[0], "tokens", "5"),
        ("answer", new_id(), "true"),
        ("signal", new_id(), "paid", "true"),
        ("signal", "--key", "no-such", "paid", "true"),
        ("publish", "shop.order_placed", "--key", "odd"),
        ("run", "shop.count", "words=a b", "--wait", "--key", f"twice-{SEED}"),
        ("run", "shop.count", "word=a"),
        ("pause", new_id()),
    ):  # fmt: skip
        if words == ("set-priority", records.delayed[0], 3):
            await penstock(*words)
        differences.append(await difference(server, *words))
        if words[0] != "set-priority":
            differences.append(await difference(server, *words, "--json"))
    assert not any(differences), "\n\n".join(filter(None, differences))
    for words, undone in (
        (("release", "pack", "elsewhere"), ("hold", "pack", "elsewhere", "--force")),
        (("limit", "rm", "shop.door"), ("limit", "set", "shop.door", 4)),
        (
            ("breaker", "close", "twice.call", "host=a", "--at-once"),
            ("breaker", "open", "twice.call", "host=a"),
        ),
        (("workers", "cordon", records.worker), ("workers", "uncordon", records.worker)),
    ):
        outputs = []
        for prefix in ((), ("--server", server)):
            await penstock(*undone)
            outputs.append(plain(await penstock(*prefix, *words), is_json=False))
        assert outputs[0] == outputs[1], (SEED, words)
        assert outputs[0][0] == 0, outputs
    await penstock("workers", "uncordon", records.worker)
    await penstock("release", "pack", "elsewhere")
