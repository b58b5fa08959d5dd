"""The arguments of statements that hold values of users: the position of each, and how it is encrypted. A statement is
recognized by a part of its text, mostly the name of the database function that it calls. All other arguments are
written in clear. For an encrypted tenant, the database function `refuse_clear` refuses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import orjson

from penstock.language.terms.waits import INQUIRY, WAIT_FOR_EVENT
from penstock.store.session.sealed_marks import KEY
from penstock.store.session.sealed_values import (
    DataKey,
    keyed_digest,
    sealed_bytes,
    sealed_json,
    sealed_text,
    sealed_value,
)

Kind = Literal[
    "json",
    "parameters",
    "options",
    "error",
    "ending",
    "text",
    "digest",
    "head",
    "record",
    "items",
    "wait_key",
    "letter",
    "reason",
]
Owner = Literal["execution", "namespace", "tenant", "headers"]


class Place(NamedTuple):
    """An argument with values of users. `position` and `of` count from 1, as in SQL. The argument `of` identifies the
    tenant of each value, by its execution, its namespace, its name, or the headers of its message."""

    kind: Kind
    position: int
    owner: Owner
    of: int


def _ends(ids: int, results: int, errors: int, reasons: int) -> tuple[Place, ...]:
    return (
        Place("json", results, "execution", ids),
        Place("error", errors, "execution", ids),
        Place("text", reasons, "execution", ids),
    )


def _starts(namespaces: int, params: int) -> tuple[Place, ...]:
    return (
        Place("parameters", params, "namespace", namespaces),
        Place("options", params + 1, "namespace", namespaces),
    )


_FINISH = (
    Place("ending", 5, "execution", 2),
    Place("error", 6, "execution", 2),
    Place("text", 9, "execution", 2),
)

STATEMENTS: Mapping[str, tuple[Place, ...]] = {
    # executions
    "from submit_executions(": (*_starts(2, 4), Place("digest", 12, "tenant", 10)),
    "from place_alike(": (Place("parameters", 4, "namespace", 2),),
    "from finish_attempts(": _FINISH,
    "from finish_and_claim(": _FINISH,
    "from finish_remotely(": (
        Place("ending", 7, "execution", 4),
        Place("error", 8, "execution", 4),
        Place("text", 11, "execution", 4),
    ),
    "from store_remote_lines(": (Place("text", 7, "execution", 3),),
    "from finish_completed(": (Place("json", 4, "execution", 2),),
    "from end_executions(": (Place("error", 5, "execution", 1), Place("text", 4, "execution", 1)),
    "insert into log_line ": (Place("text", 5, "execution", 1),),
    "from settle_outside(": (
        Place("json", 3, "execution", 1),
        Place("error", 4, "execution", 1),
        Place("text", 5, "execution", 1),
    ),
    "update outside_wait w set progress ": (Place("text", 4, "execution", 1),),
    "insert into early_outcome ": (
        Place("json", 3, "tenant", 1),
        Place("error", 4, "tenant", 1),
        Place("text", 5, "tenant", 1),
    ),
    "from answer_inquiry(": (Place("json", 2, "execution", 1),),
    "from rerun_ended_execution(": (Place("parameters", 8, "execution", 2),),
    # workflows
    "start_children(case": (
        *_starts(4, 6),
        Place("head", 14, "execution", 13),
        Place("record", 18, "execution", 15),
        Place("json", 22, "execution", 19),
    ),
    "from start_children(": _starts(4, 6),
    "write_workflows(": (
        Place("head", 2, "execution", 1),
        Place("record", 6, "execution", 3),
        Place("json", 10, "execution", 7),
    ),
    "from begin_workflow(": (
        Place("parameters", 4, "namespace", 2),
        Place("head", 8, "namespace", 2),
        Place("record", 11, "namespace", 2),
        Place("json", 14, "namespace", 2),
        Place("parameters", 20, "namespace", 18),
    ),
    "from take_plain_step(": (
        Place("json", 7, "execution", 5),
        Place("head", 9, "execution", 1),
        Place("record", 12, "execution", 1),
        Place("parameters", 18, "namespace", 16),
    ),
    "from take_steps(": (
        Place("json", 7, "execution", 5),
        Place("head", 9, "execution", 1),
        Place("record", 13, "execution", 10),
        Place("json", 17, "execution", 14),
        *_starts(21, 23),
        *_ends(28, 30, 31, 32),
    ),
    "select finish_workflows(": _ends(1, 3, 4, 5),
    "insert into workflow_item ": (Place("items", 3, "execution", 1),),
    "select command_workflow(": (Place("json", 4, "execution", 1),),
    "from complete_waits(": (Place("json", 2, "execution", 1),),
    "update execution e set reason ": (Place("text", 2, "execution", 1),),
    "join event_wait w on w.trigger": (Place("wait_key", 6, "tenant", 4),),
    # durable functions
    "from record_steps(": (Place("json", 11, "execution", 2), Place("error", 12, "execution", 2)),
    "from give_step(": (Place("json", 4, "execution", 1),),
    "from signal_function(": (Place("json", 3, "execution", 1),),
    # events and rules
    "from store_events(": (Place("json", 4, "tenant", 3), Place("digest", 7, "tenant", 3)),
    "update event e set payload ": (Place("json", 2, "tenant", 3),),
    "select enforce_rules(": (*_starts(5, 8), Place("text", 10, "namespace", 5)),
    "from rerun_enforcements(": (*_starts(6, 9), Place("text", 11, "namespace", 6)),
    # schedules
    "from fire_schedules(": _starts(12, 15),
    "from recover_fires(": _starts(5, 7),
    # messages with a body
    "insert into outbox (queue, ids, body": (Place("letter", 2, "headers", 5),),
    "insert into dead_letter ": (Place("letter", 6, "headers", 7), Place("reason", 3, "headers", 7)),
}
"""The places by a part of the statement's text. The first part that matches counts."""


