"""The body of a request from an operation of an OpenAPI document: JSON, a form, or text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import InvalidInput
from penstock_import.openapi_document import mapping_of
from penstock_import.openapi_keys import name_unread
from penstock_import.openapi_request import PRIMITIVE, STYLES, RequestBuilder, is_json, value_of

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
ANY_JSON = frozenset({"*/*", "application/*", "application/*+json"})
"""The ranges of media types of which JSON is sent."""


def add_body(builder: RequestBuilder, operation: Mapping[str, Any]) -> None:
    """Add the body of an operation. Of several media types, JSON comes first, then forms. Raises InvalidInput for a
    body that an HTTP action cannot send."""
    body = mapping_of(builder.document.resolved(operation.get("requestBody")), "requestBody")
    content = mapping_of(body.get("content"), "content of its body")
    required = bool(body.get("required"))
    name_unread(builder.report, builder.document.file, "request body", body, f"{builder.subject}: its body")
    if not content:
        if required:
            raise InvalidInput("its body has no media type")
        return
    if builder.method in ("GET", "HEAD"):
        if required:
            raise InvalidInput(f"HTTP actions send no body with {builder.method}")
        if not all(_is_empty(builder, media) for media in content.values()):
            builder.gap(f"its optional body is not sent with {builder.method}", "Write its action by hand.")
        return
    written, kind = _media_type([str(key) for key in content])
    media = mapping_of(builder.document.resolved(content[written]), f"the body of {written}")
    name_unread(
        builder.report,
        builder.document.file,
        "media type",
        media,
        f"{builder.subject}: its body of {written}",
    )
    if is_json(kind):
        ours = builder.types.add("body", media.get("schema", {}), required, body)
        builder.content = {"body": value_of(ours, required)}
        if kind != "application/json":
            builder.content["content_type"] = kind
    elif kind in (FORM, MULTIPART):
        _Form(builder, media, is_multipart=kind == MULTIPART).add()
    else:
        _add_text(builder, kind, body, required)


def _is_empty(builder: RequestBuilder, media: Any) -> bool:
    """Return whether a body has no field, as the form that Stripe's document gives to each GET."""
    schema = mapping_of(builder.document.resolved(media), "a body").get("schema")
    if "object" not in builder.schemas.kinds(schema):
        return False
    fields = builder.schemas.fields(schema)
    return not fields.schemas and not fields.is_open


def _media_type(kinds: list[str]) -> tuple[str, str]:
    """Return the media type that is sent, as it is written and as it is sent."""
    plain = {written: written.partition(";")[0].strip().lower() for written in kinds}
    for written, kind in plain.items():
        if kind == "application/json":
            return written, written if ";" in written else kind
    for written, kind in plain.items():
        if kind.endswith("+json") and "*" not in kind:
            return written, written
    for kind in (FORM, MULTIPART):
        for written in kinds:
            if plain[written] == kind:
                return written, kind
    for written, kind in plain.items():
        if kind in ANY_JSON:
            return written, "application/json"
    written = kinds[0]
    return written, "text/plain" if plain[written] == "text/*" else written


def _add_text(builder: RequestBuilder, kind: str, body: Mapping[str, Any], required: bool) -> None:
    if "*" in kind or kind.lower().startswith("multipart/"):
        raise InvalidInput(f"HTTP actions send no body of {kind}")
    if not kind.lower().startswith("text/"):
        builder.gap(f"a body of {kind} is sent as text", "Check that it is text.")
    ours = builder.types.add("body", {"type": "string"}, required, body)
    builder.content = {"text": value_of(ours, required), "content_type": kind}


