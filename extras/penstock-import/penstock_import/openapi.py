"""An OpenAPI 3 document as a project: each operation becomes an HTTP action with typed parameters.

Not here: webhooks and callbacks of the document, and the schemas of responses, which many servers do not keep.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson
import yaml

from penstock.errors import DefinitionError, InvalidInput, NotFound, PenstockError
from penstock.language.schemas import Schema
from penstock_import.project import Project, bounded
from penstock_import.report import Report

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
"""The methods whose calls can be repeated without another effect (RFC 9110, 9.2.2). Their actions are retried."""
RETRY = {"max_attempts": 4, "backoff": "exponential", "initial_delay": "1s", "max_delay": "1m"}
LARGEST_BYTES = 64 * 1024 * 1024
"""The largest document. Those of GitHub and Stripe have some 10 MB."""
KEPT = frozenset(
    [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "description",
    ]
)
"""The keywords of a schema that are taken as they are."""
MOST_DEFINITIONS = 60
"""The most schemas that those of one action refer to. An action that needs more takes an untyped body."""
_OWN_HEADERS = frozenset({"authorization", "content-type", "accept", "host", "content-length"})


def read_document(source: str) -> tuple[dict[str, Any], str | None]:
    """Return the document at a path or an http(s) URL, and that URL. Raises NotFound, InvalidInput."""
    if source.startswith(("http://", "https://")):
        import httpx

        try:
            with httpx.stream("GET", source, follow_redirects=True, timeout=60) as response:
                response.raise_for_status()
                text = b"".join(_bounded(response.iter_bytes()))
        except httpx.HTTPError as error:
            raise NotFound(f"{source} gives no document: {error}", hint="Give its URL, or a file.") from None
        return _parsed(text, source), source
    path = Path(source)
    if not path.is_file():
        raise NotFound(f"there is no file {source}", hint="Give the path or the URL of an OpenAPI document.")
    return _parsed(path.read_bytes(), source), None


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_BYTES:
            raise InvalidInput(
                f"the document has more than {LARGEST_BYTES:,} bytes", hint="Give a smaller one."
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
                f"{source} is neither JSON nor YAML: {error}", hint="Give the document itself."
            ) from None
    version = str(document.get("openapi", "")) if isinstance(document, dict) else ""
    if not version.startswith("3."):
        raise InvalidInput(
            f"{source} is no document of OpenAPI 3",
            hint="Convert one of Swagger 2 first, with swagger2openapi.",
        )
    return dict(document)


class OpenApiDocument:
    """The mapping of one document to a project."""

    def __init__(
        self, source: str, *, name: str | None, server: str | None, secret: str | None, only: Sequence[str]
    ) -> None:
        """`name` is that of the pack. `server` replaces the server of the document. `secret` is the name of the stored
        secret that authorizes calls. `only` are patterns of operation ids and tags; none means all. Raises NotFound,
        InvalidInput."""
        self._document, self._address = read_document(source)
        self._only = only
        self.report = Report()
        title = self._document.get("info", {}).get("title") or "api"
        self.project = Project(bounded(snake(name or str(title))))
        self._server = (server or self._own_server()).rstrip("/")
        self._secret = secret
        self._file = Path(urlsplit(source).path).name or "document"

    def mapped(self) -> Project:
        """Return the project. `report` then has the gaps."""
        info = self._document.get("info", {})
        self.project.about = {
            "title": info.get("title"),
            "version": info.get("version"),
            "server": self._server,
        }
        for path, item in (self._document.get("paths") or {}).items():
            item = self._resolved(item)
            for method in METHODS:
                if isinstance(operation := item.get(method), dict) and self._is_wanted(operation):
                    self._add(path, method, item, operation)
        if not self.report.found["actions"]:
            self.report.gap(self._file, 1, "no operation was selected", "Look at the patterns of --only.")
        return self.project

    def _own_server(self) -> str:
        for server in self._document.get("servers") or ():
            url = str(server.get("url", ""))
            for name, variable in (server.get("variables") or {}).items():
                url = url.replace("{" + name + "}", str(variable.get("default", "")))
            url = urljoin(self._address, url) if self._address else url
            if url.startswith(("http://", "https://")):
                return url
        raise InvalidInput("the document names no server", hint="Name it: --server https://api.example.org.")

    def _is_wanted(self, operation: Mapping[str, Any]) -> bool:
        names = [str(operation.get("operationId", "")), *map(str, operation.get("tags") or ())]
        return not self._only or any(
            fnmatch.fnmatch(name, pattern) for name in names for pattern in self._only
        )

    def _add(self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> None:
        self.report.found["actions"] += 1
        name = self._free_name(str(operation.get("operationId") or f"{method} {path}"))
        try:
            self.project.actions[name] = self._action(name, path, method, item, operation)
        except (PenstockError, KeyError, TypeError, RecursionError) as error:
            self.report.gap(self._file, 1, f"{method.upper()} {path}: {error}", "Write its action by hand.")
            return
        self.report.map("actions", name)

    def _free_name(self, written: str) -> str:
        name, number = bounded(snake(written)), 2
        while name in self.project.actions:
            name, number = bounded(f"{snake(written)}_{number}"), number + 1
        return name

    def _action(
        self, name: str, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> dict[str, Any]:
        request: dict[str, Any] = {"method": method.upper()}
        types = _Types(self)
        url = path
        query: dict[str, Any] = {}
        headers: dict[str, Any] = {}
        for parameter in self._parameters(item, operation):
            place, theirs = parameter["in"], str(parameter["name"])
            if place == "cookie" or (place == "header" and theirs.lower() in _OWN_HEADERS):
                continue
            ours = types.add(theirs, self._schema_of(parameter), bool(parameter.get("required")), parameter)
            value = f"{{{{ parameters['{ours}'] }}}}" if parameter.get("required") else _optional(ours)
            if place == "path":
                url = url.replace("{" + theirs + "}", f"{{{{ parameters['{ours}'] }}}}")
            elif place == "query":
                query |= self._entries(theirs, parameter, self._schema_of(parameter), value)
            else:
                headers[theirs] = value
        if "{" in re.sub(r"\{\{.*?\}\}", "", url):
            raise InvalidInput("its path has a part without a parameter")
        self._add_body(name, request, types, operation)
        secrets = self._authorize(operation, headers, query)
        request |= {"query": query} if query else {}
        request |= {"headers": headers} if headers else {}
        description = str(operation.get("summary") or operation.get("description") or "").strip()
        return {
            **({"description": description.splitlines()[0][:200]} if description else {}),
            "executor": "http",
            **({"retry": {**RETRY}} if request["method"] in REPEATABLE else {}),
            "parameters": types.schema(name, self.report, self._file),
            "options": {
                "url": self._server + url,
                "request": request,
                **({"secrets": secrets} if secrets else {}),
            },
        }

    def _parameters(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the parameters of an operation. Its own replace those of its path."""
        selected: dict[tuple[str, str], dict[str, Any]] = {}
        for parameter in [*(item.get("parameters") or ()), *(operation.get("parameters") or ())]:
            parameter = self._resolved(parameter)
            selected[parameter["in"], parameter["name"]] = parameter
        return list(selected.values())

    def _schema_of(self, parameter: Mapping[str, Any]) -> Any:
        if "schema" in parameter:
            return parameter["schema"]
        content: Mapping[str, Any] = parameter.get("content") or {}
        return next((media.get("schema", {}) for media in content.values()), {})

    def _add_body(
        self, name: str, request: dict[str, Any], types: _Types, operation: Mapping[str, Any]
    ) -> None:
        body = self._resolved(operation.get("requestBody") or {})
        content = {
            kind.partition(";")[0].strip().lower(): media
            for kind, media in (body.get("content") or {}).items()
        }
        if not content or request["method"] in ("GET", "HEAD"):
            return
        required = bool(body.get("required"))
        json_kind = next(
            (kind for kind in content if kind == "application/json" or kind.endswith("+json")), None
        )
        if json_kind is not None:
            ours = types.add("body", content[json_kind].get("schema", {}), required, body)
            request["body"] = f"{{{{ parameters['{ours}'] }}}}" if required else _optional(ours)
            return
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
            if kind in content:
                self._add_form(request, types, content[kind], is_multipart=kind.startswith("multipart"))
                return
        kind = next(iter(content))
        if not kind.startswith("text/"):
            self.report.gap(
                self._file, 1, f"{name}: a body of {kind} is sent as text", "Check that it is text."
            )
        ours = types.add("body", {"type": "string"}, required, body)
        request |= {
            "text": f"{{{{ parameters['{ours}'] }}}}" if required else _optional(ours),
            "content_type": kind,
        }

    def _add_form(
        self, request: dict[str, Any], types: _Types, media: Mapping[str, Any], *, is_multipart: bool
    ) -> None:
        schema = self._resolved(media.get("schema") or {})
        needed = set(schema.get("required") or ())
        form: dict[str, Any] = {}
        files: dict[str, Any] = {}
        encoding = media.get("encoding") or {}
        for theirs, written in (schema.get("properties") or {}).items():
            part = self._resolved(written)
            is_file = is_multipart and part.get("format") == "binary"
            ours = types.add(theirs, {"type": "string"} if is_file else written, theirs in needed, part)
            value = f"{{{{ parameters['{ours}'] }}}}" if theirs in needed else _optional(ours)
            if is_file:
                files[theirs] = {"content": value}
            else:
                form |= self._entries(theirs, encoding.get(theirs) or {}, part, value)
        request |= {"form": form} if form or not files else {}
        request |= {"files": files} if is_multipart else {}

    def _entries(self, name: str, style: Mapping[str, Any], schema: Any, value: str) -> dict[str, Any]:
        """Return the entries of a parameter in a query or a form, with its template as value. A list in the style
        `deepObject` repeats `name[]`. A parameter that may be a list or another value has an entry for each of them."""
        if style.get("style") != "deepObject":
            return {name: value}
        kinds = self._types_of(schema)
        if "array" not in kinds:
            return {name: value}
        if kinds == {"array"}:
            return {f"{name}[]": value}
        inner = f"({value.removeprefix('{{ ').removesuffix(' }}')})"
        is_list = f"{inner} is sequence and {inner} is not string and {inner} is not mapping"
        return {
            f"{name}[]": f"{{{{ {inner} if {is_list} else none }}}}",
            name: f"{{{{ none if {is_list} else {inner} }}}}",
        }

    def _types_of(self, schema: Any) -> set[str]:
        """Return the types of a schema, with those of its alternatives. A missing type counts as `any`."""
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping):
            return {"any"}
        alternatives = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
        if alternatives:
            return set().union(*(self._types_of(part) for part in alternatives))
        types = schema.get("type", "any")
        return {str(entry) for entry in types if entry != "null"} if isinstance(types, list) else {str(types)}

    def _authorize(
        self, operation: Mapping[str, Any], headers: dict[str, Any], query: dict[str, Any]
    ) -> dict[str, str]:
        """Add the credential of an operation to its headers or its query. Return the secrets that it names."""
        required = operation.get("security", self._document.get("security"))
        schemes = (self._document.get("components") or {}).get("securitySchemes") or {}
        named = [name for choice in required or () for name in choice]
        selected = [self._resolved(schemes[name]) for name in named if name in schemes]
        if not selected and self._secret is None:
            return {}
        stored = self._secret or f"{self.project.name}_token"
        for scheme in selected:
            if scheme.get("type") == "apiKey" and scheme.get("in") in ("header", "query"):
                (headers if scheme["in"] == "header" else query)[scheme["name"]] = "{{ secrets.token }}"
                return {"token": stored}
        is_basic = bool(selected) and all(
            scheme.get("type") == "http" and str(scheme.get("scheme", "")).lower() == "basic"
            for scheme in selected
        )
        headers["Authorization"] = f"{'Basic' if is_basic else 'Bearer'} {{{{ secrets.token }}}}"
        if is_basic:
            self.report.gap(
                self._file,
                1,
                "operations authorize themselves with a user and a password",
                f"Store base64 of user:password as the secret {stored}.",
            )
        return {"token": stored}

    def _resolved(self, value: Any) -> Any:
        """Follow the reference that a part of the document may be."""
        for _ in range(20):
            if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
                return value
            value = self.at(value["$ref"])
        raise InvalidInput(f"the reference {value['$ref']} leads in a circle")

    def at(self, reference: str) -> Any:
        """Return the part of the document to which a reference points. Raises InvalidInput for another document."""
        if not reference.startswith("#/"):
            raise InvalidInput(
                f"the reference {reference} leads out of the document", hint="Bundle it first."
            )
        part: Any = self._document
        for word in reference[2:].split("/"):
            part = part[word.replace("~1", "/").replace("~0", "~")]
        return part


