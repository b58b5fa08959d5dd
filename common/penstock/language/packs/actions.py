"""Actions of YAML packs: a function of the pack, a command, a URL or an image."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.decorator import of_function, qualified_callbacks
from penstock.language.definitions.program_actions import ENTRY, program_action
from penstock.language.definitions.qualified_name import Pack
from penstock.language.packs.pack_code import function_of, program_of
from penstock.language.terms.options import did_you_mean, unknown_hint
from penstock.language.terms.sources import Source

PYTHON = "python"
"""The executor of functions, which becomes `async` or `thread`, depending on the function."""
_EXECUTORS = {**{entry: executor for executor, entry in ENTRY.items()}, "function": PYTHON}


def action_of(
    ref: str, options: dict[str, Any], pack: Pack, folder: Path, source: Source
) -> Action[..., Any]:
    """Return the action that an entry of a pack defines. Raises DefinitionError if an option is unknown or not valid,
    or if it does not name one thing to run."""
    names = [*ActionOptions.names(), *_EXECUTORS, "description", "parameters", "result"]
    for name in options:
        if name not in names:
            raise source.at((name,)).wrong(
                f"action {ref}: unknown option {name!r}", unknown_hint("action", name, names)
            )
    options = qualified_callbacks(options, pack.name)
    entries = [name for name in _EXECUTORS if name in options]
    executor = options.pop("executor", None)
    if executor is None and entries:
        executor = _EXECUTORS[entries[0]]
    if executor is not None and not isinstance(executor, str):
        raise source.at(("executor",)).wrong(
            f"action {ref}: executor is not text", "Write executor: thread, or leave it out."
        )
    if executor is None:
        raise source.wrong(
            f"action {ref} does not say what to run", "Give it a function, a command, a url or an image."
        )
    if len(entries) > 1:
        raise source.at((entries[1],)).wrong(
            f"action {ref} has both {' and '.join(entries)}", "Keep one of them."
        )
    entry = entries[0] if entries else None
    if entry not in (None, "function") and ENTRY.get(executor) != entry:
        raise source.at(("executor",)).wrong(
            f"action {ref}: the executor {executor} does not run a {entry}",
            f"Write executor: {_EXECUTORS[entry]}.",
        )
    if "function" in options or executor == PYTHON:
        return _of_function(ref, options, executor, folder, source)
    if executor == "command":
        _check_program(options, folder, source)
    return program_action(ref, executor, options, source, folder=folder)


def _of_function(
    ref: str, options: dict[str, Any], executor: str, folder: Path, source: Source
) -> Action[..., Any]:
    function = function_of(options.pop("function", None), folder, source.at(("function",)))
    described = {name: options.pop(name, None) for name in ("description", "parameters", "result")}
    if executor != PYTHON:
        options["executor"] = executor
    action = of_function(
        function, options, ref=ref, description=described["description"], source=source, in_yaml=True
    )
    written = action.with_schemas(parameters=described["parameters"], result=described["result"])
    _check_names(action, written.parameters_schema, source)
    return written


def _check_names(action: Action[..., Any], declared: Mapping[str, Any], source: Source) -> None:
    """Raise DefinitionError if declared parameters differ from the function's, since then every run would fail."""
    function_takes, closed = action.parameters_schema, "additionalProperties" in action.parameters_schema
    extra = set(declared.get("properties", {})) - set(function_takes.get("properties", {}))
    lacking = set(function_takes.get("required", ())) - set(declared.get("required", ()))
    at = source.at(("parameters",))
    if extra and closed:
        raise at.wrong(
            f"action {action.ref}: its function takes no {', '.join(sorted(extra))}",
            did_you_mean(min(extra), function_takes.get("properties", {})),
        )
    if lacking:
        raise at.wrong(
            f"action {action.ref}: its function needs {', '.join(sorted(lacking))}",
            "Declare it, with required: true.",
        )


def _check_program(values: dict[str, Any], folder: Path, source: Source) -> None:
    command = values.get("command")
    if isinstance(command, list) and command and isinstance(command[0], str):
        program_of(command[0], folder, source.at(("command", 0)))
    options = values.get("options")
    if isinstance(options, dict) and "cwd" in options:
        raise source.at(("options", "cwd")).wrong(
            "the command of a pack runs in the pack's folder", "Leave cwd out, and let the command change it."
        )
