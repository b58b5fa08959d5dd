"""A workflow's turn: all ends, commands and stops since its last turn are applied in order, with all decisions that
follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.advance_workflow import advance, begin
from penstock.engine.commands import Command, apply_command, stop
from penstock.engine.decision import ChildEnded, Decision, Final, Start
from penstock.engine.facts import Asking, Facts
from penstock.engine.plan import Plan
from penstock.engine.state import KeptTask, TaskState, WorkflowState
from penstock.errors import PenstockError


@dataclass(slots=True)
class Inbox:
    """The commands and ends that arrived for a workflow. `stops` is the number of requests to stop it since it began,
    each with the final status `stop_status`."""

    ends: Sequence[ChildEnded] = ()
    commands: Sequence[Command] = ()
    stops: int = 0
    stop_status: str | None = None
    stop_reason: str | None = None


@dataclass(slots=True)
class Turn:
    """The decisions of one turn, in order. `refused` has the reason for each refused command, by its id.

    Write all decisions in one transaction. Where two of them write the same thing, the later one wins.
    """

    commands: Sequence[Command] = ()
    decisions: list[Decision] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)

    @property
    def state(self) -> WorkflowState:
        return self.decisions[-1].state

    @property
    def tasks(self) -> dict[int, TaskState]:
        return {task: state for decision in self.decisions for task, state in decision.tasks.items()}

    @property
    def published(self) -> dict[tuple[int, str], Any]:
        """Return the published values of variables, by writer and name."""
        return {(p.writer, p.name): p.value for decision in self.decisions for p in decision.published}

    @property
    def more_due(self) -> bool:
        return self.decisions[-1].more_due

    @property
    def final(self) -> Final | None:
        return next((d.final for d in self.decisions if d.final is not None), None)

    @property
    def paused(self) -> bool | None:
        """Return True if the turn's last command of that kind paused the workflow, False if it resumed it, None
        without one."""
        if not self.commands or all(c.kind not in ("pause", "resume") for c in self.commands):
            return None
        return self.state.paused

    @property
    def starts(self) -> tuple[list[Start], list[Start]]:
        """Return the starts to write before the cancellations, and those to write after them. A start that the same
        turn cancels has to exist before it can be cancelled."""
        if not self.cancels:
            return [], [start for decision in self.decisions for start in decision.starts]
        starts_before: list[Start] = []
        starts_after: list[Start] = []
        last = max(n for n, d in enumerate(self.decisions) if d.cancel_all or d.cancel)
        for number, decision in enumerate(self.decisions):
            for start in decision.starts:
                (starts_before if number < last or start.task in decision.cancel else starts_after).append(
                    start
                )
        return starts_before, starts_after

    @property
    def cancels(self) -> list[tuple[set[int] | None, bool]]:
        """Return, for each decision that cancels, the tasks with open executions to cancel (None: all tasks). Also
        return whether executions that are cleaning up are cancelled too."""
        return [
            (None if d.cancel_all else d.cancel, d.by_hand)
            for d in self.decisions
            if d.cancel_all or d.cancel
        ]

    @property
    def only_starts(self) -> bool:
        """Return whether the turn writes nothing between the new state and the started executions, as most turns do."""
        return not self.commands and not any(
            d.cancel_all or d.cancel or d.forget_kept or d.store_items for d in self.decisions
        )


def take_turn(
    plan: Plan,
    state: WorkflowState | None,
    facts: Facts,
    system: Mapping[str, Any],
    inbox: Inbox,
    *,
    kept_tasks: Mapping[int, KeptTask] | None = None,
) -> Asking[Turn]:
    """Take the arrived ends, then the commands, then the requests to stop. A workflow without a state begins. In a
    re-run, `kept_tasks` are the tasks of the run before that keep their end."""
    turn = Turn(inbox.commands)
    if state is None:
        decision = yield from begin(plan, facts, system, kept_tasks=kept_tasks)
        state = decision.state
    else:
        decision = yield from advance(plan, state, inbox.ends, facts, system)
    turn.decisions.append(decision)
    for command in inbox.commands:
        try:
            turn.decisions.append((yield from apply_command(plan, state, facts, system, command)))
        except PenstockError as refusal:
            turn.refused[command.id] = refusal.message
    while state.stops < inbox.stops:
        assert inbox.stop_status is not None
        why = {"type": inbox.stop_status, "message": inbox.stop_reason}
        turn.decisions.append((yield from stop(plan, state, facts, system, inbox.stop_status, why)))
    return turn
