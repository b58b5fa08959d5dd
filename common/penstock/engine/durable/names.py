"""The names and targets of steps, checked when a function uses them."""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import DefinitionError
from penstock.run.cut_texts import cut_end

_STEP = re.compile(r"[^/\x00-\x1f]{1,200}")
UNDO = "on failure "
"""The beginning of the name of each undo."""
_CHILD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def step_name(name: object) -> str:
    """Return the name of a step, checked. Raises DefinitionError if it is not a text of 1 to 200 characters without
    `/`."""
    return _checked(name, "a step's name", 'Name it first: await ctx.step("charge", charge, order).')


def signal_name(name: object) -> str:
    """Return the name of a signal, checked. Raises DefinitionError if it is not a text of 1 to 200 characters without
    `/`."""
    hint = 'Give the name for which the function waits: ctx.signal("paid").'
    return _checked(name, "a signal's name", hint)


def _checked(name: object, subject: str, hint: str) -> str:
    if not isinstance(name, str) or not _STEP.fullmatch(name):
        raise DefinitionError(
            f"{subject} is a text of 1 to 200 characters without '/', not {cut_end(repr(name), 80)}",
            hint=hint,
        )
    return name


def called_name(name: object) -> str:
    """Return the name of a step that a function calls, checked. Raises DefinitionError if it is not valid, or is the
    name of an undo."""
    if (checked := step_name(name)).startswith(UNDO):
        raise DefinitionError(
            f"{checked!r} is the name of an undo, which ctx.on_failure registers",
            hint=f"Give the step a name that does not begin with {UNDO!r}.",
        )
    return checked


def undo_name(function: Any) -> str:
    """Return the name of the step that undoes a run with this function. Raises DefinitionError if it is not a valid
    name of a step."""
    name = getattr(function, "__name__", None) or getattr(function, "name", None) or "undo"
    return step_name(f"{UNDO}{name}")


def child_name(name: object) -> str:
    """Check the name of a step that is an execution of its own: the name is part of a namespace. Raises DefinitionError
    if it has other characters than letters, digits and `_`."""
    if not isinstance(name, str) or not _CHILD.fullmatch(name):
        raise DefinitionError(
            f"a child execution has a name of letters, digits and '_', not {name!r}",
            hint='Give it one: ctx.run(action, {...}, name="charge").',
        )
    return name


def target_of(action: Any) -> str:
    """Return the ref of an action or a workflow, from the object or from its ref. Raises DefinitionError for anything
    else."""
    ref = getattr(action, "ref", action)
    if not isinstance(ref, str) or "." not in ref:
        raise DefinitionError(
            f"{action!r} is neither an action nor a workflow",
            hint="Give an action, or its ref: ctx.run('shop.charge', {...}). A plain function is a step: ctx.step('charge', f).",
        )
    return ref
