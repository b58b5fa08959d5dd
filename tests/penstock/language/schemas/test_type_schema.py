from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, computed_field

from penstock.language.schemas.type_schema import Secret, schema_of_type
from penstock.language.terms.options import Wrong


class Unknown:
    pass


@dataclass
class Line:
    sku: str
    count: int


@dataclass
class Order:
    pin: Annotated[str, Secret]
    lines: list[Line] = field(default_factory=list)
    odd: Any = Unknown


class Total(BaseModel):
    net: int

    @computed_field
    def gross(self) -> int:
        return self.net * 2


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (None, {"type": "null"}),
        (int, {"type": "integer"}),
        (str | None, {"type": ["string", "null"]}),
        (TypeAdapter(list[int]), {"type": "array", "items": {"type": "integer"}}),
        (Annotated[str, Secret], {"type": "string", "secret": True}),
        (Total, {"type": "object", "properties": {"net": {"type": "integer"}}, "required": ["net"]}),
    ],
)
def test_schema_is_that_of_the_type(annotation: Any, schema: Any) -> None:
    assert schema_of_type(annotation) == schema


def test_schema_of_results_has_computed_fields() -> None:
    schema = schema_of_type(Total, mode="serialization")
    assert schema["required"] == ["gross", "net"]
    assert schema["properties"].keys() == {"net", "gross"}


@pytest.mark.filterwarnings("error")
def test_dataclass_has_no_titles_and_no_defaults_that_are_not_json() -> None:
    schema = schema_of_type(Order)
    assert schema["properties"]["pin"] == {"type": "string", "secret": True}
    assert schema["properties"]["odd"] == {}
    assert "title" not in schema
    assert schema["$defs"]["Line"]["required"] == ["count", "sku"]
    assert "title" not in schema["$defs"]["Line"]


def test_type_without_a_schema_is_refused_with_a_hint() -> None:
    with pytest.raises(Wrong) as refused:
        schema_of_type(Unknown)
    assert str(refused.value).startswith(
        "has no JSON Schema: Unable to generate pydantic-core schema for <class"
    )
    assert "arbitrary_types_allowed" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "dataclasses" in str(refused.value.hint)


def test_type_that_pydantic_misreads_is_refused() -> None:
    with pytest.raises(Wrong, match="has no JSON Schema"):
        schema_of_type("Missing")
