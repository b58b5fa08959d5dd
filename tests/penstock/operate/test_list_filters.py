"""The filters of a list as users write them: checked, stored, and typed into the fields of a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from penstock.errors import InvalidInput
from penstock.operate.list_filters import (
    NAMES,
    as_texts,
    checked,
    execution_filter,
    from_texts,
    label_words,
    labels_of,
)
from penstock.store.session.noted_clock import noted

ID = UUID(int=7)
EVERY: dict[str, Any] = {
    "status": ["failed", "timeout"],
    "action": "shop.charge",
    "tenant": "acme",
    "since": "24h",
    "until": "2030-01-31T09:00",
    "event": str(ID),
    "parent": str(ID),
    "children": True,
    "label": ["customer=acme and sons", "source=shop"],
    "key": "order-7",
    "waits_for_answer": True,
    "paused": True,
}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", None),
        ("customer=cole", {"customer": "cole"}),
        ("customer=cole,source=shop", {"customer": "cole", "source": "shop"}),
        ("customer=cole, source=shop", {"customer": "cole", "source": "shop"}),
        (" customer=cole source=shop ", {"customer": "cole", "source": "shop"}),
        ("customer=cole and sons source=shop", {"customer": "cole and sons", "source": "shop"}),
    ],
)
def test_comma_or_space_separates_labels(text: str, labels: dict[str, str] | None) -> None:
    assert labels_of(label_words(text)) == labels


def test_each_filter_is_checked_stored_and_typed() -> None:
    assert tuple(EVERY) == NAMES
    assert checked(EVERY) == EVERY
    assert from_texts(as_texts(EVERY)) == EVERY
    chosen = execution_filter(EVERY)
    assert chosen.status == ["failed", "timeout"]
    assert (chosen.action, chosen.tenant, chosen.key) == ("shop.charge", "acme", "order-7")
    assert (chosen.event, chosen.parent, chosen.until) == (ID, ID, datetime(2030, 1, 31, 9, tzinfo=UTC))
    assert chosen.labels == {"customer": "acme and sons", "source": "shop"}
    assert (chosen.children, chosen.waits_for_answer, chosen.paused) == (True, True, True)


def test_age_counts_back_from_the_moment_of_the_list() -> None:
    began = noted()
    since = execution_filter({"since": "24h"}).since
    assert since is not None
    assert began <= since + timedelta(days=1) <= noted()


def test_values_of_programs_are_stored_as_texts() -> None:
    since = datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert checked({"since": since, "event": ID, "status": "failed", "children": False, "key": None}) == {
        "status": ["failed"],
        "since": since.isoformat(),
        "event": str(ID),
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("statsu", ["failed"], "there is no filter 'statsu'"),
        ("params", {"a": 1}, "there is no filter 'params'"),
        ("status", ["sleeping"], "unknown status 'sleeping'"),
        ("status", [], "the filter status is empty"),
        ("status", [7], "status is not a list of texts"),
        ("status", {"failed": 1}, "status is not a list of texts"),
        ("action", "", "the filter action is empty"),
        ("action", 7, "action is not a text"),
        ("key", "a\0b", "key is not a text without NUL characters"),
        ("action", "\ud800", "action is not a text without NUL characters"),
        ("label", ["a=\0"], "label a is not a text"),
        ("since", "yesterday", "since: 'yesterday' is neither an instant nor an age"),
        ("until", "101000d", "until: '101000d' is neither an instant nor an age"),
        ("since", 3600, "since is not a text"),
        ("event", "7", "'7' is not an id, which event needs"),
        ("children", "true", "children is not true or false"),
        ("label", ["customer"], "label is not key=value"),
        ("label", ["a=1", "a=2"], "label has two values for 'a'"),
        ("label", ["a=" + "x" * 201], "label a is not a text of 1 to 200 printable characters"),
    ],
)
def test_wrong_filter_is_refused_with_a_hint(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked({name: value})
    assert message in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("texts", [{"children": "yes"}, {"status": ","}, {"since": "1h,2h"}, {"label": "x"}])
def test_wrong_text_of_an_address_is_refused(texts: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        from_texts(texts)


def test_empty_field_of_a_page_is_no_filter() -> None:
    assert from_texts({"status": "", "label": "", "key": "", "children": "false"}) == {}
