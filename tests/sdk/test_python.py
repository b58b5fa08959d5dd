"""The worker of Penstock conforms, when it calls a gateway and with a session with the database."""

from __future__ import annotations

import sys

from penstock.testing.worker_conformance.cases import CASES, OF_GATEWAYS
from tests.sdk.conformance import ROOT, faults, verdicts

WORKER = (sys.executable, str(ROOT / "sdk/python/conformance.py"))


def test_python_worker_over_gateway_conforms() -> None:
    assert faults(*WORKER) == {}


def test_python_worker_with_database_conforms() -> None:
    played = verdicts(*WORKER, options=("--short", "--direct"))
    assert {verdict["case"]: verdict["fault"] for verdict in played if verdict["fault"]} == {}
    skipped = {verdict["case"] for verdict in played if verdict["not_applicable"]}
    assert skipped == {verdict["case"] for verdict in played} & OF_GATEWAYS.keys()


def test_only_cases_about_http_are_not_applicable() -> None:
    assert OF_GATEWAYS.keys() < CASES.keys()
    for name, reason in OF_GATEWAYS.items():
        assert any(word in reason for word in ("HTTP", "gateway", "token")), name
