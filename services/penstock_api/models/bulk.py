"""The models of bulk commands: the filter, and the outcome."""

from __future__ import annotations

from typing import Self
from uuid import UUID

from pydantic import Field, model_validator

from penstock.client.bulk import Tally
from penstock.language.terms.run_labels import MAX_LABELS
from penstock_api.models.model import Answer, Given, Id, ReasonText, Tenant, Text


class ChosenExecutions(Given):
    """A filter of executions: those that match every field that is set."""

    status: list[str] | None = Field(
        default=None,
        max_length=50,
        description="Only executions with one of these statuses, such as `failed`. null: with any status.",
    )
    action: Text | None = Field(
        default=None, description="Only executions of this action or workflow. null: of all."
    )
    tenant: Tenant | None = Field(
        default=None,
        description="Only executions of this tenant. null: of all tenants that the caller may use.",
    )
    since: Text | None = Field(
        default=None,
        description="Only executions created at this instant or later, or within this time: `24h`. null: no bound.",
    )
    until: Text | None = Field(
        default=None,
        description="Only executions created before this instant, or longer ago than this: `1h`. null: no bound.",
    )
    event: Id | None = Field(
        default=None, description="Only executions that this event started. null: no restriction."
    )
    parent: Id | None = Field(
        default=None, description="Only tasks of this execution of a workflow. null: no restriction."
    )
    children: bool = Field(default=False, description="True: include the tasks of workflows.")
    label: list[Text] | None = Field(
        default=None,
        max_length=MAX_LABELS,
        description="Only executions with each of these labels: `key=value`. null: with any labels.",
    )
    key: Text | None = Field(
        default=None,
        description="Only the execution with this idempotency key in `tenant` (or public). null: no restriction.",
    )
    waits_for_answer: bool = Field(
        default=False, description="True: only executions in which a question to a human is open."
    )
    paused: bool = Field(
        default=False, description="True: only paused workflows, and the executions that contain them."
    )


class Bulk(Given):
    """The executions of a bulk command, and its reason."""

    chosen: ChosenExecutions = Field(
        default_factory=ChosenExecutions,
        description="The filter. If it is omitted or empty, then the field `all` must be true, and all executions are selected.",
    )
    all: bool = Field(default=False, description="True: select all. Required if no filter is set.")
    dry_run: bool = Field(default=False, description="True: only count, and change nothing.")
    before: Id | None = Field(
        default=None, description="The value of `next` of the previous answer. null: from the beginning."
    )
    reason: ReasonText | None = Field(
        default=None, description="The reason, stored with each execution. null: none."
    )

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.all and self.chosen == ChosenExecutions():
            raise ValueError("nothing is selected: set a filter, or `all`")
        return self


class BulkRerun(Bulk):
    from_failed: bool = Field(default=False, description="For workflows: keep the tasks that succeeded.")


class BulkLetters(Given):
    """The dead letters of a bulk command."""

    queue: Text | None = Field(default=None, description="Only letters of this queue. null: of all queues.")
    reason: ReasonText | None = Field(
        default=None, description="Only letters with this text in their reason. null: with any reason."
    )
    all: bool = Field(default=False, description="True: select all. Required if no filter is set.")
    dry_run: bool = Field(default=False, description="True: only count, and change nothing.")

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.all and self.queue is None and self.reason is None:
            raise ValueError("nothing is selected: set a queue or a reason, or `all`")
        return self


class Refused(Answer):
    """The objects that were left unchanged for one reason."""

    count: int = Field(description="The number of objects that were left unchanged for this reason.")
    says: str = Field(description="The reason.")
    hint: str | None = Field(description="The next step that helps; null: none is known.")
    example: UUID = Field(description="The id of one of them.")


class BulkDone(Answer):
    count: int = Field(
        description="The number of changed objects; for a dry run, the number of selected ones."
    )
    refused: list[Refused] = Field(
        default_factory=list, description="The objects that were left unchanged, one entry for each reason."
    )
    next: UUID | None = Field(
        default=None,
        description="The value of `before` for the next request; null: all objects are done.",
    )

    @classmethod
    def of(cls, tally: Tally, next: UUID | None = None) -> BulkDone:
        refused = [
            Refused(count=refusal.count, says=why, hint=refusal.error.hint, example=refusal.example)
            for why, refusal in sorted(tally.refused.items(), key=lambda item: -item[1].count)
        ]
        return cls(count=tally.done, refused=refused, next=next)
