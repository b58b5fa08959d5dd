"""Doctor tells which workers that call a gateway have an old library, or a token that ends soon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import pytest

from penstock.language.terms.ids import new_id
from penstock.operate import access
from penstock.operate.doctor import remote_workers as checks
from penstock.operate.workers import is_outdated
from penstock.service.heartbeat import Identity
from penstock.store.processes import remote_workers
from penstock.store.processes.remote_workers import LiveRemoteWorker
from tests.flows.installation import Installation

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
OWN = version("penstock")


def worker(name: str = "lab-7", sdk: str = "mine/0.1", **fields: Any) -> LiveRemoteWorker:
    values = {"token_name": "lab", "has_token": True, "expires_at": None, **fields}
    return LiveRemoteWorker(name, "rust", sdk, **values)


@pytest.mark.parametrize(
    ("sdk", "outdated"),
    [
        (f"penstock/{OWN} (python 3.12.1)", False),
        (f"penstock-sdk/{OWN} (node 20)", False),
        ("penstock/0.0.9 (python 3.12.1)", True),
        ("penstock-sdk/0.0.9 (node 20)", True),
        ("penstock-sdk/99.0.0 (node 20)", False),
        ("penstock-sdk", False),
        ("mine/0.0.1", False),
        ("not-penstock/0.0.1", False),
        (None, False),
    ],
)
def test_only_older_libraries_of_penstock_are_outdated(sdk: str | None, outdated: bool) -> None:
    assert is_outdated(sdk) is outdated


def test_outdated_libraries_are_a_warning() -> None:
    finding = checks.libraries([worker(), worker("lab-8", "penstock-sdk/0.0.9 (node 20)")])
    assert (finding.state, finding.says) == (
        "warning",
        f"1 of 2 have a library older than {OWN}: lab-8 (rust, penstock-sdk/0.0.9 (node 20))",
    )
    assert checks.libraries([worker()]).says == "1 alive (rust)"


@pytest.mark.parametrize(
    ("fields", "state", "words"),
    [
        ({}, None, ""),
        ({"expires_at": NOW + timedelta(days=8)}, None, ""),
        ({"expires_at": NOW + timedelta(days=6)}, "warning", "the token expires at 2026-12-03 12:00 UTC"),
        ({"expires_at": NOW - timedelta(minutes=1)}, "bad", "the token has expired"),
        ({"has_token": False}, "bad", "the token was revoked"),
        ({"token_name": None, "has_token": False}, None, ""),  # an open API
    ],
)
def test_token_that_ends_soon_is_told(fields: dict[str, Any], state: str | None, words: str) -> None:
    findings = checks.tokens([worker(**fields), worker("lab-8", **fields)], NOW)
    assert [finding.state for finding in findings] == ([] if state is None else [state])
    for finding in findings:
        assert (finding.what, finding.says.startswith(words)) == ("token lab", True)
        assert "lab-7, lab-8" in finding.says


async def test_doctor_reads_tokens_of_live_workers(house: Installation) -> None:
    session = house.session
    await access.create_token(session, "lab", ["work"], seconds=3600, by="test")
    for name, token in (
        ("lab-7", "token:lab"),
        ("lab-8", "token:gone"),
        ("lab-9", "local access"),
    ):
        await remote_workers.register(
            session,
            Identity(new_id(), "worker", name, ["default"], ["a.b"], {}, 1),
            language="rust",
            sdk="mine/0.1",
            digest=name.encode(),
            token=token,
            tenants=None,
            patience=60.0,
        )
    by_subject = {finding.what: finding for finding in await checks.findings(session, house.settings())}
    assert {subject: finding.state for subject, finding in by_subject.items()} == {
        "remote workers": "ok",
        "token lab": "warning",
        "token gone": "bad",
    }
