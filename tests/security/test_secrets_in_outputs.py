"""No command prints what a schema marks as secret, and no route of the API tells it: each is asked where secrets are
everywhere."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest

from penstock import AskInquiry, DurableContext, Rule, Schedule, Secret, Trigger, action
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml, to_yaml
from penstock.store.outbox import dead_letters, queues
from penstock.store.outbox.dead_letters import KeptLetter
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.cli.test_hostile_arguments import commands
from tests.penstock_api.auth.test_access import guarded

HIDDEN = "s3cr3t-"
"""What every secret begins with."""


@action(pack="vault")
async def unlock(key: Annotated[str, Secret], door: str = "front") -> str:
    logging.getLogger("vault").warning("with %s", key)
    return door


@action(pack="vault")
async def jam(key: Annotated[str, Secret] = HIDDEN + "default") -> None:
    raise PermissionError(f"the key {key} does not fit")


@action(pack="vault")
async def ask() -> None:
    raise AskInquiry(
        "Which?", schema={"type": "object", "properties": {"pin": {"type": "string", "secret": True}}}
    )


@action(pack="vault")
async def unlock_all(ctx: DurableContext, keys: Annotated[list[str], Secret]) -> None:
    await ctx.run(unlock, key=keys[0], door="child")
    await ctx.map(unlock, [{"key": key, "door": "item"} for key in keys])


arrived = Trigger(
    "vault.arrived",
    schema={
        "type": "object",
        "properties": {
            "who": {"type": "string"},
            "pass": {
                "type": "string",
                "writeOnly": True,
                "default": HIDDEN + "nobody",
                "examples": [HIDDEN + "one"],
            },
        },
        "required": ["who"],
    },
)
rules = (
    Rule("vault.let_in", trigger=arrived, action=unlock, params={"key": HIDDEN + "rule", "door": "back"}),
    Rule(
        "vault.broken", trigger=arrived, when="payload.whoo > 3", action=jam, params={"key": HIDDEN + "rule"}
    ),
)
nightly = Schedule("vault.nightly", action=unlock, every=86_400, params={"key": HIDDEN + "schedule"})
opened = from_yaml(f"""
workflow: vault.opened
parameters: {{master: {{type: string, secret: true, default: {HIDDEN}master}}}}
tasks:
  first: {{action: vault.unlock, input: {{key: {HIDDEN}task, door: side}}}}
  inner: {{workflow: vault.inner, input: {{pin: {HIDDEN}inner}}, needs: [first]}}
on_exit: {{action: vault.unlock, input: {{key: {HIDDEN}exit}}}}
""")
inner = from_yaml("""
workflow: vault.inner
parameters: {pin: {type: string, secret: true}}
tasks:
  only: {action: vault.unlock, input: {key: "{{ parameters.pin }}"}}
""")
heard = from_yaml("""
workflow: vault.heard
parameters: {master: {type: string, secret: true}}
tasks:
  named: {wait_for_event: {trigger: vault.arrived, filter: "event.payload.who == parameters.master"}}
  other: {wait_for_event: {trigger: vault.arrived, filter: "event.payload.who in [parameters.master]"}}
  first: {wait_for_event: {trigger: vault.arrived}}
