"""The settings: their relations, what is refused, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.settings import FOREIGN, Settings, load

PAGE = Path(__file__).parents[2] / "docs/configuration.md"
WORDS = {
    "database_url": "unset",
    "database_read_url": "unset",
    "broker_url": "unset",
    "export_folder": "unset",
    "result_store": "unset",
    "schedule_to_start": "unset",
    "wait": "unset",
    "modules": "none",
    "labels": "none",
    "private_subscribers": "none",
    "known_routes": "none",
    "name": "host and process id",
}
"""Defaults that the page gives in words."""


def listed() -> dict[str, str]:
    """Variable and default, of every row of the page."""
    rows = re.findall(r"^\| `(PENSTOCK_[A-Z_]+)` \| ([^|]+) \|", PAGE.read_text(), re.M)
    assert len(rows) == len(dict(rows)), "a setting is listed twice"
    return {name: default.strip().strip("`") for name, default in rows}


def test_the_page_lists_every_setting_with_its_default() -> None:
    rows = listed()
    expected = {f"PENSTOCK_{name.upper()}": name for name in Settings.model_fields}
    assert set(rows) - FOREIGN == set(expected), (
        "docs/configuration.md has a row for each setting, and no other"
    )
    for variable, name in expected.items():
        default = WORDS.get(name, Settings.model_fields[name].get_default(call_default_factory=True))
        assert rows[variable] == (f"{default:g}" if isinstance(default, float) else str(default).lower()), (
            f"{variable}: its default in docs/configuration.md, or a word for it in WORDS"
        )


def test_the_page_names_what_only_looks_like_a_setting() -> None:
    text = PAGE.read_text()
    assert [name for name in FOREIGN if f"`{name}`" not in text] == []


def test_a_misspelt_setting_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_ULR", "postgresql://nowhere")
    with pytest.raises(ConfigurationError, match="PENSTOCK_DATABASE_ULR"):
        load()


def test_what_is_for_the_tests_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_ANYTHING", "1")
    load()


def test_an_empty_address_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_BROKER_URL", "")
    assert load().transport == "postgres"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"stale_threshold": 20, "sweep_interval": 5}, "at least 3 x heartbeat_interval"),
        ({"sweep_interval": 60}, "must be below stale_threshold"),
        ({"concurrency": 0}, "concurrency"),
        ({"prefix": "a b"}, "prefix"),
        ({"batch": "many"}, "batch"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(given: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load(**given)


def test_the_addresses_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://me:hidden@host/db")
    assert "hidden" not in repr(load())
