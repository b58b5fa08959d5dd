"""The rights of each service in the database: the one table from which `penstock roles`, `penstock doctor` and the tests work.

Letters as PostgreSQL writes them: r select, a insert, w update, d delete. A table that is not named is within no service's reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SERVICES = ("executor", "worker", "api", "client", "look")
"""What runs as a role of its own. The role that owns the schema is that of `penstock migrate`.

`client` starts executions, publishes events and reads what became of them. `look` reads what is not secret: no payload, no
result, no definition, no output."""

_TABLES = """
table               executor  worker  api   client  look

admission           rawd      ra      ra    -       r
archive             rad       r       r     r       r(id,finished_at,status,action,namespace,root,parent,task,item,created_at,attempt,failures,recoveries,priority,definition_id,reason)
attempt             rawd      raw     raw   r       r(execution_id,attempt,outcome,worker,at)
awaited             rad       rad     rad   rad     r
claim               rawd      rawd    rd    -       r
cluster             rw        rw      rw    -       r
figures             rw        -       r     -       r
finished            rad       a       a     -       r
history             rad       ra      ra    r       r
idempotency         rad       ra      ra    -       -
inquiry             rawd      rawd    rawd  -       r(execution_id,status,prompt,assignee,due_at,created_at,answered_at,responder)
lane                rawd      rawd    rawd  -       r
live                rawd      rawd    rawd  -       r
log_line            rad       ra      r     r       -
namespace           raw       raw     raw   ra      r
execution           rawd      raw     raw   r       r
outbox              rawd      rawd    rawd  rwd     r(id,queue,ids,message_id,type,tries,due_at,created_at,error,holder)
parked              rad       rad     rad   -       r
paused_workflow     rad       rad     rad   -       r
payload             rad       ra      ra    r       -
process             rawd      rawd    rawd  r       r
result              rad       ra      ra    r       -
slot                rad       rad     rad   -       r
step                rawd      rawd    rawd  -       -
subscribed_move     rad       a       a     -       r
suspended           rad       rad     rad   -       r
timer               rawd      rawd    rawd  -       r
untold              rad       rad     rad   -       r
untraced            rawd      rawd    rawd  -       r
waiter              rad       rad     rad   -       r
wake                rad       ra      ra    -       r
workflow            rawd      rawd    rawd  -       r(execution_id)
workflow_command    rawd      rw      raw   -       -
workflow_item       rad       rad     rad   -       -
workflow_kept       rad       rad     rad   -       -
workflow_task       rawd      rawd    rawd  -       -
workflow_variable   rawd      rawd    rawd  -       -

event               rad       ra      ra    -       r(id,trigger,tenant,source,created_at)
event_key           rad       ra      ra    -       -
event_path          ra        ra      ra    -       -
event_trace         rad       r       ra    -       -
event_wait          rad       rad     rad   -       -
unmatched           rad       ra      rad   -       r
enforcement         rawd      ra      rawd  -       r(event_id,rule,definition_id,execution_id,status,namespace_id,action_definition_id,priority,created_at)
dead_letter         rawd      -       rawd  -       r(id,queue,reason,type,message_id,cut_from,count,first_at,last_at)
poll                rawd      -       rawd  -       r(trigger,definition_id,namespace_id,every,enabled,next_due,running,called_at,found,failures)
schedule            rawd      -       rawd  -       r
fire                rawd      -       raw   -       r
open_fire           rawd      -       rawd  -       r
waiting_fire        rawd      -       rawd  -       r

catalog             r         r       rawd  r       r
definition          r         r       ra    r       r(id,kind,ref,digest,created_at)
concurrency_limit   r         r       raw   r       r
legal_move          r         r       r     -       r
penstock_function   r         r       r     r       r
penstock_migration  r         r       r     r       r
service_role        -         -       -     -       r

api_token           -         -       rad   -       -
person              -         -       rawd  -       -
person_role         -         -       rad   -       -
person_session      -         -       rawd  -       -
login_failure       -         -       rad   -       -
audit               r(id,at)d -       ra    -       -
secret              -         -       rawd  -       -
webhook             -         -       rawd  -       -
subscription        rw        -       rawd  -       -
delivery            rawd      -       r     -       -
"""

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "make_partitions": ("executor",),
    "drop_partition": ("executor",),
    "secrets_of_attempt": ("worker",),
    "submit_executions": ("executor", "api", "client"),
    "store_events": ("executor", "api", "client"),
}
"""The functions that have the owner's rights, and the services that may call each. All others have the rights of their caller,
and give nothing that the tables do not."""

SEQUENCES: Mapping[str, tuple[str, ...]] = {"admission_seq": ("executor", "worker", "api")}
"""Sequences that no table owns, and the services that draw numbers from them."""

_VERBS = {"r": "select", "a": "insert", "w": "update", "d": "delete"}


@dataclass(frozen=True, slots=True)
class Right:
    """What may be done with a table; `columns`: with these alone, or, where there are none, with all."""

    verb: str
    columns: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        return f"{self.verb} ({', '.join(self.columns)})" if self.columns else self.verb


def _parsed(cell: str) -> tuple[Right, ...]:
    rights: list[Right] = []
    rest = cell.replace("-", "")
    while rest:
        verb, rest = _VERBS[rest[0]], rest[1:]
        columns: tuple[str, ...] = ()
        if rest.startswith("("):
            inner, _, rest = rest[1:].partition(")")
            columns = tuple(inner.split(","))
        rights.append(Right(verb, columns))
    return tuple(rights)


def _read(text: str) -> dict[str, dict[str, tuple[Right, ...]]]:
    head, *lines = [line.split() for line in text.splitlines() if line]
    if tuple(head[1:]) != SERVICES:
        raise ValueError("the columns of the table of rights are not the services")
    return {
        table: {service: _parsed(cell) for service, cell in zip(SERVICES, cells, strict=True)}
        for table, *cells in lines
    }


TABLES: Mapping[str, Mapping[str, tuple[Right, ...]]] = _read(_TABLES)
"""The rights of each service on each table."""
