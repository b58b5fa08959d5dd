"""An OpenAPI 3 document as a project: each operation becomes an HTTP action with typed parameters.

Not here: the schemas of responses, which many servers do not keep. Webhooks and callbacks are gaps.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import InvalidInput, PenstockError
from penstock_import.openapi_body import add_body
from penstock_import.openapi_document import Document, list_of, mapping_of
from penstock_import.openapi_keys import name_unread
from penstock_import.openapi_request import RequestBuilder
from penstock_import.openapi_security import Security
from penstock_import.openapi_types import first_line, snake
from penstock_import.project import Project, bounded
from penstock_import.report import Report

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
"""The methods whose calls can be repeated without another effect (RFC 9110, 9.2.2). Their actions are retried."""
RETRY = {"max_attempts": 4, "backoff": "exponential", "initial_delay": "1s", "max_delay": "1m"}


class OpenApiDocument:
    """The mapping of one document to a project."""

    def __init__(
        self, source: str, *, name: str | None, server: str | None, secret: str | None, only: Sequence[str]
    ) -> None:
        """`name` is that of the pack. `server` replaces the servers of the document. `secret` is the name of the stored
        secret that authorizes calls. `only` are patterns of operation ids and tags; none means all. Raises NotFound if
        there is no document at `source`, and InvalidInput if it is too large or not OpenAPI 3."""
        self._document = Document(source)
        self._file = self._document.file
        self._only = only
        self.report = Report()
        self._info = mapping_of(self._document.root.get("info"), "info")
        self.project = Project(bounded(snake(name or str(self._info.get("title") or "api"))))
        self._server = server.rstrip("/") if server else None
        self._security = Security(self._document, self.report, self.project.name, secret)

    def mapped(self) -> Project:
        """Return the project. `report` then has the gaps."""
        root = self._document.root
        paths = mapping_of(root.get("paths"), "paths")
        try:
            server = self._server or self._document.server(root)
        except InvalidInput:
            if not any("servers" in item for item in paths.values() if isinstance(item, Mapping)):
                raise
            server = None
        self.project.about = {
            "title": self._info.get("title"),
            "version": self._info.get("version"),
            "server": server,
        }
        name_unread(self.report, self._file, "document", root, "the document")
        for path, written in paths.items():
            if not str(path).startswith("x-"):
                self._add_path(str(path), written)
        if not self.report.found["actions"]:
            self.report.gap(self._file, 1, "no operation was selected", "Look at the patterns of --only.")
        self._security.name_unused()
        return self.project

    def _add_path(self, path: str, written: Any) -> None:
        try:
            item = self._document.path_item(written, path)
        except InvalidInput as error:
            self.report.gap(self._file, 1, f"{path}: {error.message}", "Write its actions by hand.")
            return
        if not self._only:
            name_unread(self.report, self._file, "path", item, path)
        for method in METHODS:
            if isinstance(operation := item.get(method), Mapping) and self._is_wanted(operation):
                self._add(path, method, item, operation)

    def _is_wanted(self, operation: Mapping[str, Any]) -> bool:
        names = [str(operation.get("operationId", "")), *map(str, operation.get("tags") or ())]
        return not self._only or any(
            fnmatch.fnmatch(name, pattern) for name in names for pattern in self._only
        )

    def _add(self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> None:
        self.report.found["actions"] += 1
        name = self._free_name(str(operation.get("operationId") or f"{method} {path}"))
        subject = f"{method.upper()} {path}"
        try:
            self.project.actions[name] = self._action(name, subject, path, method, item, operation)
        except PenstockError as error:
            self.report.gap(self._file, 1, f"{subject}: {error.message}", "Write its action by hand.")
            return
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            self.report.gap(
                self._file, 1, f"{subject}: it is not what OpenAPI allows", "Correct it, and import again."
            )
            return
        if not any(gap.what.startswith(f"{subject}: ") for gap in self.report.gaps):
            self.report.map("actions", name)

    def _free_name(self, written: str) -> str:
        name, number = bounded(snake(written)), 2
        while name in self.project.actions:
            name, number = bounded(f"{snake(written)}_{number}"), number + 1
        return name

    def _action(
        self,
        name: str,
        subject: str,
        path: str,
        method: str,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
    ) -> dict[str, Any]:
        if method == "trace":
            raise InvalidInput("HTTP actions have no method TRACE")
        name_unread(self.report, self._file, "operation", operation, subject)
        credential = self._security.credential(operation)
        builder = RequestBuilder(self._document, self.report, subject, method.upper(), path, credential)
        builder.add_parameters(item, operation)
        builder.accept(operation)
        add_body(builder, operation)
        url = self._server_of(subject, item, operation) + builder.url()
        description = first_line(operation.get("summary") or operation.get("description"))
        return {
            **({"description": description} if description else {}),
            "executor": "http",
            **({"retry": {**RETRY}} if builder.method in REPEATABLE else {}),
            "parameters": builder.types.schema(name, self.report, self._file),
            "options": {
                "url": url,
                "request": builder.options(),
                **({"secrets": credential.secrets} if credential.secrets else {}),
            },
        }

    def _server_of(self, subject: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
        """Return the server of an operation: its own, that of its path, or that of the document."""
        if self._server is None:
            return self._document.server(operation, item, self._document.root)
        if own := [*list_of(operation.get("servers"), "servers"), *list_of(item.get("servers"), "servers")]:
            url = mapping_of(own[0], "a server").get("url")
            self.report.gap(
                self._file,
                1,
                f"{subject}: its own server {url} is not called",
                "Correct its url if it should be.",
            )
        return self._server