@cache
def places_of(sql: str) -> tuple[Place, ...]:
    """Return the arguments of a statement that hold values of users."""
    return next((places for piece, places in STATEMENTS.items() if piece in sql), ())


TENANT_HEADER = "tenant"


def tenant_of_headers(headers: str | None) -> str | None:
    """Return the tenant that the headers (JSON) of an external message name."""
    document = orjson.loads(headers) if headers else {}
    tenant = document.get(TENANT_HEADER, "public") if isinstance(document, dict) else None
    return tenant if isinstance(tenant, str) else None


def sealed_argument(
    kind: Kind,
    key: DataKey,
    value: Any,
    *,
    action: str | None = None,
    paths: Sequence[str] = (),
    ends_as: str | None = None,
) -> Any:
    """Return a value sealed for the tenant of this key. `action` is that of its namespace, `paths` are the parameters
    by which limits group, and `ends_as` is the next status after an attempt."""
    if value is None or value == "null":
        return value
    match kind:
        case "text":
            return sealed_text(key, value)
        # The database groups letters by the beginning of the reason. The rest may contain a rejected value.
        case "reason":
            return f"{value.partition(':')[0]}: of an encrypted tenant"
        case "letter":
            return sealed_bytes(key, value)
        case "digest" | "wait_key":
            return keyed_digest(key, value)
        case "json":
            return sealed_json(key, value)
        case "parameters":
            return _parameters(key, value, action, paths)
        case "options":
            return _fields(key, value, ("context",))
        case "error":
            return _beside(key, value, ("type", "steps", "told"))
        case "head":
            return _head(key, value)
        case "record":
            return _record(key, value)
        case "items":
            return orjson.dumps([sealed_value(key, item) for item in orjson.loads(value)]).decode()
        case "ending":
            return _ending(key, value, ends_as)


def _parameters(key: DataKey, text: str, action: str | None, paths: Sequence[str]) -> str:
    params = orjson.loads(text)
    if action == WAIT_FOR_EVENT:
        clear = {name: params[name] for name in ("trigger", "timeout", "path") if name in params}
        if params.get("key") is not None:
            clear["key"] = keyed_digest(key, params["key"])
        return _dumped({**clear, **sealed_value(key, params)})
    if action == INQUIRY:
        return _dumped({**_question(key, params), **sealed_value(key, params)})
    if not params:
        return text
    references = params.get("$secrets") if isinstance(params, dict) else None
    groups = _groups(key, params, paths)
    if not references and not groups:
        return sealed_json(key, text)
    if not references:
        return _dumped({**groups, **sealed_value(key, params)})
    # The database reads the names of the secrets to which an attempt refers, and nothing of the texts around them.
    names = [[None, [part for part in parts if isinstance(part, dict)]] for _, parts in references]
    return _dumped({**groups, "$secrets": names, **sealed_value(key, params)})


