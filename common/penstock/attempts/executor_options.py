"""The options and parameters of an action, checked before use, since another version of Penstock may have stored them."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.errors import DefinitionError
from penstock.language.terms.options import Options, problems
from penstock.run.task_executors import Run

Chosen = TypeVar("Chosen", bound=Options)


def options_of(run: Run, kind: type[Chosen]) -> Chosen:
    """Return the options of the run's action. Raises DefinitionError that names an unknown or invalid option."""
    try:
        return kind.model_validate(dict(run.action.options))
    except ValidationError as error:
        faults = problems(error)
        wrong = "; ".join(str(problem) for problem in faults)
        hint = next((problem.hint for problem in faults if problem.hint), None)
        raise DefinitionError(f"the options of {run.action.ref} are wrong: {wrong}", hint=hint) from None


def program_of(run: Run, kind: type[Chosen]) -> tuple[Chosen, dict[str, Any]]:
    """Return the options of an action that is a program, and its parameters. Raises DefinitionError if an option is not
    valid, and the errors of `bind` for parameters that do not match."""
    return options_of(run, kind), run.action.bind(run.params)
