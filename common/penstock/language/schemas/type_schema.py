"""The schemas of Python types."""

from __future__ import annotations

from typing import Any

from pydantic import GetJsonSchemaHandler, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema

from penstock.language.schemas.schema_tree import normalise
from penstock.language.terms.options import Wrong


class Secret:
    """The mark of a parameter or a field that is masked in history, logs and errors: `Annotated[str, Secret]`."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "secret": True}


class _Plain(GenerateJsonSchema):
    """A generator without the warning for a default that is not JSON. Such a default is left out."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 (pydantic's own)


def schema_of_type(annotation: Any, *, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """Return the JSON Schema of a pydantic model, a dataclass, a TypedDict or any other type hint. Raises Wrong for a
    type without a schema, such as a class that pydantic does not know."""
    try:
        adapter: TypeAdapter[Any] = (
            annotation if isinstance(annotation, TypeAdapter) else TypeAdapter(annotation)
        )
        schema = adapter.json_schema(mode=mode, schema_generator=_Plain)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        reason = error.message.splitlines()[0].split(" Set `arbitrary_types_allowed")[0]
        raise Wrong(
            f"has no JSON Schema: {reason}",
            "Use types that JSON can carry: text, numbers, lists, dicts, dataclasses, pydantic models, datetimes.",
        ) from None
    normalised: dict[str, Any] = normalise(schema, titles=False)
    return normalised
