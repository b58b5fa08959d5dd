"""The length and branching of Python code, by its syntax tree."""

from __future__ import annotations

import ast
import threading
import warnings
from dataclasses import dataclass
from typing import Any

BRANCHES = frozenset(
    {
        ast.If,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.ExceptHandler,
        ast.IfExp,
        ast.match_case,
        ast.comprehension,
    }
)
WORTH_A_LOOK = (
    ast.stmt,
    ast.expr,
    ast.ExceptHandler,
    ast.match_case,
    ast.comprehension,
    ast.withitem,
    ast.keyword,
    ast.arguments,
)


PARSING = threading.Lock()
"""CPython counts how deep it is in a syntax tree for all threads together: two that parse at once may both end with a
SystemError. The filters of warnings are shared by all threads too."""


@dataclass(slots=True)
class Found:
    """The definitions of a file."""

    functions: int = 0
    classes: int = 0
    complexity: int = 0
    most: int = 0
    most_name: str = ""


def measure(text: str) -> dict[str, Any]:
    """Lines, functions, classes, and the most complex function; for what does not parse, why."""
    counts = Found()
    try:
        with PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old code: invalid escapes and the like
            tree = ast.parse(text)
        _branches(tree, counts)
    except (SyntaxError, ValueError, RecursionError) as error:
        return {
            "lines": text.count("\n"),
            "functions": 0,
            "classes": 0,
            "complexity": 0,
            "unreadable": str(error),
        }
    return {
        "lines": text.count("\n"),
        "functions": counts.functions,
        "classes": counts.classes,
        "complexity": counts.complexity,
        "most_complex": {"name": counts.most_name, "complexity": counts.most},
    }


def _branches(node: ast.AST, counts: Found) -> int:
    """The branches in a node. On the way each function gets McCabe's number: how many ways lead through it, those of
    functions inside it included."""
    branches = 0
    for value in vars(node).values():  # as ast.iter_child_nodes, in half the time
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, WORTH_A_LOOK):
                branches += _branches(child, counts)
    kind = type(node)
    if kind in BRANCHES:
        return branches + 1
    if isinstance(node, ast.BoolOp):
        return branches + len(node.values) - 1
    if isinstance(node, ast.ClassDef):
        counts.classes += 1
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        counts.functions += 1
        counts.complexity += branches + 1
        if branches + 1 > counts.most:
            counts.most, counts.most_name = branches + 1, node.name
    return branches
