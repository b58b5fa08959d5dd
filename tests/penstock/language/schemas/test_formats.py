from __future__ import annotations

import pytest

from penstock.language.schemas import formats

TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "date-time": (
        ["2030-01-02T03:04:05Z", "2030-01-02T03:04:05+02:00"],
        ["", "yesterday", "2030-13-01T00:00:00Z"],
    ),
    "date": (["2030-01-02"], ["", "2030-02-30", "2030-01-02T00:00:00Z"]),
    "time": (["03:04:05", "03:04:05Z"], ["", "25:00:00"]),
    "uuid": (["00000000-0000-0000-0000-000000000007"], ["", "0000"]),
    "ipv4": (["10.0.0.1"], ["", "10.0.0.256", "::1"]),
    "ipv6": (["::1", "2001:db8::7"], ["", "10.0.0.1", "::g"]),
}


def test_every_enforced_format_has_texts() -> None:
    assert TEXTS.keys() == formats.FORMATS.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_format_takes_its_texts_and_refuses_others(name: str) -> None:
    fitting, unfit = TEXTS[name]
    assert [formats.fits(name, text) for text in fitting] == [True] * len(fitting)
    assert [formats.fits(name, text) for text in unfit] == [False] * len(unfit)


def test_format_that_is_not_enforced_fits_always() -> None:
    assert formats.fits("email", "no address") is True