def _groups(key: DataKey, params: Any, paths: Sequence[str]) -> dict[str, Any]:
    """Return the parameters by which limits group. Digests replace the values, since the database groups by them."""
    groups: dict[str, Any] = {}
    for path in paths:
        *above, last = path.split(".")
        value, within = params, groups
        for name in above:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, dict) or value.get(last) is None:
            continue
        for name in above:
            within = within.setdefault(name, {})
            if not isinstance(within, dict):
                break
        else:
            within[last] = keyed_digest(key, orjson.dumps(value[last], option=orjson.OPT_SORT_KEYS).decode())
    return groups


def _ending(key: DataKey, text: str, status: str | None) -> str:
    """Return the sealed result of an attempt. If the execution goes on later, return the values that it carries over,
    or its question. A wait for steps or for something outside has names and times alone, which the database reads."""
    if status == "requested":
        return _carry(key, orjson.loads(text))
    if status == "waiting":
        question = orjson.loads(text)
        return text if question.keys() & {"awaits", "outside"} else _dumped(_question(key, question))
    return sealed_json(key, text)


def _question(key: DataKey, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sealed question. The database reads its members, and copies them into the table of inquiries."""
    result = {name: question[name] for name in ("schema", "assignee", "timeout") if name in question}
    result["prompt"] = sealed_text(key, str(question.get("prompt")))
    if question.get("default") is not None:
        result["default"] = sealed_value(key, question["default"])
    if "resume" in question:
        result["resume"] = _resumed(key, question["resume"])
    return result


def _resumed(key: DataKey, carry: Any) -> Any:
    """Return the sealed values that are carried over an answer. The database adds the answer to their list."""
    if not isinstance(carry, dict) or not isinstance(carry.get("answers", []), list):
        return sealed_value(key, carry)
    answers = [sealed_value(key, answer) for answer in carry.get("answers", ())]
    state = {name: value for name, value in carry.items() if name != "answers"}
    return {**({"answers": answers} if "answers" in carry else {}), **sealed_value(key, state)}


def _carry(key: DataKey, carry: Any) -> str:
    return _dumped(_resumed(key, carry))


def _beside(key: DataKey, text: str, names: Sequence[str]) -> str:
    """Return a sealed object that also has these members in clear."""
    document = orjson.loads(text)
    if not isinstance(document, dict):
        return sealed_json(key, text)
    clear = {name: document[name] for name in names if name in document}
    return _dumped({**clear, **sealed_value(key, document)})


def _fields(key: DataKey, text: str, names: Sequence[str]) -> str:
    """Return an object of which only these members are sealed."""
    document = orjson.loads(text)
    for name in names:
        if document.get(name) is not None:
            document[name] = sealed_value(key, document[name])
    return _dumped(document)


def _head(key: DataKey, text: str) -> str:
    head = orjson.loads(text)
    if head["faults"]:
        head["faults"] = sealed_value(key, head["faults"])
    if head["outcome"] is not None and head["outcome"][1] is not None:
        head["outcome"][1] = sealed_value(key, head["outcome"][1])
    return _dumped(head)


def _record(key: DataKey, text: str) -> str:
    record = orjson.loads(text)
    for within, names in (
        (record, ("result", "error")),
        (record.get("kept"), ("result", "error", "digest")),
        (record.get("fan"), ("first_error", "digest")),
    ):
        for name in names if within else ():
            if within.get(name):
                within[name] = sealed_value(key, within[name])
    return _dumped(record)


def _dumped(document: Any) -> str:
    return orjson.dumps(document).decode()


__all__ = ["KEY", "STATEMENTS", "Place", "places_of", "sealed_argument", "tenant_of_headers"]
