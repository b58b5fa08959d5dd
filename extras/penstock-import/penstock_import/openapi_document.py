"""The reading of an OpenAPI 3 document, and of the references in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import orjson
import yaml

from penstock.errors import InvalidInput, NotFound

LARGEST_BYTES = 64 * 1024 * 1024
"""The largest document. Those of GitHub and Stripe have some 10 MB."""
MAX_REFERENCES = 20
"""The most references that lead from one to the next."""


def read_document(source: str) -> tuple[dict[str, Any], str | None]:
    """Return the document at a path or an http(s) URL, and that URL. Raises NotFound if there is no document at this
    path or URL, and InvalidInput if it is too large or not OpenAPI 3."""
    if source.startswith(("http://", "https://")):
        import httpx

        try:
            with httpx.stream("GET", source, follow_redirects=True, timeout=60) as response:
                response.raise_for_status()
                text = b"".join(_bounded(response.iter_bytes()))
        except httpx.HTTPError as error:
            raise NotFound(f"{source} gives no document: {error}", hint="Pass its URL, or a file.") from None
        return _parsed(text, source), source
    path = Path(source)
    if not path.is_file():
        raise NotFound(f"there is no file {source}", hint="Pass the path or the URL of an OpenAPI document.")
    return _parsed(path.read_bytes(), source), None


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_BYTES:
            raise InvalidInput(
                f"the document has more than {LARGEST_BYTES:,} bytes", hint="Pass a smaller document."
            )
        yield piece


def _parsed(text: bytes, source: str) -> dict[str, Any]:
    try:
        document = orjson.loads(text)
    except ValueError:
        try:
            document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise InvalidInput(
                f"{source} is neither JSON nor YAML: {error}", hint="Pass the document itself."
            ) from None
    version = str(document.get("openapi", "")) if isinstance(document, dict) else ""
    if not version.startswith("3."):
        raise InvalidInput(
            f"{source} is not a document of OpenAPI 3",
            hint="Convert a document of Swagger 2 first, with swagger2openapi.",
        )
    return dict(document)


def mapping_of(value: Any, subject: str) -> Mapping[str, Any]:
    """Return a mapping, which is empty for null. Raises InvalidInput for another value."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{subject} is {type(value).__name__} and not a mapping")
    return value


def list_of(value: Any, subject: str) -> list[Any]:
    """Return a list, which is empty for null. Raises InvalidInput for another value."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{subject} is {type(value).__name__} and not a list")
    return value


class Document:
    """An OpenAPI document. `file` names it in gaps."""

    def __init__(self, source: str) -> None:
        """Read the document. Raises NotFound if there is no document at `source`, and InvalidInput if it is too large
        or not OpenAPI 3."""
        self.root, self._address = read_document(source)
        self.file = Path(urlsplit(source).path).name or "document"

    def component(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return a component by its kind and name. Raises InvalidInput if the document lacks it."""
        components = mapping_of(self.root.get("components"), "components")
        parts = mapping_of(components.get(kind), f"components/{kind}")
        if name not in parts:
            raise InvalidInput(f"the document has no components/{kind}/{name}")
        return mapping_of(self.resolved(parts[name]), f"components/{kind}/{name}")

    def resolved(self, value: Any) -> Any:
        """Follow the reference that a part of the document may be. Raises InvalidInput if the reference leads nowhere
        or in a circle."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
                return value
            value = self.at(value["$ref"])
        raise InvalidInput(f"the reference {value['$ref']} leads in a circle")

    def path_item(self, value: Any, path: str) -> Mapping[str, Any]:
        """Return the item of a path. The keys beside its reference complete those of its target."""
        own = {key: part for key, part in mapping_of(value, path).items() if key != "$ref"}
        return {**mapping_of(self.resolved(value), path), **own}

    def at(self, reference: str) -> Any:
        """Return the part of the document to which a reference points. Raises InvalidInput for another document, and for
        a reference that leads nowhere."""
        base, _, fragment = reference.partition("#")
        if base:
            raise InvalidInput(
                f"the reference {reference} leads out of the document", hint="Bundle it first."
            )
        part: Any = self.root
        pointer = unquote(fragment)
        for word in pointer.split("/")[1:]:
            key = word.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping) and key in part:
                part = part[key]
            elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                raise InvalidInput(f"the reference {reference} leads nowhere")
        if pointer and not pointer.startswith("/"):
            raise InvalidInput(f"the reference {reference} is an anchor", hint="Bundle the document first.")
        return part

    def server(self, *owners: Mapping[str, Any]) -> str:
        """Return the URL of the first server of the first owner that has any. Raises InvalidInput if none is an http URL."""
        for owner in owners:
            servers = list_of(owner.get("servers"), "servers")
            for server in servers:
                server = mapping_of(server, "a server")
                url = str(server.get("url", ""))
                for name, variable in mapping_of(server.get("variables"), "variables").items():
                    default = mapping_of(variable, f"the variable {name}").get("default", "")
                    url = url.replace("{" + name + "}", str(default))
                url = urljoin(self._address, url) if self._address else url
                if url.startswith(("http://", "https://")) and "{" not in url:
                    return url.rstrip("/")
            if servers:
                raise InvalidInput(
                    "its servers have no URL with http or https",
                    hint="Name the server: --server https://api.example.org.",
                )
        if self._address:
            return urljoin(self._address, "/").rstrip("/")
        raise InvalidInput("the document names no server", hint="Name it: --server https://api.example.org.")
