"""The JSON Schemas of packs and workflows in YAML, for editors: they complete names, show descriptions, and mark
faults. The schemas are made from the models that check the same YAML.

They are no stricter than the models. A value that our own validators parse (a duration, rate or condition) is any text
or number to them. `penstock lint` checks it fully.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from penstock.language.definitions.action import ActionOptions
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.route import Route
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.trigger import Poll, Trigger
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.options import Options
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import Task

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANY: JsonSchemaValue = {}
TEXT: JsonSchemaValue = {"type": "string"}
OBJECT: JsonSchemaValue = {"type": ["object", "null"]}
DURATION: JsonSchemaValue = {"type": ["number", "string"], "description": "Seconds, or 10s, 5m, 1h30m."}
SHORT_FORMS: Mapping[str, JsonSchemaValue] = {
    "timeout": {**DURATION, "type": ["number", "string", "null"]},
    "on_worker_loss": {"enum": ["rerun", "fail"]},
    "max_recoveries": {"type": "integer", "minimum": 0},
    "burst": {"type": ["integer", "null"], "minimum": 1},
    "per": {**DURATION, "type": ["number", "string", "null"]},
    "backoff_factor": {"type": "number", "minimum": 1, "maximum": 1000},
}
"""The options that are not fields of the model, since `fold` replaces them by other options."""
_BY_VALIDATOR: Mapping[str, JsonSchemaValue] = {
    "seconds": DURATION,
    "positive_seconds": DURATION,
    "checked_ref": TEXT,
    "_name": TEXT,
}


class _Written(GenerateJsonSchema):
    """The generator of schemas for the form that an author writes, which permits more than the stored form."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        inner, name = schema["schema"], schema["function"]["function"].__name__
        if name == "_several":  # an author may write one value instead of a list
            several = self.generate_inner(inner)
            return {"anyOf": [several, several.get("items", ANY)]}
        if name == "_parts":  # each entry is the ref of a trigger, or a part with options
            several = self.generate_inner(inner)
            return {**several, "items": {"anyOf": [TEXT, several.get("items", ANY)]}}
        if _is_of_model(inner):
            return self.generate_inner(inner)
        return dict(_BY_VALIDATOR.get(name, ANY))

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        return dict(_BY_VALIDATOR.get(schema["function"]["function"].__name__, ANY))

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        json_schema = super().model_schema(schema)
        kind = schema["cls"]
        if issubclass(kind, Options):
            properties = json_schema.setdefault("properties", {})
            for name in kind.names():
                properties.setdefault(name, dict(SHORT_FORMS.get(name, ANY)))
            for name, text in _docstrings(kind).items():
                field = kind.model_fields[name]
                properties[field.alias or name].setdefault("description", text)
            json_schema["additionalProperties"] = False
        return json_schema


def _is_of_model(schema: Any) -> bool:
    """Return whether a validator belongs to a model instead of one of its fields."""
    while schema["type"].startswith("function-"):
        schema = schema["schema"]
    return bool(schema["type"] == "model-fields")


def _docstrings(kind: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a model and of its bases, by field."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Options) and base is not Options:
            body = _classes(base.__module__)[base.__name__].body
            for field, statement in itertools.pairwise(body):
                match field, statement:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        texts[name] = inspect.cleandoc(text)
    return {name: text for name, text in texts.items() if name in kind.model_fields}


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the parsed classes of a module. Each module is parsed once, as `inspect` would parse it for each class."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _entry(
    kind: type[Options], also: Mapping[str, Any] | None = None, without: str = "ref"
) -> JsonSchemaValue:
    """Return the schema of an entry. The key above the entry is its name, so the schema leaves the name out."""
    generated = TypeAdapter(kind).json_schema(schema_generator=_Written)
    schema = generated.get("anyOf", [generated])[-1]
    schema = {**generated.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)}
    schema["properties"] = {**schema["properties"], **(also or {})}
    schema["required"] = [name for name in schema.get("required", ()) if name != without]
    schema.pop("$defs", None)
    return {"schema": schema, "defs": generated.get("$defs", {})}


def _retry_as_written(defs: dict[str, Any]) -> dict[str, Any]:
    """Permit a number wherever a retry policy is permitted."""
    name = RetryPolicy.__name__
    if name in defs and "anyOf" not in defs[name]:
        defs[name] = {"anyOf": [{"type": "integer", "minimum": 1}, defs[name]]}
    return defs


def workflow_schema() -> dict[str, Any]:
    """Return the schema of a file with one workflow, which is a mapping with the key `workflow`."""
    written, defs = _workflow()
    written["required"] = ["workflow", "tasks"]
    return {"$schema": DIALECT, "title": "A workflow of Penstock", **written, "$defs": defs}


def _workflow() -> tuple[dict[str, Any], dict[str, Any]]:
    whole, task = _entry(Workflow), _entry(Task, without="name")
    defs = _retry_as_written({**whole["defs"], **task["defs"], "NamedTask": task["schema"]})
    schema = whole["schema"]
    schema["properties"] = {"workflow": TEXT, **schema["properties"]}
    schema["properties"]["tasks"] = {
        "anyOf": [
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/NamedTask"}},
            {"type": "array", "items": {"$ref": "#/$defs/Task"}},
        ]
    }
    return schema, defs


def pack_schema() -> dict[str, Any]:
    """Return the schema of a `pack.yaml` that contains all sections."""
    workflow, defs = _workflow()
    action = _entry(
        ActionOptions,
        {
            "function": {"type": "string", "description": "module:name, of a file of the pack."},
            "command": {"type": "array", "items": TEXT, "description": "A program and its arguments."},
            "url": {"type": "string", "format": "uri"},
            "image": TEXT,
            "description": {"type": ["string", "null"]},
            "parameters": OBJECT,
            "result": ANY,
        },
    )
    entries = {
        "actions": action,
        "triggers": _entry(Trigger, {"poll": _poll()}),
        "rules": _entry(Rule),
        "limits": _entry(Limit),
        "schedules": _entry(Schedule),
        "routes": _entry(Route, without="pattern"),
    }
    for entry in entries.values():
        defs |= entry["defs"]
    sections = {name: _named(entry["schema"]) for name, entry in entries.items()}
    route = _entry(Route)["schema"]
    by_name = {"type": "object", "additionalProperties": {"anyOf": [TEXT, entries["routes"]["schema"]]}}
    sections["routes"] = {"anyOf": [by_name, {"type": "array", "items": route}, {"type": "null"}]}
    workflow["required"] = ["tasks"]
    sections["workflows"] = _named(workflow)
    return {
        "$schema": DIALECT,
        "title": "A pack of Penstock",
        "type": "object",
        "properties": {"name": TEXT, "version": TEXT, "description": TEXT, **sections},
        "required": ["name"],
        "additionalProperties": False,
        "$defs": _retry_as_written(defs),
    }


def _poll() -> dict[str, Any]:
    entry = _entry(
        Poll, {"function": {"type": "string", "description": "module:name, of a file of the pack."}}
    )
    return {"anyOf": [entry["schema"], {"type": "null"}]}


def _named(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": ["object", "null"], "additionalProperties": entry}


SCHEMAS = {"pack": pack_schema, "workflow": workflow_schema}
"""The functions that make the schemas, by the kind of file."""
