"""The addresses to which an answer may redirect."""

from __future__ import annotations

import httpx
import pytest

from penstock.attempts.http.http_answers import onward
from penstock.errors import AddressRefused


@pytest.mark.parametrize(
    ("url", "location", "reason"),
    [
        ("https://a.example/", "http://b.example/x", "leads from https to http"),
        ("http://a.example/", "ftp://b.example/x", "neither http nor https"),
        ("https://a.example/", "ftp://b.example/x", "neither http nor https"),
    ],
)
def test_refused_redirect_names_its_reason(url: str, location: str, reason: str) -> None:
    with pytest.raises(AddressRefused, match=reason):
        onward(httpx.URL(url), httpx.Headers({"location": location}))


def test_redirect_from_http_to_https_is_followed() -> None:
    answer = httpx.Headers({"location": "https://a.example/x"})
    assert str(onward(httpx.URL("http://a.example/"), answer)) == "https://a.example/x"
