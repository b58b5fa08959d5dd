"""The values of options on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.arguments import parse_delay, parse_duration, parse_params, parse_value
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


@pytest.mark.parametrize("number", ["18446744073709551617", "-9223372036854775809", "1" + "0" * 30])
@pytest.mark.parametrize("form", ["%s", "[%s]", '{"a": {"b": %s}}'])
async def test_integer_beyond_64_bits_is_refused(number: str, form: str, tmp_path: Path) -> None:
    value = form % number
    with pytest.raises(InvalidInput, match="Integer exceeds 64-bit range"):
        parse_value(value)
    with pytest.raises(InvalidInput, match="Integer exceeds 64-bit range"):
        parse_params([f"value={value}"])
    path = tmp_path / "params.json"
    path.write_text(f'{{"value": {value}}}')
    with pytest.raises(InvalidInput, match="Integer exceeds 64-bit range"):
        parse_params([f"@{path}"])


@pytest.mark.parametrize(
    "words", [["a=1", "a=2"], ['a={"b": 1, "b": 2}'], ['a=[{"b": {"c": 1, "d": 2, "c": 3}}]']]
)
def test_name_with_two_values_is_refused(words: list[str]) -> None:
    with pytest.raises(InvalidInput, match=r"two values|twice"):
        parse_params(words)


def test_word_replaces_the_value_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_text('{"a": 1, "b": {"a": 1}}')
    assert parse_params([f"@{path}", "a=2"]) == {"a": 2, "b": {"a": 1}}
    assert parse_value("{" * 2000) == "{" * 2000
