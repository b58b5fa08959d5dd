"""`penstock audit`, and what commands themselves leave in it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from pydantic import SecretStr
from typer.main import get_command

from penstock.cli import build
from penstock.cli.command_runner import ME
from penstock.operate import audit as operate
from penstock.settings import Settings
from penstock.store.access import audit as store
from penstock.store.session.database import Database
from tests.penstock.cli.commands import penstock

PASSWORD = "correct horse battery staple"


async def sealed(database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    await store.seal(home.session(), 1000)
    await home.close()


async def test_changes_of_commands_are_listed_with_their_user(named: str) -> None:
    assert (await penstock("tokens", "create", "ci", "--scope", "operator", "--tenant", "acme")).code == 0
    assert (await penstock("users", "create", "eve", "--role", "viewer", "--password", PASSWORD)).code == 0
    assert (await penstock("tokens", "list")).code == 0
    assert (await penstock("tokens", "revoke", "ci")).code == 0
    assert (await penstock("tokens", "revoke", "nothing")).code == 1
    listed = await penstock("audit", "list", "--json")
    rows = [json.loads(line) for line in listed.out.splitlines()]
    assert [(row["operation"], row["target"]) for row in rows] == [
        ("penstock tokens revoke", "ci"),
        ("penstock users create", "eve"),
        ("penstock tokens create", "ci"),
    ]
    assert {(row["by"], row["outcome"]) for row in rows} == {(f"command:{ME}", "done")}
    assert all(row["role"] and row["details"]["host"] for row in rows)
    revoked, made, created = (row["details"] for row in rows)
    assert (created["scopes"], created["tenants"]) == (["read", "operate"], ["acme"])
    assert revoked["scopes"] == ["read", "operate"]
    assert (made["password"], made["after"]) == ({"bytes": len(PASSWORD)}, ["viewer"])
    assert PASSWORD not in listed.out
    one = await penstock("audit", "list", "--operation", "penstock tokens", "--target", "ci", "--limit", "1")
    for operation in ("tokens_", "tokens", "tokens_create"):
        assert "penstock tokens create" in (await penstock("audit", "list", "--operation", operation)).out
    assert "penstock" not in (await penstock("audit", "list", "--operation", "ens")).out
    assert "tokens revoke" in one.out
    assert (await penstock("audit", "list", "--outcome", "nothing")).code == 1


async def test_the_chain_is_verified_exported_and_compared(named: str, database: str, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        await penstock("tokens", "create", name)
    unsealed = await penstock("audit", "verify")
    assert (unsealed.code, "3 rows are not sealed yet" in unsealed.err) == (0, True)
    await sealed(database)
    head = (await penstock("audit", "head")).out.strip()
    assert head.startswith("3:")
    assert (await penstock("audit", "verify", "--head", head)).code == 0
    assert (await penstock("audit", "verify", "--head", "nonsense")).code == 1
    exported = await penstock("audit", "export", "--after", "1")
    file = tmp_path / "audit.jsonl"
    file.write_text(exported.out)
    whole = await penstock("audit", "verify", file, "--head", head, "--json")
    assert (whole.code, whole.document["rows"], whole.document["head"]) == (0, 2, head)
    file.write_text(exported.out.replace("two", "six"))
    forged = await penstock("audit", "verify", file)
    assert (forged.code, "was changed" in forged.err) == (1, True)
    assert (await penstock("audit", "verify", tmp_path / "none")).code == 1


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExportLogsServiceRequest]]:
    got: list[ExportLogsServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(ExportLogsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"http://127.0.0.1:{server.server_port}/v1/logs")
    yield got
    server.shutdown()
    server.server_close()


async def test_rows_are_sent_as_log_records(
    named: str, database: str, collector: list[ExportLogsServiceRequest]
) -> None:
    await penstock("tokens", "create", "one")
    await sealed(database)
    sent = await penstock("audit", "export", "--otlp")
    assert (sent.code, "--after 1" in sent.err) == (0, True), sent
    [request] = collector
    [record] = request.resource_logs[0].scope_logs[0].log_records
    assert record.body.string_value == f"command:{ME} penstock tokens create one done"
    attributes = {one.key: one.value for one in record.attributes}
    assert attributes["penstock.audit.position"].int_value == 1
    assert json.loads(attributes["penstock.audit.details"].string_value)["scopes"] == ["read"]


async def test_no_collector_is_explained(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    refused = await penstock("audit", "export", "--otlp")
    assert (refused.code, "OTEL_EXPORTER_OTLP_ENDPOINT" in refused.err) == (1, True)


READS = {
    *(
        "lint",
        "schema",
        "test",
        "types",
        "new",
        "demo",
        "dev",
        "import",
        "completion",
        "explain",
        "top",
        "enforcements",
        "recoveries",
        "doctor",
    ),
    *(
        "executor",
        "worker",
        "worker-conformance",
        "api",
        "gateway",
        "migrate",
        "publish",
        "run",
        "show",
        "logs",
        "watch",
        "history",
        "why",
        "audit",
    ),
    *("executions", "events", "inquiries", "queues", "replay", "roles", "holds"),
}
"""Commands that change nothing in the database, or that note their change in another way."""
READING = {
    "list",
    "show",
    "explain",
    "counts",
    "totals",
    "versions",
    "diff",
    "preview",
    "missed",
    "history",
    "stats",
    "health",
    "test",
    "errors",
}


def test_each_argument_of_a_command_is_known_to_be_kept_or_sized() -> None:
    known = operate.KEPT | operate.SIZED | operate.ADDRESSES | {"json", "reason", "help"}
    missing: set[str] = set()

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*path, name))
        if not getattr(command, "commands", {}) and path[0] not in READS and path[-1] not in READING:
            missing.update(one.name for one in command.params if one.name not in known)

    walk(get_command(build()), ())
    assert not missing, "say in penstock.operate.audit whether the audit keeps these arguments"


async def test_target_of_apply_is_a_text(named: str, tmp_path: Path) -> None:
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for file in files:
        file.write_text(f"from penstock import Trigger\nTrigger('audited.{file.stem}')\n")
    assert (await penstock("apply", *files)).code == 0
    [row] = (await penstock("audit", "list", "--operation", "penstock apply", "--json")).documents
    assert row["target"] == f"{files[0]}, {files[1]}"
