"""The options of an action, checked against what its task executor understands."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from penstock.errors import DefinitionError
from penstock.task_executors import Run

Model = TypeVar("Model", bound=BaseModel)


def options_of(run: Run, model: type[Model]) -> Model:
    """Raises DefinitionError, which names the option: an unknown or wrong one is never ignored."""
    try:
        return model.model_validate(run.action.options)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise DefinitionError(
            f"the options of {run.action.ref} are wrong: {wrong}",
            hint=f"It takes {', '.join(model.model_fields)}.",
        ) from None
