"""The engine of workflows: pure functions from a workflow's state and the latest ends to its new state and the work to
do.

    plan = Plan(workflow)              compiled, once for each definition.
    begin(plan, facts, system)         the first decision of a run.
    advance(plan, state, ends, ...)    the decision after executions of its tasks have ended.
    resume, stop, skip, set_result     commands, one by one (`pause` only sets a mark on the state).
    take_turn(..., inbox)              all of these together, in order: `penstock.advance` calls it.

Each of them but `pause` is a generator (`Asking`). It yields `Needed`, which names what facts it lacks: load those
into `Facts` and resume the generator. It returns a `Decision` (`take_turn` a `Turn` of several): the new
`WorkflowState` and `TaskState`s to store, the executions to `Start`, those to cancel, what was `Published`, and at the
end `Final`. Pass the state to the next call, with empty facts. `serialization` writes states as JSON. The engine
remembers nothing else.

So a driver is a loop: `needed = next(steps)`, load `needed` from the store of the state, until StopIteration carries
the decision. The driver in `penstock.advance` reads PostgreSQL. The driver in `penstock.testing.memory_workflow` reads
dictionaries, for tests without servers.

Not here: transactions, statements, clocks, ids.
"""

from penstock.engine.advance_workflow import advance, begin
from penstock.engine.commands import Command, apply_command, pause, resume, set_result, skip, stop
from penstock.engine.decision import ChildEnded, Decision, Final, Published, Start
from penstock.engine.facts import EVERYTHING, WORKFLOW, Asking, Facts, Needed, TaskResult, VariablesRequest
from penstock.engine.plan import Plan
from penstock.engine.state import KeptTask, TaskState, WorkflowState
from penstock.engine.turn import Inbox, Turn, take_turn

__all__ = [
    "EVERYTHING",
    "WORKFLOW",
    "Asking",
    "ChildEnded",
    "Command",
    "Decision",
    "Facts",
    "Final",
    "Inbox",
    "KeptTask",
    "Needed",
    "Plan",
    "Published",
    "Start",
    "TaskResult",
    "TaskState",
    "Turn",
    "VariablesRequest",
    "WorkflowState",
    "advance",
    "apply_command",
    "begin",
    "pause",
    "resume",
    "set_result",
    "skip",
    "stop",
    "take_turn",
]
