"""The descriptions of fields and parameters that mean the same everywhere in the API, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.language.moves import MEANINGS

DESCRIPTIONS: Mapping[str, str] = {
    "action": "The action or workflow, such as `shop.charge`.",
    "after": "The names of the tasks that come directly before it.",
    "attempt": "The number of the attempt; 1 is the first.",
    "by": (
        "The author: `user:NAME` or `token:NAME` over HTTP, the user of the operating system for the command line (in the "
        "audit: `command:` and the name of that user), or another name that a program gave."
    ),
    "created_at": "The instant at which it was created.",
    "created_by": (
        "The author: `user:NAME` or `token:NAME` over HTTP, or the user of the operating system for the command line."
    ),
    "current_password": "The present password of the caller.",
    "digest": (
        "The digest of the content, in hexadecimal. Two versions with the same content have the same digest."
    ),
    "error": "The error as an object with `type` and `message`; null: there is none.",
    "event_id": "The id of the event.",
    "execution_id": "The id of the execution.",
    "expires_at": "The instant at which the session ends at the latest.",
    "finished_at": "The instant at which it ended; null: it has not ended.",
    "group_value": (
        "The parameter values of its key, as text. Empty: the limit is not grouped by parameters."
    ),
    "held": "The number of slots that are taken.",
    "max": "The number of slots, or the maximum of the costs together; null: there is only the rate.",
    "namespace": "The namespace: `tenant::pack::action`, or `tenant::pack::workflow::task`.",
    "parent": "The id of the workflow or durable function that started it; null: none did.",
    "payload": "The content of the event; secrets are `***`.",
    "priority": "The priority: higher goes first, and 0 is the default.",
    "rate_count": "The number of starts, or the sum of costs, within `rate_seconds`; null: no rate.",
    "rate_seconds": "The seconds in which `rate_count` starts are allowed; null: no rate.",
    "reason": "The reason that the author gave; null: none.",
    "ref": "The full name, such as `shop.charge`: the pack and the name within it.",
    "result": "The result, any JSON; secrets are `***`. null: there is none.",
    "route": "The route: the name of a work queue.",
    "rule": "The rule, such as `shop.charge_on_order`.",
    "scope": (
        "The actions that it covers: `*` (all), a pack, an action or workflow, or one task "
        "(`shop.fulfil.charge`)."
    ),
    "scopes": "The rights, such as `read`, `operate` or `start:shop.charge`.",
    "signature": (
        "The scheme that verifies a call. `secret`: a header carries the secret itself. `github`, "
        "`stripe`, `standard`: a header carries a signature as GitHub, Stripe or Standard Webhooks make it."
    ),
    "source": (
        "The source: `api`, `action`, `poll`, `webhook:NAME`, `amqp:NAME`, `penstock` (Penstock itself), "
        "or the name that a program gave; null: none."
    ),
    "status": ("The status. " + " ".join(f"`{status}`: {meaning}." for status, meaning in MEANINGS.items())),
    "task": (
        "The name of its task in the workflow, or of its step in the durable function; null: it is neither."
    ),
    "tenant": "The tenant, which separates the data of customers or teams. The default is `public`.",
    "trigger": "The trigger (kind of event), such as `shop.order_placed`.",
    "waiting": "The number of executions that wait for a slot.",
    "workers": "The number of live workers that serve the route.",
}
"""A field with another meaning in each of two models has no entry here, but a description of its own in each model."""

PARAMETER_DESCRIPTIONS: Mapping[str, str] = {
    "id": "The id, as the list shows it.",
    "limit": "The maximum number to return.",
    "name": "The name, as the list shows it.",
    "pattern": "The pattern of the rule, as the list shows it.",
    "ref": DESCRIPTIONS["ref"],
}
"""The descriptions of parameters that mean the same in every operation."""


def describe_parameters(paths: Mapping[str, dict[str, Any]]) -> None:
    """Describe the parameters of these operations that have no description of their own."""
    for operation in (operation for operations in paths.values() for operation in operations.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in PARAMETER_DESCRIPTIONS:
                parameter.setdefault("description", PARAMETER_DESCRIPTIONS[parameter["name"]])


def describe_fields(schemas: Mapping[str, dict[str, Any]]) -> None:
    """Describe the fields of these schemas that have no description of their own."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name in DESCRIPTIONS:
                field.setdefault("description", DESCRIPTIONS[name])