class _Types:
    """The parameters of one action, and the schemas to which they refer."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._definitions: dict[str, Any] = {}

    def add(self, theirs: str, schema: Any, required: bool, described: Mapping[str, Any]) -> str:
        """Add a parameter, and return its name here."""
        ours, number = snake(theirs), 2
        while ours in self._properties:
            ours, number = f"{snake(theirs)}_{number}", number + 1
        mapped = self._mapped(schema)
        if described.get("description") and "description" not in mapped:
            mapped["description"] = str(described["description"]).strip().splitlines()[0][:200]
        self._properties[ours] = mapped
        if required:
            self._required.append(ours)
        return ours

    def schema(self, name: str, report: Report, file: str) -> dict[str, Any]:
        """Return the JSON Schema of the parameters. One that is refused here loses its types, with a gap."""
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "additionalProperties": False,
        }
        if self._required:
            whole["required"] = self._required
        if self._definitions:
            whole["$defs"] = self._definitions
        for attempt in (whole, _without(whole, "pattern")):
            if len(self._definitions) <= MOST_DEFINITIONS and _is_accepted(attempt):
                return attempt
        report.gap(
            file,
            1,
            f"{name}: the types of its parameters are too large or odd",
            "Its parameters are untyped.",
        )
        return {**whole, "properties": {ours: {} for ours in self._properties}} | {"$defs": {}}

    def _mapped(self, schema: Any) -> dict[str, Any]:
        """Return a schema of OpenAPI 3.0 or 3.1 as JSON Schema."""
        if not isinstance(schema, Mapping):
            return {} if schema is not False else {"not": {}}
        if isinstance(reference := schema.get("$ref"), str):
            return {"$ref": f"#/$defs/{self._definition(reference)}"}
        mapped: dict[str, Any] = {key: schema[key] for key in schema if key in KEPT}
        for bound in ("Minimum", "Maximum"):
            if isinstance(exclusive := schema.get(f"exclusive{bound}"), bool):  # as in OpenAPI 3.0
                del mapped[f"exclusive{bound}"]
                if exclusive and bound.lower() in mapped:
                    mapped[f"exclusive{bound}"] = mapped.pop(bound.lower())
        if isinstance(schema.get("description"), str):
            mapped["description"] = (schema["description"].strip().splitlines() or [""])[0][:200]
        for key in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                mapped["anyOf" if key == "oneOf" else key] = [self._mapped(part) for part in schema[key]]
        if isinstance(schema.get("properties"), Mapping):
            mapped["properties"] = {name: self._mapped(part) for name, part in schema["properties"].items()}
        if isinstance(schema.get("required"), list) and schema["required"]:
            mapped["required"] = schema["required"]
        if "items" in schema:
            mapped["items"] = self._mapped(schema["items"])
        if isinstance(extra := schema.get("additionalProperties"), Mapping):
            mapped["additionalProperties"] = self._mapped(extra)
        if schema.get("nullable") and isinstance(mapped.get("type"), str):
            mapped["type"] = [mapped["type"], "null"]
            if "enum" in mapped and None not in mapped["enum"]:
                mapped["enum"] = [*mapped["enum"], None]
        return mapped

    def _definition(self, reference: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2])
        if name not in self._definitions:
            self._definitions[name] = {}  # a schema may refer to itself
            if len(self._definitions) <= MOST_DEFINITIONS:
                self._definitions[name] = self._mapped(self._document.at(reference))
        return name


def snake(text: str) -> str:
    """Return a text as a name: lower case, with `_` between its words."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return name if name[:1].isalpha() else f"n_{name}"


def _optional(name: str) -> str:
    return f"{{{{ parameters['{name}'] | default(none) }}}}"


def _is_accepted(schema: dict[str, Any]) -> bool:
    try:
        Schema(schema)
    except (DefinitionError, RecursionError):
        return False
    return True


def _without(value: Any, key: str) -> Any:
    """Return a schema without a keyword. A property of that name stays."""
    if isinstance(value, dict):
        return {
            name: {inner: _without(part, key) for inner, part in entry.items()}
            if name in ("properties", "$defs") and isinstance(entry, dict)
            else _without(entry, key)
            for name, entry in value.items()
            if name != key or not isinstance(entry, str)
        }
    return [_without(item, key) for item in value] if isinstance(value, list) else value
