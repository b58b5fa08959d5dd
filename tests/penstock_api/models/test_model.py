"""The models of answers: none repeats a record."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "services/penstock_api/models"
REMAINING = {"BeatAnswer", "RouteRule", "SchemaDifference"}
"""The answers of the worker protocol and its routes that still repeat a record. Delete a name with its model."""


def classes(*folders: Path) -> list[ast.ClassDef]:
    return [
        node
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]


def fields(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        line.target.id.rstrip("_")
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    )


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_answer_repeats_no_record() -> None:
    records = classes(ROOT / "common/penstock", ROOT / "services/penstock_api")
    fields_of_records = {fields(node) for node in records if is_dataclass(node)} - {frozenset()}
    answers = [node for node in classes(MODELS) if any(ast.unparse(base) == "Answer" for base in node.bases)]
    assert answers
    assert {node.name for node in answers if fields(node) in fields_of_records} <= REMAINING
