"""Options and parameters of an action, checked where they are used: another version may have stored them."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.errors import DefinitionError
from penstock.language.terms.options import Options, problems
from penstock.run.task_executors import Run

Chosen = TypeVar("Chosen", bound=Options)


def options_of(run: Run, kind: type[Chosen]) -> Chosen:
    """Raises DefinitionError, which names the option: an unknown or wrong one is never ignored."""
    try:
        return kind.model_validate(dict(run.action.options))
    except ValidationError as error:
        faults = problems(error)
        wrong = "; ".join(str(problem) for problem in faults)
        hint = next((problem.hint for problem in faults if problem.hint), None)
        raise DefinitionError(f"the options of {run.action.ref} are wrong: {wrong}", hint=hint) from None


def program_of(run: Run, kind: type[Chosen]) -> tuple[Chosen, dict[str, Any]]:
    """The options of an action that is a program, and the parameters to hand to it. Raises DefinitionError, or
    what `bind` raises for parameters that do not fit."""
    return options_of(run, kind), run.action.bind(run.params)
