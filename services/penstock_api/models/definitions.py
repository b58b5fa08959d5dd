"""The models of definitions: actions, workflows, triggers, rules."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from penstock.language.terms.budgets import WhenSpent
from penstock.language.terms.debounce import Keep
from penstock_api.models.model import (
    Answer,
    Changed,
    Duration,
    Given,
    Id,
    Instant,
    MaxDepth,
    MaxDescendants,
    Tenant,
)


class Definition(Answer):
    """The current version of a definition; secrets are `***`."""

    kind: str = Field(description="The kind: `action`, `workflow`, `trigger`, `rule` or `schedule`.")
    ref: str
    enabled: bool = Field(
        description="False: it is retired (an action, a workflow, a trigger) or disabled (a rule), so that "
        "nothing new starts."
    )
    digest: str
    definition: dict[str, Any] = Field(description="The content, as it was applied.")
    held: str | None = Field(
        default=None,
        description="For an action or a workflow: the hold of it or of its pack, such as `pack shop`, which keeps it from "
        "starting; null: there is none.",
    )


class Rule(Definition):
    errors: int = Field(description="The number of events on which the rule failed and was not rerun.")


class PutRule(Given):
    """The options of a rule. Durations are seconds, or texts such as "5m"."""

    trigger: str | None = Field(
        default=None, description="The trigger of its events. null: a rule with a window."
    )
    action: str = Field(description="The action or workflow to start.")
    description: str = Field(default="", description="A text for people. It has no effect.")
    when: str | None = Field(
        default=None,
        description="A condition over `event` and `payload`: payload.amount > 100. null: each event.",
    )
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="The parameters for the action, with templates over `event` and `payload`.",
    )
    labels: dict[str, Any] = Field(default_factory=dict, description="The labels of its executions.")
    enabled: bool = Field(default=True, description="The initial state of a new rule.")
    tenant: Tenant | None = Field(default=None, description="The tenant of its events. null: all tenants.")
    priority: int = Field(default=0, description="The priority of its executions.")
    expires: Duration | None = Field(
        default=None,
        description="The time after which an execution that has not begun ends as timeout. null: never.",
    )
    budget: dict[str, Any] | None = Field(
        default=None,
        description="The budgets of an execution and its tree: an amount for each unit. null: no budget.",
    )
    when_spent: WhenSpent = Field(
        default="refuse",
        description="The reaction to a spent budget. `refuse`: an execution that needs more than is left is "
        "cancelled. `wait`: it waits until the budget is raised.",
    )
    max_depth: MaxDepth = None
    max_descendants: MaxDescendants = None
    debounce: Duration | None = Field(
        default=None,
        description="A burst of events closes after this time without another matching event, and starts one execution. "
        "null: each event starts its own execution.",
    )
    by: list[str] = Field(
        default_factory=list, description="The paths whose values separate bursts, such as payload.doc."
    )
    at_most: Duration | None = Field(default=None, description="The maximum time of a burst. null: no bound.")
    keep: Keep = Field(
        default="last",
        description="The event of a burst that gives the parameters: the last or the first. "
        "`all`: the last, and `payloads` is the list of all payloads.",
    )
    window: dict[str, Any] | None = Field(
        default=None,
        description="The pattern of several events for which the rule starts one execution, instead of a trigger: "
        '`{"count": ["shop.payment_failed"], "at_least": 5, "by": "payload.card", "within": "10m"}`. null: a rule with a '
        "trigger.",
    )


class RuleChanged(Changed):
    ref: str


class RuleState(Answer):
    ref: str
    enabled: bool = Field(description="True: the rule matches events. False: it matches no event.")


class RetiredDefinition(Answer):
    ref: str
    kinds: list[str] = Field(description="The kinds of definitions with this name.")
    retired: bool = Field(
        description="True: it starts no new executions (an action, a workflow), or accepts no events (a trigger). False: "
        "it is in use again."
    )


class Version(Answer):
    digest: str
    created_at: datetime
    current: bool = Field(description="True for the version that new executions run.")
    open_runs: int = Field(description="The number of executions of this version that have not ended.")


class Node(Answer):
    name: str = Field(description="The name of the task.")
    does: str = Field(description="The action or workflow that the task runs, or the kind of its wait.")
    after: list[str]


class Graph(Answer):
    nodes: list[Node] = Field(description="The tasks of the workflow, in its order.")


class TryRules(Given):
    """A payload with which rules are tried."""

    payload: Any = Field(
        default_factory=dict,
        description="The content of the event, which must match the schema of the trigger.",
    )
    tenant: Tenant = Field(default="public", description="The tenant of the event.")


class Verdict(Answer):
    rule: str
    verdict: str = Field(
        description="`matched`, `waiting` (in a window or a burst), `no match`, `disabled`, `failed`"
    )
    why: str = Field(description="The reason why the rule has this verdict.")
    action: str = Field(description="The action or workflow that the rule starts.")
    params: Any = Field(description="The parameters for the action, if the rule matched; secrets are `***`.")
    execution: UUID | None = Field(
        description="The id of the execution that the rule started; null: it started none."
    )
    enforcement: str | None = Field(
        description="The status of the enforcement, which records that the rule matched: `created`, "
        "`executed` or `failed`; null: there is none."
    )
    error: str | None = Field(description="The reason why the rule failed; null: it did not.")


class ReplayRule(Given):
    """The stored events that a rule sees again."""

    since: Instant = Field(description="Only events stored at this instant or later.")
    until: Instant | None = Field(
        default=None, description="Only events stored before this instant. null: no bound."
    )
    tenant: Tenant | None = Field(
        default=None, description="Only events of this tenant. null: of all tenants that the caller may use."
    )
    dry_run: bool = Field(default=False, description="Start nothing, and return the parameters.")
    cursor: Id | None = Field(
        default=None, description="The value of `next` of the previous answer. null: from the first event."
    )
    limit: int = Field(default=200, ge=1, le=500, description="The maximum number of events to replay.")


class RerunRules(Given):
    """A filter of failed rules: by `rule`, by `event`, or by both. Without them, `all` must be true."""

    rule: str | None = Field(default=None, description="Only failures of this rule. null: of all rules.")
    event: Id | None = Field(default=None, description="Only failures on this event. null: on all events.")
    all: bool = Field(default=False, description="True: select all. Required if no filter is set.")
