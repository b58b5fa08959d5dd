"""The requests that can be sent from a page: its forms and buttons, read out of its HTML."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import httpx


@dataclass(slots=True)
class Form:
    """A request, and its content before a person fills it in."""

    method: str
    address: str
    of_a_script: bool
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.address

    async def send(self, browser: httpx.AsyncClient) -> httpx.Response:
        if self.of_a_script:
            headers = {"accept": "application/json"}
            return await browser.request(self.method, self.address, json=self.body, headers=headers)
        if self.method == "GET":
            return await browser.get(self.address, params=self.body)
        return await browser.post(self.address, data=self.body)


def forms(html: str, path: str) -> list[Form]:
    """All of a page. Raises AssertionError for a button that belongs to none of them."""
    reader = _Reader(path)
    reader.feed(html)
    reader.close()
    return reader.found


class _Reader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = urlsplit(path).path
        self._form: Form | None = None
        self._asks: tuple[dict[str, str], str] | None = None
        self.found: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert not {"formaction", "formmethod"} & given.keys(), given
        if tag == "form":
            self._form = self._begun(given)
            self.found.append(self._form)
        elif "popovertarget" in given:
            return  # the button shows or hides a part of the page
        elif tag == "button" or (tag == "input" and given.get("type") in ("submit", "image", "button")):
            assert self._form is not None, f"a button of {self._path} belongs to no form: {given}"
            if "name" in given:
                self._form.body.setdefault(given["name"], given.get("value", ""))
            elif "data-at" in given:  # a button of a yes or a no
                self._fill({**given, "data-kind": "json"}, given["value"])
        elif tag == "input" and given.get("type") not in ("checkbox", "radio"):
            self._fill(given, given.get("value", ""))
        elif tag in ("textarea", "select"):
            self._asks = (given, "")
        elif tag == "option" and self._asks is not None and "value" in given:
            select, value = self._asks  # a browser selects the first option by itself
            self._asks = (select, given["value"] if "selected" in given or not value else value)

    def handle_data(self, data: str) -> None:
        if self._asks is not None and not self._asks[1]:
            self._asks = (self._asks[0], data.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag in ("textarea", "select") and self._asks is not None:
            self._fill(*self._asks)
            self._asks = None

    def _begun(self, given: dict[str, str]) -> Form:
        if "data-api" in given:
            method, address, *more = given["data-api"].split(" ", 2)
            return Form(method, address, True, json.loads(more[0]) if more else {})
        address = given.get("action") or self._path
        return Form(given.get("method", "get").upper(), urlsplit(address).path, False)

    def _fill(self, given: dict[str, str], value: str) -> None:
        if self._form is None or value == "":
            return
        if not self._form.of_a_script:
            if "name" in given:
                self._form.body[given["name"]] = value
            return
        if "data-name-of" in given:
            self._form.address = self._form.address.replace("{name}", value)
            return
        place: list[str] = json.loads(given["data-at"])
        read: Any = value
        if given["data-kind"] in ("json", "integer", "number"):
            with suppress(ValueError):
                read = json.loads(value)
        elif given["data-kind"] == "words":
            read = value.replace(",", " ").split()
        here = self._form.body
        for name in place[:-1]:
            here = here.setdefault(name, {})
        here[place[-1]] = read
