"""The request of an HTTP action from an operation of an OpenAPI document: its parameters, each in its style."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from penstock.errors import InvalidInput
from penstock_import.openapi_document import Document, list_of, mapping_of
from penstock_import.openapi_keys import name_unread
from penstock_import.openapi_security import Credential
from penstock_import.openapi_types import Schemas, Types
from penstock_import.report import Report

STYLES: Mapping[str, tuple[str, ...]] = {
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "path": ("simple", "label", "matrix"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each place of a parameter. The first one is the default."""
PRIMITIVE = frozenset({"string", "number", "integer", "boolean"})
IGNORED_HEADERS = frozenset({"authorization", "content-type", "accept"})
"""The headers that OpenAPI takes from the security, the body and the responses, and not from parameters."""
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""The headers that Penstock sets."""


def is_json(kind: str) -> bool:
    """Return whether a media type is JSON, also one that ends with `+json`."""
    kind = kind.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


class RequestBuilder:
    """The parts of one request, as they are added. `subject` names the operation in gaps."""

    def __init__(
        self, document: Document, report: Report, subject: str, method: str, path: str, credential: Credential
    ) -> None:
        self.document = document
        self.report = report
        self.subject = subject
        self.schemas = Schemas(document)
        self.types = Types(document)
        self.method = method
        self.path, hash_sign, _ = path.partition("#")
        self.query: dict[str, Any] = {}
        self.headers: dict[str, Any] = {}
        self.cookies: dict[str, Any] = {}
        self._encodings: dict[str, list[tuple[dict[str, Any] | None, bool]]] = {}
        self.content: dict[str, Any] = {}
        self.credential = credential
        self._placeholders: dict[str, str] = {}
        if hash_sign:
            self.gap(
                "Penstock does not send the part of its path after #",
                "Find the header or the parameter by which the server tells these operations apart.",
            )

    def gap(self, subject: str, by_hand: str) -> None:
        """Add a gap of this operation."""
        self.report.gap(self.document.file, 1, f"{self.subject}: {subject}", by_hand)

    def options(self) -> dict[str, Any]:
        """Return the request as an HTTP action has it. The credential comes last, so that no parameter replaces it."""
        query = self.query | self.credential.query
        headers = self.headers | self.credential.headers
        cookies = self.cookies | self.credential.cookies
        encoding = self._encoding()
        return {
            "method": self.method,
            **self.content,
            **({"query": query} if query else {}),
            **({"headers": headers} if headers else {}),
            **({"cookies": cookies} if cookies else {}),
            **({"encoding": encoding} if encoding else {}),
        }

    def encode(self, name: str, encoding: dict[str, Any] | None, *, is_text: bool = False) -> None:
        """Note the encoding of a parameter or a field; None for one that needs none. `is_text` tells that its value is neither
        a list nor an object, so that another style changes nothing."""
        self._encodings.setdefault(name, []).append((encoding, is_text))

    def _encoding(self) -> dict[str, Any]:
        """Return the encodings by name. Raises InvalidInput if two places of one name need different ones."""
        result: dict[str, Any] = {}
        for name, notes in self._encodings.items():
            strict = [encoding for encoding, is_text in notes if not is_text]
            loose = [encoding for encoding, is_text in notes if is_text]
            encoding = strict[0] if strict else next(filter(None, loose), None)
            is_shared = len(notes) > 1 and encoding is not None and encoding.get("style") in (None, "simple")
            if is_shared or strict.count(encoding) != len(strict) or (encoding is None and any(loose)):
                raise InvalidInput(f"two of its parameters are named {name}, and have different encodings")
            result |= {name: encoding} if encoding is not None else {}
        return result

    def url(self) -> str:
        """Return the path with templates. Raises InvalidInput if one of its parts has no parameter."""
        names = set(re.findall(r"\{([^{}]*)\}", self.path))
        if missing := sorted(names - set(self._placeholders)):
            raise InvalidInput(f"its path has a placeholder without a parameter: {missing[0]}")
        for name in sorted(set(self._placeholders) - names):
            self.gap(f"its path has no placeholder for its parameter {name}", "Correct the document.")
        return re.sub(r"\{([^{}]*)\}", lambda match: self._placeholders[match[1]], self.path)

    def add_parameters(self, *owners: Mapping[str, Any]) -> None:
        """Add the parameters of a path and of its operation. Those of the operation replace those of the path."""
        selected: dict[tuple[str, str], Mapping[str, Any]] = {}
        for owner in owners:
            for written in list_of(owner.get("parameters"), "parameters"):
                parameter = mapping_of(self.document.resolved(written), "a parameter")
                place, name = parameter.get("in"), parameter.get("name")
                if not isinstance(name, str) or place not in STYLES:
                    raise InvalidInput(
                        f"its parameter {name} is in {place}, which is not a place for parameters"
                    )
                selected[str(place), name] = parameter
        for (place, name), parameter in selected.items():
            subject = f"{self.subject}: the parameter {name}"
            name_unread(self.report, self.document.file, "parameter", parameter, subject)
            try:
                self._add_parameter(place, name, parameter)
            except InvalidInput as error:
                if parameter.get("required") or place == "path":
                    raise
                self.gap(f"{error.message}, and is left out", "Write its action by hand if it is needed.")

    def _add_parameter(self, place: str, name: str, parameter: Mapping[str, Any]) -> None:
        if place == "header" and name.lower() in IGNORED_HEADERS:
            return
        if self.credential.has(place, name):
            self.gap(f"its parameter {name} is its credential", "Nothing: the secret is sent.")
            return
        if place == "header" and name.lower() in OWN_HEADERS:
            raise InvalidInput(f"its header {name} is set by Penstock")
        schema, is_json_text = self._schema(name, parameter)
        required = bool(parameter.get("required")) or place == "path"
        style, explode = self._style(place, name, parameter)
        kinds = {"string"} if is_json_text else self.schemas.kinds(schema)
        if place == "path":
            self._refuse_in_path(name, style, explode, kinds)
        if place == "cookie" and explode and not kinds <= PRIMITIVE:
            raise InvalidInput(f"its cookie {name} is a list or an object with explode")
        ours = self.types.add(name, schema, required, parameter)
        value = value_of(ours, required, "tojson" if is_json_text else "")
        if place == "path":
            self._placeholders[name] = _in_path(name, style, kinds, ours, value)
        elif place == "query":
            self.query |= self.entries(name, style, explode, kinds, value)
        elif place == "header":
            self.headers[name] = value
            is_text = kinds <= PRIMITIVE
            self.encode(name, None if is_text else _styled("simple", explode), is_text=is_text)
        else:
            self.cookies[name] = value
            self.encode(name, _styled("form", False), is_text=kinds <= PRIMITIVE)

    def _schema(self, name: str, parameter: Mapping[str, Any]) -> tuple[Any, bool]:
        """Return the schema of a parameter, and whether it is sent as JSON. Raises InvalidInput for other content."""
        if "content" not in parameter:
            return parameter.get("schema", {}), False
        content = mapping_of(parameter["content"], f"content of its parameter {name}")
        if "schema" in parameter or len(content) != 1:
            raise InvalidInput(f"its parameter {name} has more or less than one schema")
        [(kind, media)] = content.items()
        media = mapping_of(self.document.resolved(media), f"content of its parameter {name}")
        name_unread(
            self.report, self.document.file, "media type", media, f"{self.subject}: the parameter {name}"
        )
        if not is_json(str(kind)) and not str(kind).startswith("text/plain"):
            raise InvalidInput(f"its parameter {name} is {kind}")
        return media.get("schema", {}), is_json(str(kind))

    def _style(self, place: str, name: str, parameter: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the style of a parameter, and whether it explodes. Raises InvalidInput for a style of another place."""
        style = str(parameter.get("style", STYLES[place][0]))
        if style not in STYLES[place]:
            raise InvalidInput(f"its parameter {name} of the {place} has the style {style}")
        explode = parameter.get("explode", style == "form")
        if not isinstance(explode, bool):
            raise InvalidInput(f"its parameter {name} has an explode that is not true or false")
        return style, explode

    def _refuse_in_path(self, name: str, style: str, explode: bool, kinds: set[str]) -> None:
        """Raise InvalidInput for a list or an object that a path of an HTTP action cannot have."""
        compound = kinds - PRIMITIVE
        if explode and compound and (style != "simple" or compound != {"array"}):
            raise InvalidInput(
                f"its parameter {name} of the path is a list or an object of the style {style} with explode"
            )

    def entries(self, name: str, style: str, explode: bool, kinds: set[str], value: str) -> dict[str, Any]:
        """Return the entries of a parameter in a query or a form, and note their encoding. A list in the style `deepObject`
        repeats `name[]`. A parameter that may be a list or another value has an entry for each of them."""
        if style != "deepObject":
            is_plain = kinds <= (PRIMITIVE | {"array"} if explode else PRIMITIVE)
            self.encode(name, None if is_plain else _styled(style, explode), is_text=kinds <= PRIMITIVE)
            return {name: value}
        self.encode(name, None)
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

    def accept(self, operation: Mapping[str, Any]) -> None:
        """Ask for the media types of the successful responses, if none of them is `application/json`."""
        kinds: list[str] = []
        responses = mapping_of(operation.get("responses"), "responses")
        for status, written in responses.items():
            if str(status).startswith("2"):
                response = mapping_of(self.document.resolved(written), f"the response {status}")
                kinds += map(str, mapping_of(response.get("content"), f"content of {status}"))
        plain_kinds = [kind.partition(";")[0].strip().lower() for kind in kinds]
        if kinds and not any("*" in kind or kind == "application/json" for kind in plain_kinds):
            self.headers["Accept"] = ", ".join(dict.fromkeys(kinds))


def value_of(ours: str, required: bool, filter_name: str = "") -> str:
    """Return the template of a parameter, which is null if it is optional and missing."""
    name = f"parameters['{ours}']"
    if filter_name:
        filtered = f"{name} | {filter_name}"
        return (
            f"{{{{ {filtered} }}}}"
            if required
            else f"{{{{ {filtered} if '{ours}' in parameters else none }}}}"
        )
    return f"{{{{ {name} }}}}" if required else f"{{{{ {name} | default(none) }}}}"


def _styled(style: str, explode: bool) -> dict[str, Any]:
    return {"style": style, **({"explode": True} if explode else {})}


def _in_path(name: str, style: str, kinds: set[str], ours: str, value: str) -> str:
    """Return a parameter of the path. The names and values of an object are a list there: `r,1,g,2`."""
    if "object" in kinds or "any" in kinds:
        flat = f"parameters['{ours}'] | items | flatten"
        is_mapping = f"parameters['{ours}'] is mapping"
        value = f"{{{{ ({flat}) if {is_mapping} else parameters['{ours}'] }}}}"
    prefix = {"simple": "", "label": ".", "matrix": f";{quote(name, safe='')}="}[style]
    return prefix + value
