"""Each option, event, status and default of the documents has a row, and the row says what is true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

import pytest

from penstock import errors
from penstock.language.definitions import Route, Schedule
from penstock.language.definitions.schedule import MissedFires
from penstock.language.moves import STATUSES
from penstock.language.policies.policies import RetryPolicy, Timeouts
from penstock.language.workflows.context_task_options import NAMES
from penstock.run import outcomes
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.run import TaskReadyEvent
from penstock.settings import Settings
from penstock.store.outbox import queues
from penstock.store.schedules import health
from penstock.store.schedules.figures import Figures
from penstock.store.schedules.reading import FireStats
from tests.seeds import documents, words
from tests.seeds.words import NO_DEFAULT, Ours

pytestmark = pytest.mark.skipif(documents.folder() is None, reason="the documents are not beside the project")

MODELS: Mapping[str, Any] = {
    model.__name__: model for model in (RetryPolicy, Timeouts, Route, Schedule, MissedFires)
}
RECORDS: Mapping[str, Any] = {
    record.__name__: record for record in (TaskReadyEvent, Figures, FireStats, Outcome, TaskError)
}
TABLES = (
    words.STRUCTS,
    words.BUILDERS,
    words.TABLE,
    words.SCHEDULE,
    words.TASK,
    words.EVENTS,
    words.STATUSES,
    words.VARIANTS,
)
ROWS = [(word, ours) for table in TABLES for word, ours in table.items()]


def test_tables_have_every_word_of_the_documents() -> None:
    texts = documents.read()
    code = documents.fragments(texts)
    found: dict[str, tuple[set[str], Mapping[str, Ours]]] = {
        "structs": (documents.struct_fields(code), words.STRUCTS),
        "builders": (documents.builder_options(code), words.BUILDERS),
        "configuration": (documents.table_options(texts), words.TABLE),
        "schedules": (documents.schedule_options(code), words.SCHEDULE),
        "tasks": (documents.task_options(code), words.TASK),
        "events": (documents.events(texts), words.EVENTS),
        "statuses": (documents.statuses(texts), words.STATUSES),
        "variants": (documents.variants(texts), words.VARIANTS),
    }
    for kind, (theirs, table) in found.items():
        assert theirs, f"the script finds no {kind} any more"
        assert theirs == table.keys(), kind


def test_each_default_of_the_documents_has_a_row() -> None:
    lines = {":".join(line.split(":")[:2]) for line in documents.defaults(documents.read())}
    assert lines == words.DEFAULTS.keys()


@pytest.mark.parametrize(("word", "ours"), ROWS, ids=[word for word, _ in ROWS])
def test_row_is_true(word: str, ours: Ours) -> None:
    kind, _, name = ours.where.partition(" ")
    match kind:
        case "setting":
            assert name in Settings.model_fields
            if ours.default is not NO_DEFAULT:
                assert Settings().model_dump()[name] == ours.default
        case "option":
            model, _, option = name.partition(".")
            assert option in MODELS[model].names()
            if ours.default is not NO_DEFAULT:
                field = MODELS[model].model_fields[option]
                assert field.get_default(call_default_factory=True) == ours.default
        case "field" | "metric":
            record, _, field_name = name.partition(".")
            assert field_name in {field.name for field in fields(RECORDS[record])}
        case "queue":
            assert name in queues.QUEUES
        case "announcement":
            assert queues.is_announcement(name)
        case "status":
            assert name in STATUSES
        case "outcome":
            assert name in get_args(outcomes.Kind)
        case "error":
            assert issubclass(getattr(errors, name), errors.PenstockError)
        case "policy":
            assert MissedFires.model_validate({"policy": name}).policy == name
        case "word":
            assert word in NAMES
        case _:
            assert kind == "none", f"{word}: {ours.where}"
            assert ours.why


@pytest.mark.parametrize(
    ("cron", "zone", "message"),
    [
        ("61 * * * *", "UTC", "61 is not between"),
        ("0 0 * * *", "Nowhere/Such", "no time zone"),
        ("0 0 30 2 *", "UTC", "no day 30"),
    ],
)
def test_schedule_with_an_error_of_cron_is_refused(cron: str, zone: str, message: str) -> None:
    with pytest.raises(errors.DefinitionError, match=message):
        Schedule(ref="depot.nightly", action="depot.count", cron=cron, timezone=zone)


@pytest.mark.parametrize("place", words.DEFAULTS)
def test_default_is_ours(place: str) -> None:
    kind, *rest = words.DEFAULTS[place].split()
    match kind, rest:
        case "setting", [name, value]:
            assert Settings().model_dump()[name] == float(value)
        case "option", [name, value]:
            model, _, option = name.partition(".")
            assert MODELS[model].model_fields[option].get_default() == float(value)
        case "health", [name, value]:
            assert getattr(health, name) == float(value)
        case "relation", [first, second]:
            with pytest.raises(ValueError, match=f"{first}.*{second}"):
                Settings(
                    stale_threshold=30.0, heartbeat_interval=11.0
                ) if second == "heartbeat_interval" else Settings(sweep_interval=60.0, stale_threshold=60.0)
        case "route", [name]:
            assert Settings().routes == name
