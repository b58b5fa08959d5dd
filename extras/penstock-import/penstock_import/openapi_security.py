"""The credentials of the operations of an OpenAPI document, as secrets of HTTP actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InvalidInput
from penstock_import.openapi_document import Document, list_of, mapping_of
from penstock_import.openapi_keys import name_unread
from penstock_import.openapi_types import snake
from penstock_import.report import Report


@dataclass(slots=True)
class Credential:
    """The parts of a request that authorize it. `secrets` has the names of stored secrets, by their names in templates."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def has(self, place: str, name: str) -> bool:
        """Return whether the credential sets a parameter of this place: query, header or cookie."""
        if place == "header":
            return name.lower() in {header.lower() for header in self.headers}
        return name in {"query": self.query, "cookie": self.cookies}.get(place, {})


class Security:
    """The choice of a credential for each operation. The first scheme that is used has the secret that the caller names, or one
    named after the pack. Each other scheme has a secret of its own."""

    def __init__(self, document: Document, report: Report, pack: str, secret: str | None) -> None:
        self._document = document
        self._report = report
        self._secret = secret
        self._base = secret or f"{pack}_token"
        self._stored: dict[str, str] = {}
        self._is_used = False

    def credential(self, operation: Mapping[str, Any]) -> Credential:
        """Return the credential of an operation: that of the first alternative that HTTP actions can send. Raises
        InvalidInput if there is none."""
        owner = operation if "security" in operation else self._document.root
        if "security" not in owner:
            return self._undeclared()
        alternatives = [
            mapping_of(entry, "an entry of security") for entry in list_of(owner["security"], "security")
        ]
        if not alternatives or ({} in alternatives and self._secret is None):
            return Credential()
        faults = []
        for alternative in filter(None, alternatives):
            try:
                return self._of(alternative)
            except InvalidInput as error:
                faults.append(error.message)
        if {} in alternatives:
            return Credential()
        raise InvalidInput(f"its credential cannot be sent: {', or '.join(faults)}")

    def name_unused(self) -> None:
        """Add a gap if a secret was named that no operation sends."""
        if self._secret is not None and not self._is_used:
            self._report.gap(
                self._document.file,
                1,
                f"no operation sends the secret {self._secret}: the document declares them public",
                "If a call is refused, add the header to its action.",
            )

    def _undeclared(self) -> Credential:
        """Return the credential of a document that declares none: a bearer token, if the caller names a secret."""
        if self._secret is None:
            return Credential()
        self._is_used = True
        return Credential({"Authorization": "Bearer {{ secrets.token }}"}, secrets={"token": self._secret})

    def _of(self, alternative: Mapping[str, Any]) -> Credential:
        """Return the credential with all schemes of an alternative. Raises InvalidInput if a scheme cannot be followed,
        or two of them set the same place."""
        schemes = {name: self._document.component("securitySchemes", str(name)) for name in alternative}
        credential = Credential()
        for name, scheme in schemes.items():
            place, target, prefix = _sent(name, scheme)
            if credential.has(place, target):
                raise InvalidInput(f"two of its security schemes set {target}")
            alias = "token" if not credential.secrets else f"token_{snake(name)}"
            parts = {"query": credential.query, "cookie": credential.cookies, "header": credential.headers}
            parts[place][target] = f"{prefix}{{{{ secrets.{alias} }}}}"
            credential.secrets[alias] = ""
        for alias, (name, scheme) in zip(credential.secrets, schemes.items(), strict=True):
            credential.secrets[alias] = self._store(name, scheme)
        self._is_used = True
        return credential

    def _store(self, name: str, scheme: Mapping[str, Any]) -> str:
        """Return the name of the stored secret of a scheme. Its first use names in gaps what is to be stored."""
        if name in self._stored:
            return self._stored[name]
        stored = self._base if not self._stored else f"{self._base}_{snake(name)}"
        file = self._document.file
        if self._stored:
            self._report.gap(
                file,
                1,
                f"the security scheme {name} has a credential of its own",
                f"Store it as the secret {stored}.",
            )
        self._stored[name] = stored
        if _kind(scheme) == "basic":
            self._report.gap(
                file,
                1,
                "operations authorize themselves with a user and a password",
                f"Store base64 of user:password as the secret {stored}.",
            )
        name_unread(self._report, file, "security scheme", scheme, f"the security scheme {name}")
        return stored


def _kind(scheme: Mapping[str, Any]) -> str:
    kind = str(scheme.get("type"))
    return str(scheme.get("scheme", "")).lower() if kind == "http" else kind


def _sent(name: str, scheme: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the place of a credential, the name there, and the text before it. Raises InvalidInput for a scheme that
    an HTTP action cannot follow."""
    kind = _kind(scheme)
    if kind == "apiKey" and scheme.get("in") in ("header", "query", "cookie") and scheme.get("name"):
        return str(scheme["in"]), str(scheme["name"]), ""
    if kind in ("bearer", "oauth2", "openIdConnect"):
        return "header", "Authorization", "Bearer "
    if kind == "basic":
        return "header", "Authorization", "Basic "
    raise InvalidInput(f"the scheme {name} is {kind}")
