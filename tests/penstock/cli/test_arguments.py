"""The values of options on the command line."""

from __future__ import annotations

import pytest

from penstock.cli.arguments import parse_delay, parse_duration
from penstock.errors import InvalidInput
from tests.penstock.cli.commands import penstock


@pytest.mark.parametrize(
    ("word", "seconds"), [("5s", 5), ("1h30m", 5400), ("90", 90), ("0.5", 0.5), ("1e2", 100), ("500ms", 0.5)]
)
def test_duration_is_text_or_seconds(word: str, seconds: float) -> None:
    assert parse_duration("--for", word) == parse_delay("--delay", word) == seconds


@pytest.mark.parametrize("word", ["0", "0.0"])
def test_zero_is_a_delay_and_not_a_duration(word: str) -> None:
    assert parse_delay("--delay", word) == 0
    with pytest.raises(InvalidInput, match="--for"):
        parse_duration("--for", word)


@pytest.mark.parametrize("word", ["soon", "-5", "nan", "inf", "", "5 seconds"])
def test_word_that_is_not_a_duration_is_refused(word: str) -> None:
    with pytest.raises(InvalidInput, match="--delay"):
        parse_delay("--delay", word)


@pytest.mark.parametrize("option", ["--delay", "--timeout"])
async def test_run_names_the_option_that_is_not_a_duration(option: str) -> None:
    refused = await penstock("run", "shop.charge", option, "soon")
    assert refused.code == 1
    assert f"{option} is not a duration: 'soon'" in refused.err
