"""One schema for what services log: each call of a logger gives fields that it knows, under names that mean one thing."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from docs.written.logs import ROOT, logged
from penstock.language.terms.ids import new_id
from penstock.run.context import CURRENT
from penstock.run.run import Run, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock.service.log_line_schema import FIELDS, violations
from penstock.service.log_setup import configure_logging
from penstock.settings import Settings

NAMED = "log = structlog.get_logger("


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.contextvars.clear_contextvars()


def test_every_call_of_a_logger_holds_to_the_schema() -> None:
    calls = list(logged())
    assert len(calls) > 50
    for call in calls:
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", call.event), call
        assert set(call.fields) <= FIELDS.keys(), call


def test_nothing_of_ours_logs_sentences() -> None:
    """A logger of the standard library's writes text where others look for the name of an event."""
    files = [file for folder in ("common", "services", "extras") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    assert [file.name for file in files if "logging.getLogger(__name__)" in file.read_text()] == []
    asking = {
        file.name
        for file in files
        if "structlog.get_logger(" in (text := file.read_text()) and NAMED not in text
    }
    assert asking == set(), "a logger is called `log`, so that what it logs is listed"


def test_every_field_is_logged_by_some_call() -> None:
    given = {field for call in logged() for field in call.fields}
    bound = {
        "event",
        "level",
        "timestamp",
        "service",
        "replica",
        "replica_id",
        "runner_name",
        "logger",
        "trace_id",
    }
    assert FIELDS.keys() - given - bound == set()


def test_lines_of_ours_and_of_libraries_hold_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger().handlers = []  # as in a new process
    configure_logging(Settings(name="one", log_format="json"), service="worker")
    event = TaskReadyEvent(new_id(), 2, 3, "public::shop::charge", "shop.charge", new_id())
    carrier = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    run = Run(event, {}, None, RunLog(lambda *_: None), trace=carrier)  # type: ignore[arg-type]
    before = CURRENT.set(run)
    try:
        structlog.get_logger().warning("worker.claim_lost", reason="of another")
        logging.getLogger("a.library").error("it broke: %s", "badly", exc_info=ValueError("why"))
    finally:
        CURRENT.reset(before)
    structlog.get_logger().warning("service.waits", reason="no database", hint="start it", next_try="in 1 s")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [list(violations(line)) for line in lines] == [[], [], []]
    ours, library, outside = lines
    for line in (ours, library):
        assert (line["execution_id"], line["attempt"]) == (str(event.execution_id), 2)
        assert line["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
        assert (line["service"], line["replica"]) == ("worker", "one")
    assert (library["event"], library["logger"]) == ("it broke: badly", "a.library")
    assert "ValueError: why" in library["exception"]
    assert "execution_id" not in outside


def test_an_unknown_or_mistyped_field_is_found() -> None:
    line = {
        "event": "a.b",
        "level": "info",
        "timestamp": "now",
        "service": "worker",
        "attempt": "2",
        "who": 1,
    }
    assert list(violations(line)) == [
        "replica is missing",
        "attempt is '2', and no int",
        "who is not a field",
    ]
