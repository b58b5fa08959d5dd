"""The settings: their relations, what is refused, and the page that lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.written.fields import attribute_docs
from docs.written.settings_texts import SECTIONS
from penstock.errors import ConfigurationError
from penstock.service.environment import FOREIGN, load
from penstock.settings import Settings

PAGE = Path(__file__).parents[2] / "docs/configuration.md"


def test_every_setting_has_its_row_on_the_page() -> None:
    """And its row says what its code says: see test_written.py."""
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(Settings.model_fields)
    assert set(attribute_docs(Settings)) == set(listed), "a text below each setting"


def test_the_page_names_variables_that_only_look_like_settings() -> None:
    text = PAGE.read_text()
    assert [name for name in FOREIGN if f"`{name}`" not in text] == []


def test_a_misspelt_setting_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_ULR", "postgresql://nowhere")
    with pytest.raises(ConfigurationError, match="PENSTOCK_DATABASE_ULR"):
        load()


def test_a_variable_for_the_tests_is_not_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_ANYTHING", "1")
    load()


@pytest.mark.parametrize("name", sorted({*Settings.model_fields} - {"name"}))
def test_an_empty_variable_is_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PENSTOCK_{name.upper()}", "")
    assert (
        getattr(load(), name)
        == getattr(Settings(), name)
        == Settings.model_fields[name].get_default(call_default_factory=True)
    )


def test_levels_may_be_written_as_in_other_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_LOG_LEVEL", "WARNING")
    assert load().log_level == "warning"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"stale_threshold": 20, "sweep_interval": 5}, "at least 3 x heartbeat_interval"),
        ({"sweep_interval": 60}, "must be below stale_threshold"),
        ({"concurrency": 0}, "concurrency"),
        ({"prefix": "a b"}, "prefix"),
        ({"batch": "many"}, "batch"),
        ({"log_level": "loud"}, "log_level.*'error' or 'critical'"),
        ({"log_format": "jsn"}, "log_format.*'json', 'console' or 'auto'"),
    ],
)
def test_an_impossible_setting_is_refused_at_the_start(given: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load(**given)


def test_the_addresses_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://me:hidden@host/db")
    assert "hidden" not in repr(load())
