"""The rights of each service in the database: the one table that `penstock roles`, `penstock doctor` and the tests
use. The letters are PostgreSQL's: r select, a insert, w update, d delete; `r*` means some columns. No service may use
a table that is not named here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SERVICES = ("executor", "worker", "api", "client", "look")
"""The kinds of processes that have a role of their own. `penstock migrate` runs as the owner of the schema. `client`
starts executions, publishes events, and reads what it started. `look` reads everything that is not secret: neither payloads
nor results, definitions or output."""

_TABLES = """
table               executor  worker  api   client  look

admission           rawd      ra      ra    -       r
archive             rawd      r       r     -       r*
archived_label      rawd      r       r     -       -
attempt             rawd      raw     raw   -       r*
awaited             rad       rad     rad   a       r
breaker             rawd      rawd    rawd  -       r
breaker_attempt     rawd      rawd    rawd  -       r
backlog             rawd      rawd    rawd  -       r
claim               rawd      rawd    rawd  -       r
budget              rad       r       raw   -       r
budget_entry        rawd      rawd    rawd  -       r
budget_tree         rad       r       ra    -       r
cluster             rw        rw      rw    -       r
figures             rw        -       r     -       r
finished            rawd      a       ra    -       r
held_execution      rawd      rad     rawd  -       r
history             r         r       r     -       r
hold                rwd       r       rawd  r       r
idempotency         rad       ra      ra    -       -
inquiry             rawd      rawd    rawd  -       r*
outside_wait        rawd      raw     raw   -       r*
early_outcome       rad       rad     ra    -       -
joined_start        rd        -       r     -       r
label               rad       ra      ra    -       -
lane                rawd      rawd    rawd  -       r
live                rawd      rawd    rawd  -       r
log_line            rawd      ra      ra    -       -
namespace           raw       raw     raw   ra      r
execution           rawd      raw     raw   -       r
ordered_route       rad       ra      ra    -       r
outbox              rawd      rawd    rawd  r*wd    r*
parked              rawd      rawd    rawd  -       r
permit              rd        rawd    -     -       -
paused_workflow     rad       rad     rad   -       r
payload             rad       ra      ra    -       -
process             rawd      rawd    rawd  r       r
result              rad       ra      ra    -       -
route_tenant        ra        ra      ra    -       r
route_turn          raw       -       -     -       r
slot                rawd      rawd    rawd  -       r
start_burst         rd        -       r     -       r
step                rawd      rawd    rawd  -       -
stuck               rad       -       -     -       r
subscribed_move     rwd       -       -     -       r
suspended           rad       rad     rad   -       r
tenant_turn         -         -       r     -       r
timer               rawd      rawd    rawd  -       r
untold              rawd      rad     rawd  -       r
untraced            rawd      rawd    rawd  -       r
waiter              rad       rad     rad   -       r
wake                rad       rad     rad   -       r
workflow            rawd      rawd    rawd  -       r*
workflow_command    rawd      rw      raw   -       -
workflow_item       rad       rad     rad   -       -
workflow_kept       rad       rad     rad   -       -
workflow_task       rawd      rawd    rawd  -       -
workflow_variable   rawd      rawd    rawd  -       -

burst               rad       r       r     -       r
burst_event         rawd      -       r     -       r
burst_key           rawd      -       r     -       r
chain               rawd      ra      rawd  -       r
chain_step          rawd      raw     rawd  -       r
event               rawd      ra      ra    -       r*
event_key           rad       ra      ra    -       -
event_path          ra        ra      ra    -       -
event_trace         rad       r       ra    -       -
event_wait          rad       rad     rad   -       -
effect              rad       ra      ra    -       r
unmatched           rawd      ra      rawd  -       r
enforcement         rawd      ra      rawd  -       r*
dead_letter         rawd      -       rawd  -       r*
poll                rawd      -       rawd  -       r*
schedule            rawd      -       rawd  -       r
fire                rawd      -       raw   -       r
open_fire           rawd      -       rawd  -       r
waiting_fire        rawd      -       rawd  -       r

catalog             r         r       rawd  r       r
definition          r         r       ra    r       r*
concurrency_limit   r         r       raw   r       r
legal_move          r         r       r     -       r
penstock_function   r         r       r     r       r
penstock_migration  r         r       r     r       r
service_role        r         -       r     -       r