""")
ALL = (unlock, jam, ask, unlock_all, arrived, *rules, nightly, opened, inner, heard)


@pytest.fixture
async def house(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    async with Installation(database, None) as installation:
        yield installation


async def furnished(house: Installation, folder: Path) -> dict[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the arguments of each reading command, in an installation in which each of these features has run."""
    await house.start(*ALL)
    waiting = await house.client.start("vault.heard", {"master": HIDDEN + "heard"})
    waits = "select id from execution where parent = $1 and status = 'waiting'"
    await house.until(f"select 1 where (select count(*) from ({waits}) w) = 3", waiting)
    event = await house.client.publish("vault.arrived", {"who": "ada", "pass": HIDDEN + "event"})
    ran = await house.client.start("vault.unlock", {"key": HIDDEN + "run"})
    failed = await house.client.start("vault.jam", {"key": HIDDEN + "jam"})
    run = await house.client.start("vault.opened", {"master": HIDDEN + "run"})
    asked = await house.client.start("vault.ask")
    durable = await house.client.start("vault.unlock_all", {"keys": [HIDDEN + "one", HIDDEN + "two"]})
    letter = new_id()
    body, headers = b'{"pass": "%sletter"}' % HIDDEN.encode(), '{"x-penstock-trigger": "vault.arrived"}'
    kept = KeptLetter(queues.EVENT_RECEIVED, "InvalidInput", None, "a", body, headers, "f", id=letter)
    async with house.session.transaction() as tx:
        await dead_letters.keep(tx, [kept])
    await house.until("select 1 from execution where id = $1 and finished_at is not null", run)
    await house.until("select 1 from execution where id = $1 and finished_at is not null", failed)
    await house.until("select 1 from execution where id = $1 and status = 'completed'", durable)
    below = "select id from execution where parent = $1"
    children = await house.rows(
        f"{below} union all select id from execution where parent in ({below})", durable
    )
    assert len(children) == 4  # one that is run, and one that fans out into two
    await house.until("select 1 from execution where id = $1 and status = 'waiting'", asked)
    await house.client.answer(asked, {"pin": HIDDEN + "answer"}, by="ada")
    await house.until("select 1 from enforcement where error is not null")
    await house.until("select 1 from execution where parent = $1 and status = 'completed'", waiting)
    awaited = await house.rows("select id from execution where parent = $1", waiting)
    assert len(awaited) == 3
    await house.apply(
        Rule("vault.replayed", trigger=arrived, action=unlock, params={"key": "{{ payload.pass }}"})
    )
    file = folder / "other.yaml"
    file.write_text(to_yaml(opened).replace("side", "top").replace(HIDDEN + "task", HIDDEN + "other"))
    some = [
        (id,)
        for id in (ran, failed, run, asked, durable, waiting, *(row["id"] for row in (*children, *awaited)))
    ]
    [worker] = await house.rows("select name from process where kind = 'worker'")
    return {
        ("actions",): [()],
        ("types",): [()],
        ("triggers",): [()],
        ("rules", "list"): [()],
        ("rules", "errors"): [()],
        ("rules", "test"): [(event,)],
        ("rules", "rerun"): [("--all",)],
        ("rules", "replay"): [
            ("vault.replayed", "--since", "1h", "--dry-run"),
            ("vault.replayed", "--since", "1h", "--dry-run", "--json"),
        ],
        ("schedule", "run"): [("vault.nightly",)],
        ("schedule", "list"): [()],
        ("schedule", "show"): [("vault.nightly",)],
        ("schedule", "preview"): [("vault.nightly",)],
        ("schedule", "missed"): [
            ("vault.nightly", "--from", "2027-01-01T00:00Z", "--until", "2027-01-03T00:00Z")
        ],
        ("schedule", "history"): [("vault.nightly",)],
        ("schedule", "stats"): [("vault.nightly",)],
        ("schedule", "health"): [()],
        ("polls", "list"): [()],
        ("workflow", "show"): [("vault.opened",), ("vault.opened", "--dot"), ("vault.opened", "--mermaid")],
        ("workflow", "diff"): [("vault.opened", file)],
        ("workflow", "versions"): [("vault.opened",)],
        ("executions",): [(), ("--children",)],
        ("events",): [()],
        ("show",): [*some, (event,)],
        ("history",): some,
        ("watch",): [(ran,)],
        ("logs",): some,
        ("why",): some,
        ("inquiries",): [("--all",)],
        ("limit", "list"): [()],
        ("limit", "totals"): [()],
        ("enforcements",): [()],
        ("recoveries",): [()],
        ("queues",): [()],
        ("workers", "list"): [()],
        ("workers", "show"): [(worker["name"],)],
        ("routes", "list"): [()],
        ("routes", "explain"): [("vault.unlock",)],
        ("check",): [()],
        ("top",): [()],
        ("dead-letters", "list"): [()],
        ("dead-letters", "counts"): [()],
        ("dead-letters", "show"): [(letter,)],
        ("tokens", "list"): [()],
        ("secrets", "list"): [()],
        ("encryption", "list"): [()],
        ("users", "list"): [()],
        ("subscriptions", "list"): [()],
        ("webhooks", "list"): [()],
        **{("audit", word): [()] for word in ("list", "head", "verify")},
        ("audit", "export"): [("--outcome", "done")],
    }


SILENT = {
    *((word,) for word in ("apply", "publish", "run", "cancel", "pause", "resume", "skip", "rerun", "set-result")),
    *((word,) for word in ("answer", "repair", "announce", "retire", "signal", "replay", "roles")),
    *((word,) for word in ("set-priority", "reschedule", "raise-budget", "complete", "hold", "release", "holds")),
    *(("import", word) for word in ("stackstorm", "celery", "cloaca", "attune", "openapi")),
    *((word,) for word in ("new", "lint", "schema", "test", "completion", "explain")),  # they know no installation
    ("routes", "remove"),
    *(("rules", word) for word in ("enable", "disable", "delete")),
    *(("schedule", word) for word in ("create", "update", "enable", "disable", "pause", "delete", "backfill")),
    *(("polls", word) for word in ("show", "enable", "disable", "reset")),
    *(("limit", word) for word in ("set", "rm")),
    *(("views", word) for word in ("list", "show", "save", "delete")),
    *(("breaker", word) for word in ("list", "open", "close")),
    *(("workers", word) for word in ("cordon", "uncordon")),
    *(("dead-letters", word) for word in ("replay", "drop")),
    *(("tokens", word) for word in ("create", "rotate", "revoke")),
    *(("webhooks", word) for word in ("set", "rm", "show", "refusals")),
    *(("users", word) for word in ("create", "roles", "password", "logout", "totp-off", "delete")),
    *(("secrets", word) for word in ("set", "delete", "rotate")),
    *(("encryption", word) for word in ("on", "off", "rotate")),
    *(("subscriptions", word) for word in ("set", "rm", "enable")),
}  # fmt: skip
"""Commands that say what they did, and show nothing that was given to others."""


