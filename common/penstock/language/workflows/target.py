"""The target of a task: the ref and the current version of what it runs."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.language.terms.waits import INQUIRY, WAIT_FOR_EVENT
from penstock.language.workflows.task import Step


@dataclass(frozen=True, slots=True)
class Target:
    """The current version of what a task runs. `kind` is action, workflow or wait."""

    definition: int
    kind: str
    enabled: bool = True


def target_ref(step: Step) -> str:
    """Return the ref of what a task runs or waits for."""
    if step.wait_for_event is not None:
        return WAIT_FOR_EVENT
    return INQUIRY if step.inquiry is not None else step.action or step.workflow or ""