api_token           -         -       rawd  -       -
person              -         -       rawd  -       -
person_role         -         -       rad   -       -
person_session      -         -       rawd  -       -
recovery_code       -         -       rad   -       -
known_address       -         -       rawd  -       -
login_failure       -         -       rad   -       -
audit               a         -       ra    -       -
audit_chain         -         -       r     -       -
secret              -         -       rawd  -       -
signing_key         -         -       r     -       -
tenant_key          r         r       r     r       r
webhook             -         -       rawd  -       -
webhook_refusal     rd        -       raw   -       r
saved_view          -         -       rawd  -       -
subscription        rw        -       rawd  -       -
delivery            rawd      -       r     -       -
"""

_COLUMNS: Mapping[tuple[str, str], str] = {
    ("archive", "look"): (
        "id finished_at status action namespace root parent task item created_at attempt failures "
        "recoveries priority definition_id reason"
    ),
    ("attempt", "look"): "execution_id attempt outcome worker at",
    ("dead_letter", "look"): "id queue reason type message_id cut_from count first_at last_at",
    ("definition", "look"): "id kind ref digest created_at",
    ("enforcement", "look"): (
        "event_id rule definition_id execution_id status namespace_id action_definition_id priority "
        "created_at"
    ),
    ("event", "look"): "id trigger tenant source created_at",
    ("inquiry", "look"): "execution_id status prompt assignee due_at created_at answered_at responder",
    ("outside_wait", "look"): (
        "execution_id attempt tenant name since heartbeat deadline_at due_at progress progress_at settled_at"
    ),
    ("outbox", "client"): "id tries",
    ("outbox", "look"): "id queue ids message_id type tries due_at created_at error holder",
    (
        "poll",
        "look",
    ): "trigger definition_id namespace_id every enabled next_due running called_at found failures",
    ("workflow", "look"): "execution_id",
}
"""The columns that a service may read if the table has `r*`. The other columns may hold data of users, or the service
does not need them."""

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "make_partitions": ("executor",),
    "make_table_partitions": ("executor",),
    "drop_partition": ("executor",),
    "partition_needs": ("executor", "worker", "api", "look"),
    "seal_audit": ("executor",),
    "drop_audit": ("executor",),
    "secrets_of_attempt": ("worker", "api"),
    "secrets_of_subscriptions": ("executor",),
    "find_work_token": ("worker",),
    "note_spent_budgets": ("executor", "worker", "api"),
    "claim_executions": ("worker", "api"),
    "claim_named": ("worker", "api"),
    "finish_completed": ("worker", "api"),
    "take_plain_step": ("worker",),
    "permit_takes": ("worker", "api"),
    "follow_clock_elsewhere": ("executor",),
    "withdraw_take": ("worker", "api"),
    "settle_costs": ("worker",),
    "sign_attempt": ("worker",),
    "mark_holds": ("executor", "worker", "api", "client"),
    "note_tenants": ("executor", "worker", "api", "client"),
    "store_item_workflow": ("worker",),
    "submit_executions": ("executor", "worker", "api", "client"),
    "schedule_submitted": ("executor", "api", "client"),
    "place_alike": ("executor", "api", "client"),
    "begin_workflow": ("executor", "api"),
    "assign_scheduled": ("executor", "worker", "api"),
    "start_plain_execution": ("executor", "worker", "api"),
    "begin_chains": ("executor", "worker", "api", "client"),
    "store_events": ("executor", "worker", "api", "client"),
    "find_executions": ("executor", "worker", "api", "client"),
    "moves_of_execution": ("executor", "worker", "api", "client"),
    "failed_attempts": ("executor", "worker", "api", "client"),
    "look_for_awaited": ("executor", "worker", "api", "client"),
    "forget_awaited": ("executor", "worker", "api", "client"),
    "old_history": ("executor",),
    "delete_old_history": ("executor",),
    "execution_inserted": (),
    "execution_moved": (),
    "awaited_inserted": (),
}
"""The functions with the owner's rights, and the services that may call each. Triggers call those of no service.
All other functions have the rights of their caller, and allow nothing that the tables do not."""

SEQUENCES: Mapping[str, tuple[str, ...]] = {"admission_seq": ("executor", "worker", "api")}
"""Sequences that no table owns, and the services that may draw numbers from them."""

_VERBS = {"r": "select", "a": "insert", "w": "update", "d": "delete"}


@dataclass(frozen=True, slots=True)
class Right:
    """A right on a table, limited to `columns` if there are any."""

    verb: str
    columns: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        return f"{self.verb} ({', '.join(self.columns)})" if self.columns else self.verb


def _parsed(table: str, service: str, cell: str) -> tuple[Right, ...]:
    columns = tuple(_COLUMNS[table, service].split()) if "*" in cell else ()
    return tuple(
        Right(verb, columns if letter == "r" else ()) for letter, verb in _VERBS.items() if letter in cell
    )


def _read(text: str) -> dict[str, dict[str, tuple[Right, ...]]]:
    head, *lines = [line.split() for line in text.splitlines() if line]
    if tuple(head[1:]) != SERVICES:
        raise ValueError("the columns of the table of rights are not the services")
    return {
        table: {service: _parsed(table, service, cell) for service, cell in zip(SERVICES, cells, strict=True)}
        for table, *cells in lines
    }


TABLES: Mapping[str, Mapping[str, tuple[Right, ...]]] = _read(_TABLES)
"""The rights of each service on each table."""
