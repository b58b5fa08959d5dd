"""The replay of a run of a durable function against new code."""

from __future__ import annotations

from uuid import UUID

import orjson

from penstock.engine.durable.records import STATE, History, Key
from penstock.engine.durable.replay import Replayed
from penstock.engine.durable.replay import replay as replay_code
from penstock.errors import Conflict, DefinitionError
from penstock.language.loading import Definitions
from penstock.store.durable import steps
from penstock.store.durable.run_records import child_of, record_of
from penstock.store.executions import executions
from penstock.store.session import clock
from penstock.store.session.database import Session


async def replay(session: Session, id: UUID, definitions: Definitions) -> Replayed:
    """Replay the recorded steps of a run with the code of these definitions; nothing is executed or written. Raises
    NotFound; Conflict if the run has recorded nothing; DefinitionError if the definitions have no durable function of
    its name."""
    run = await executions.get(session, id)
    action = definitions.actions.get(run.action)
    if action is None or not action.durable or action.function is None:
        raise DefinitionError(
            f"the file does not define the durable function {run.action}",
            hint="Name the file that defines the function: --against FILE.py",
        )
    recorded = await steps.recorded(session, id)
    if not recorded:
        raise Conflict(f"{id} has recorded nothing", hint="Replay a run that has begun.")
    params = orjson.loads(run.params) if run.params else {}
    history = History(await clock.now(session))
    for step in recorded:
        if step.kind != STATE:
            record = record_of(step)
            history.records[record.key] = record
    for child in await steps.children_of_any_age(session, id):
        history.children[Key(child.name, child.ordinal)] = child_of(child)
    return await replay_code(action.function, action.bind(params), history)
