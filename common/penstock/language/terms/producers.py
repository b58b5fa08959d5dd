"""The users of the broker that may publish events, with their tenants and triggers: the setting `PENSTOCK_PRODUCERS`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from penstock.errors import NotAllowed
from penstock.language.terms.outside_names import TENANT, check_tenant

DEFAULT_TENANT = "public"

Tenant = Annotated[str, Field(pattern=TENANT)]


class Producer(BaseModel):
    """The tenants and the triggers for which a user of the broker may publish. A trigger may be a pattern, such as `shop.*`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenants: tuple[Tenant, ...] = Field(min_length=1)
    triggers: tuple[str, ...] = ("*",)


def check_producer(
    producers: Mapping[str, Producer], user_id: str | None, trigger: str, headers: Mapping[str, object]
) -> tuple[str, str | None]:
    """Return the tenant of a message, and the producer for its source.

    Without `producers` the header `tenant` is trusted. Otherwise the broker's `user_id` decides. Raises InvalidInput if
    the tenant is not a valid name. Raises NotAllowed if the message has no `user_id`, or that user may not publish this
    trigger for this tenant.
    """
    if not producers:
        return check_tenant(headers.get("tenant", DEFAULT_TENANT)), None
    if user_id is None:
        raise NotAllowed(
            "the message has no user_id, and PENSTOCK_PRODUCERS is set",
            hint="Set the property user_id to the name of the broker's user. RabbitMQ checks it.",
        )
    producer = producers.get(user_id)
    if producer is None:
        raise NotAllowed(
            f"the user {user_id!r} may not publish events", hint="If it should, add it to PENSTOCK_PRODUCERS."
        )
    only = producer.tenants[0] if len(producer.tenants) == 1 else DEFAULT_TENANT
    tenant = check_tenant(headers.get("tenant", only))
    if tenant not in producer.tenants:
        raise NotAllowed(
            f"the user {user_id!r} may not publish for tenant {tenant!r}",
            hint=f"PENSTOCK_PRODUCERS lets it publish for: {', '.join(producer.tenants)}.",
        )
    if not any(fnmatchcase(trigger, pattern) for pattern in producer.triggers):
        raise NotAllowed(
            f"the user {user_id!r} may not publish {trigger!r}",
            hint=f"PENSTOCK_PRODUCERS lets it publish: {', '.join(producer.triggers)}.",
        )
    return tenant, user_id
