"""The expressions by which code gets a whole module or all of its names, so that it may give any of them a value."""

from __future__ import annotations

import ast

from penstock_import.celery_calls import called
from penstock_import.celery_values import is_namespace

_RUNNING = frozenset({"exec", "execfile", "include"})
"""The functions that run code with the names of the module around the call. `include` is that of `django-split-settings`."""
_NAMESPACES = frozenset({"globals", "locals", "vars"})
_OF_FRAMES = frozenset({"f_globals", "f_locals"})
_READING_NAMES = frozenset(
    {
        "Celery",
        "Flask",
        "files",
        "get_data",
        "print",
        "resource_filename",
        "resource_stream",
        "resource_string",
    }
)
"""The functions that take the name of a module, and change nothing in it. So do those of loggers."""


def gets_names(node: ast.AST) -> bool:
    """Return whether an expression gets all names of a module, or hands the module on."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _RUNNING | _NAMESPACES
    ):
        return True
    return is_module(node) or (isinstance(node, ast.Call) and is_given_module(node))


def is_module(node: ast.AST) -> bool:
    """Return whether an expression is a module of `sys.modules`, or the names of a frame."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and ast.unparse(node.value) == "sys.modules"
    return isinstance(node, ast.Attribute) and node.attr in _OF_FRAMES


def is_given_module(call: ast.Call) -> bool:
    """Return whether a call is given the module around it, or all of its names. The name of the module counts, too: by it
    the function can find the module."""
    name = called(call)
    if isinstance(call.func, ast.Name) and name == "include":
        return True
    takes_name = not ("log" in name.lower() or name in _READING_NAMES)
    for part in [*call.args, *(word.value for word in call.keywords)]:
        if is_module(part) or is_namespace(part):
            return True
        if takes_name and isinstance(part, ast.Name) and part.id == "__name__":
            return True
    return False
