"""The instants of requests: each field and parameter takes ISO 8601 with an offset, and no number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from types import SimpleNamespace
from typing import Annotated, Any, cast, get_args

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    FutureDatetime,
    NaiveDatetime,
    PastDatetime,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo

from penstock.cli.arguments import parse_instant
from penstock.errors import PenstockError
from penstock.language.definitions.schedule import Schedule
from penstock.language.schedules import Spec
from penstock.operate import list_filters
from penstock.run.outgoing import request_of
from penstock.settings import Settings
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.models.model import Instant

NUMBERS = ("20301231", "5", "1e12", "-5", "20301231T090000Z", 5, 1e12, 253402300800, True)
TIMES = (datetime, date, time, timedelta, AwareDatetime, NaiveDatetime, FutureDatetime, PastDatetime)


def leaves(annotation: object) -> Iterator[object]:
    """Yield the types within an annotation."""
    yield annotation
    for part in get_args(annotation):
        yield from leaves(part)


def fields_of(name: str, field: FieldInfo, seen: set[type]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield a field, and the fields of the models within it."""
    yield name, field
    for leaf in leaves(field.annotation):
        if isinstance(leaf, type) and issubclass(leaf, BaseModel) and leaf not in seen:
            seen.add(leaf)
            for inner, described in leaf.model_fields.items():
                yield from fields_of(f"{leaf.__name__}.{inner}", described, seen)


def dependants(dependant: Dependant) -> Iterator[Dependant]:
    """Yield a dependant of a route, and those that it depends on."""
    yield dependant
    for inner in dependant.dependencies:
        yield from dependants(inner)


def request_fields() -> dict[str, FieldInfo]:
    """Return each field and parameter of the requests of the API, by name."""
    app = make_app(cast(Backend, SimpleNamespace(settings=Settings())))
    found: dict[str, FieldInfo] = {}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute):
            for part in dependants(route.dependant):
                for group in (part.path_params, part.query_params, part.header_params, part.body_params):
                    for parameter in group:
                        name = f"{route.name} {parameter.name}"
                        found |= dict(fields_of(name, parameter.field_info, set()))
    return found


FIELDS = request_fields()
INSTANTS = {
    name: field for name, field in FIELDS.items() if any(leaf in TIMES for leaf in leaves(field.annotation))
}


def validated(field: FieldInfo, value: object) -> object:
    annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return TypeAdapter(annotation, config=ConfigDict(strict=True)).validate_python(value)


DAYS = {"show_all since", "show_all until"}
"""The parameters with a day and no time. The page of the audit has them."""


def test_requests_have_these_instants() -> None:
    assert len(FIELDS) > 500
    assert {*INSTANTS} == DAYS | {
        *("Backfill.first", "Backfill.last", "End.until", "InquiryAnswer.asked", "NewHold.until"),
        *("OpenBreaker.until", "ReplayRule.since", "ReplayRule.until", "Reschedule.at", "Start.at"),
        *("Start.expires_at", "history before", "list_changes since", "list_changes until"),
        *("list_events since", "list_events until", "recoveries since"),
    }


@pytest.mark.parametrize("name", sorted(INSTANTS))
@pytest.mark.parametrize("value", NUMBERS)
def test_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        validated(INSTANTS[name], value)


@pytest.mark.parametrize("name", sorted({*INSTANTS} - DAYS))
def test_instant_has_a_time_and_an_offset(name: str) -> None:
    for text in ("2030-12-31", "2030-12-31T09:00:00"):
        with pytest.raises(ValidationError):
            validated(INSTANTS[name], text)
    assert validated(INSTANTS[name], "2030-12-31T10:00:00+01:00") == datetime(2030, 12, 31, 9, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(DAYS))
def test_day_is_read(name: str) -> None:
    assert validated(INSTANTS[name], "2030-12-31") == date(2030, 12, 31)


@pytest.mark.parametrize("value", [5, "5", "20301231"])
def test_json_number_is_refused_with_a_hint(value: object) -> None:
    class Body(BaseModel):
        model_config = ConfigDict(strict=True)
        at: Instant

    with pytest.raises(ValidationError, match="neither as a date nor as Unix seconds"):
        Body.model_validate({"at": value})


def start(value: object) -> object:
    return request_of({"request": "Start", "ref": "shop.charge", "params": {}, "at": value})


READERS: dict[str, Callable[[Any], object]] = {
    "filter of a list": lambda value: list_filters.execution_filter({"since": value}),
    "option of a command": lambda value: parse_instant("--at", value),
    "at of a schedule": lambda value: Schedule("shop.nightly", action="shop.charge", at=value),
    "starts_at of a schedule": lambda value: Schedule(
        "shop.nightly", action="shop.charge", every="1h", starts_at=value
    ),
    "expression of a schedule": lambda value: Spec.parse(f"at {value}"),
    "request of an action": start,
}
"""The other readers of instants, by what they read."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("value", NUMBERS)
def test_other_reader_refuses_number(reader: str, value: object) -> None:
    with pytest.raises(PenstockError):
        READERS[reader](value)


@pytest.mark.parametrize("reader", READERS)
def test_other_reader_takes_instant_with_offset(reader: str) -> None:
    assert READERS[reader]("2030-12-31T10:00:00+01:00")