class _Form:
    """The fields of a form, and the files of a multipart body."""

    def __init__(self, builder: RequestBuilder, media: Mapping[str, Any], *, is_multipart: bool) -> None:
        self._builder = builder
        self._schemas = builder.schemas
        self._schema = media.get("schema") or {}
        self._encodings = mapping_of(media.get("encoding"), "encoding")
        self._is_multipart = is_multipart
        self._form: dict[str, Any] = {}
        self._files: dict[str, Any] = {}

    def add(self) -> None:
        """Add all fields. Those that are required are so in an optional body too. Raises InvalidInput for a required field
        that HTTP actions cannot send."""
        fields = self._schemas.fields(self._schema)
        fields.required -= self._schemas.read_only(self._schema)
        if fields.is_open:
            self._builder.gap("its form may have undeclared fields", "Add the needed fields to its action.")
        for name in sorted(fields.required - set(fields.schemas)):
            fields.schemas[name] = {}
        for name in sorted(set(self._encodings) - set(fields.schemas)):
            self._builder.gap(f"its encoding names {name}, which is not a field", "Correct the document.")
        for name, schema in fields.schemas.items():
            self._add_field(str(name), schema, name in fields.required)
        content = {"form": self._form} if self._form or not self._files else {}
        self._builder.content = content | ({"files": self._files} if self._is_multipart else {})

    def _add_field(self, name: str, schema: Any, is_required: bool) -> None:
        builder = self._builder
        encoding = mapping_of(self._encodings.get(name), f"the encoding of {name}")
        name_unread(
            builder.report,
            builder.document.file,
            "encoding",
            encoding,
            f"{builder.subject}: the field {name}",
        )
        try:
            self._refuse(name, schema, encoding)
        except InvalidInput as error:
            if is_required:
                raise
            builder.gap(f"{error.message}, and is left out", "Write its action by hand if it is needed.")
            return
        resolved = builder.document.resolved(schema)
        if self._is_multipart and (file_schema := self._file_schema(schema)) is not None:
            ours = builder.types.add(name, file_schema, is_required, resolved)
            kind = self._type_of_file(name, str(encoding.get("contentType") or ""))
            self._files[name] = {"content": value_of(ours, is_required), **({"type": kind} if kind else {})}
            return
        ours = builder.types.add(name, schema, is_required, resolved)
        self._form |= self._entries(name, schema, encoding, value_of(ours, is_required), ours)

    def _refuse(self, name: str, schema: Any, encoding: Mapping[str, Any]) -> None:
        """Raise InvalidInput for a field that HTTP actions cannot send."""
        style = str(encoding.get("style", "form"))
        if style not in STYLES["query"]:
            raise InvalidInput(f"its field {name} has the style {style}")
        kind = str(encoding.get("contentType") or "")
        if _has_style(encoding) or (self._is_multipart and self._file_schema(schema)):
            return
        if not kind:
            kinds, inner = self._kinds(schema)
            if "object" in inner and inner & PRIMITIVE and (self._is_multipart or "array" in kinds):
                raise InvalidInput(f"its field {name} may be an object or a text")
            return
        if (
            "*" in kind
            or "," in kind
            or (not self._is_multipart and not is_json(kind) and kind != "text/plain")
        ):
            raise InvalidInput(f"its field {name} is {kind}")
        if not is_json(kind) and not self._schemas.kinds(schema) <= PRIMITIVE | {"any"}:
            raise InvalidInput(f"its field {name} is {kind} and no text")

    def _entries(
        self, name: str, schema: Any, encoding: Mapping[str, Any], value: str, ours: str
    ) -> dict[str, Any]:
        """Return the entries of a field. Its style decides if the document names one, and its media type otherwise: that of an
        object is JSON."""
        kinds, inner = self._kinds(schema)
        if _has_style(encoding):
            style = str(encoding.get("style", "form"))
            explode = bool(encoding.get("explode", style == "form"))
            return self._builder.entries(name, style, explode, kinds, value)
        kind = str(encoding.get("contentType") or "")
        is_text = kind == "text/plain" and not self._is_multipart
        is_mixed = not kind and "object" in inner and bool(inner & PRIMITIVE)
        if kind and not is_text:
            needed = {"content_type": kind}
        else:
            needed = (
                {"content_type": "application/json"}
                if "object" in inner and not is_mixed and not is_text
                else {}
            )
        self._builder.encode(name, needed or None, is_text=not needed and kinds <= PRIMITIVE)
        if not is_mixed:
            return {name: value}
        missing = f"parameters['{ours}'] | default(none)"
        return {
            name: f"{{{{ parameters['{ours}'] | tojson if parameters['{ours}'] is mapping else {missing} }}}}"
        }

    def _kinds(self, schema: Any) -> tuple[set[str], set[str]]:
        """Return the types of a field, and those that it has with the types of the items of a list."""
        kinds = self._schemas.kinds(schema)
        items = self._schemas.kinds(self._schemas.items(schema)) if "array" in kinds else set()
        return kinds, (kinds | items) - {"array"}

    def _file_schema(self, schema: Any) -> dict[str, Any] | None:
        """Return the schema of the text of a file, or of the texts of several. None for what is not a file."""
        resolved = self._builder.document.resolved(schema)
        if not isinstance(resolved, Mapping):
            return None
        if "array" in self._schemas.kinds(resolved) and "items" in resolved:
            inner = self._file_schema(resolved["items"])
            return None if inner is None else {"type": "array", "items": inner}
        is_binary = resolved.get("format") == "binary" or (
            "contentMediaType" in resolved and "contentEncoding" not in resolved
        )
        return {"type": "string"} if is_binary else None

    def _type_of_file(self, name: str, written: str) -> str:
        """Return the media type of a file; an empty text if the document names none."""
        kinds = [kind.strip() for kind in written.split(",") if kind.strip()]
        concrete = [kind for kind in kinds if "*" not in kind]
        if (kinds and len(kinds) != 1) or kinds != concrete:
            sent = concrete[0] if concrete else "application/octet-stream"
            self._builder.gap(f"its file {name} is {written}, and is sent as {sent}", "Correct its type.")
        self._builder.gap(
            f"its file {name} is sent as text, in UTF-8", "For other bytes, name a file of the worker: path."
        )
        return concrete[0] if concrete else ""


def _has_style(encoding: Mapping[str, Any]) -> bool:
    return any(key in encoding for key in ("style", "explode", "allowReserved"))