async def test_no_command_prints_a_secret(house: Installation, tmp_path: Path) -> None:
    asked = await furnished(house, tmp_path)
    unknown = [words for words in commands() if words not in asked and words not in SILENT]
    assert not unknown, (
        f"does it print what schemas mark as secret? Ask it here, or say that it does not: {unknown}"
    )
    leaks = []
    for command, lines in asked.items():
        for words in lines:
            for form in ((), ("--json",)):
                if form and any(
                    str(word).startswith("--") and word not in ("--all", "--children") for word in words
                ):
                    continue
                said = await penstock(*command, *words, *form)
                assert said.code in (0, 1), (command, said)
                if HIDDEN in said.out + said.err:
                    leaks.append((*command, *words, *form))
                assert form or said.out + said.err, command
    assert not leaks + await told_by_routes(house, asked)


async def told_by_routes(
    house: Installation, asked: Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]]
) -> list[str]:
    """The addresses that tell a secret, of all that can be read."""
    backend = Backend.of(house.client)
    backend.settings = house.settings(api_access="open")
    ids = [id for (id,) in (*asked["show",], *asked["dead-letters", "show"])]
    refs = [one.ref for one in (jam, arrived, rules[0], nightly, opened)]
    app, leaks, answered = make_app(backend), [], set()
    wanted: dict[str, Any] = {"answered": True, "children": True, "seconds": 0.3, "of": "vault.unlock"}
    described = app.openapi()["paths"]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as call:
        for path in {one.path for one in guarded(app) if one.method == "GET"}:
            operation = described.get(path, {}).get("get", {})
            taken = [part["name"] for part in operation.get("parameters", ())] if operation else list(wanted)
            for id in ids if "{id}" in path else ids[:1]:
                for ref in refs if "{ref}" in path else refs[:1]:
                    address = path.format(id=id, ref=ref, name=asked["workers", "show"][0][0])
                    said = await call.get(
                        address,
                        params={name: value for name, value in wanted.items() if name in taken},
                        headers={"last-event-id": "0"},
                    )
                    assert said.status_code in (200, 202, 404, 422), (address, said.text)
                    answered |= {path} if said.status_code == 200 else set()
                    leaks += [address] if HIDDEN in said.text else []
    assert {one.path for one in guarded(app) if one.method == "GET"} - answered <= NOTHING_TO_TELL
    await backend.changes.close()
    return leaks


NOTHING_TO_TELL = {
    *(f"/api/v1/limits/{{ref}}{part}" for part in ("", "/holders", "/waiters", "/totals")),
    *("/limits/{ref}", "/executions/many", "/dead-letters/many"),
    *("/api/v1/views/named", "/api/v1/views/{id}"),
    *("/api/v1/account/sessions", "/api/v1/account/totp", "/account", "/account/totp"),
}
"""Routes about what is not there, those that only count, and those of the caller's own account, which a token has not."""


async def test_values_that_are_not_secret_are_shown(house: Installation, tmp_path: Path) -> None:
    await furnished(house, tmp_path)
    [first, second, _] = (await penstock("rules", "list", "--json")).documents
    assert (first["ref"], second["definition"]["params"]) == ("vault.broken", {"key": "***", "door": "back"})
    shown = (await penstock("schedule", "show", "vault.nightly", "--json")).document
    assert shown["definition"]["params"] == {"key": "***"}
    [event] = await house.rows("select id from event")
    assert (await penstock("show", event["id"], "--json")).document["payload"] == {
        "who": "ada",
        "pass": "***",
    }
    differences = (
        await penstock("workflow", "diff", "vault.opened", tmp_path / "other.yaml", "--json")
    ).documents
    assert {tuple(one["at"])[2:]: (one["old"], one["new"]) for one in differences} == {
        ("input", "key"): ("***", "***"),
        ("input", "door"): ("side", "top"),
    }
    [trigger] = (await penstock("triggers", "--json")).documents
    field = trigger["definition"]["schema"]["properties"]["pass"]
    assert (field["type"], field["default"], field["examples"]) == ("string", "***", ["***"])
