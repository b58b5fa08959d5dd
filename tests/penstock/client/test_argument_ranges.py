"""Numbers and instants of the client's methods: what is out of range is refused before anything is looked up or changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from penstock import action
from penstock.client.client import Client
from penstock.errors import InvalidInput
from tests.flows.installation import Installation

PAST = datetime(2020, 1, 1, tzinfo=UTC)
SUBJECTS = ("", "schedules", "limits", "holds", "breakers", "rules", "views", "workers")
WRONG = {"int": (-1, 0), "float": (-1, 0), "float | timedelta | str": (-1,)}
NOT_WRONG = {
    "start.priority",
    "start_many.priority",
    "set_priority.priority",
    "start.max_depth 0",
    "publish.max_depth 0",
} | {
    "start.max_descendants 0",
    "publish.max_descendants 0",
}
"""Priorities have a range on both sides of zero. A depth of zero lets nothing follow."""
ENDS = {"hold.until", "open.until"}
"""The instants that must be to come. An execution may be due, or a period begin, in the past."""
OTHERS: Mapping[str, Callable[[], Any]] = {
    "UUID": uuid4,
    "datetime": lambda: datetime(2030, 1, 1, tzinfo=UTC),
    "int": lambda: 1,
    "Mapping[str, Any]": dict,
    "Sequence[Mapping[str, Any]]": lambda: [{}],
}


@action(pack="shop")
async def x() -> None: ...


def cases() -> Iterator[tuple[str, str, str, Any]]:
    """Yield each method with a parameter and a value that is out of its range."""
    for subject in SUBJECTS:
        owner = Client if not subject else type_of(subject)
        for name, method in inspect.getmembers(owner, inspect.iscoroutinefunction):
            if name.startswith("_"):
                continue
            for parameter in inspect.signature(method).parameters.values():
                annotation = str(parameter.annotation).removesuffix(" | None")
                values = (PAST,) if f"{name}.{parameter.name}" in ENDS else WRONG.get(annotation, ())
                for value in values:
                    place = f"{name}.{parameter.name}"
                    if place not in NOT_WRONG and f"{place} {value}" not in NOT_WRONG:
                        yield subject, name, parameter.name, value


def type_of(subject: str) -> type:
    from penstock.client import breakers, holds, limits, rules, saved_views, schedules, workers

    modules = (breakers, holds, limits, rules, saved_views, schedules, workers)
    [owner] = [getattr(module, subject.title()) for module in modules if hasattr(module, subject.title())]
    return owner  # type: ignore[no-any-return]


async def test_client_refuses_arguments_out_of_range_first(house: Installation) -> None:
    await house.apply(x)
    tried, accepted = 0, []
    for subject, name, wrong, value in cases():
        owner: Any = getattr(house.client, subject) if subject else house.client
        method = getattr(owner, name)
        required = [
            p
            for p in inspect.signature(method).parameters.values()
            if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL
        ]
        values = {p.name: OTHERS.get(str(p.annotation), lambda: "shop.x")() for p in required}
        first = [values.pop(p.name) for p in required if p.kind is p.POSITIONAL_ONLY]
        arguments = {"debounce": 1, **values} if wrong == "at_most" else values
        if name == "hold":
            arguments["kind"] = "action"
        tried += 1
        try:
            await method(*first, **{**arguments, wrong: value})
        except InvalidInput:
            continue
        except Exception as error:
            accepted.append(f"{subject}.{name}({wrong}={value}): {type(error).__name__} {error}")
        else:
            accepted.append(f"{subject}.{name}({wrong}={value})")
    assert tried > 20
    assert not accepted, "\n".join(accepted)


@pytest.mark.parametrize("seconds", [-600, 0, 3.1e8])
async def test_pause_refuses_a_time_that_is_past_or_none(house: Installation, seconds: float) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        await house.client.schedules.pause("shop.x", seconds)
