"""The models of saved views."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.run_labels import MAX_LABELS
from penstock_api.models.model import Given, Text


class ViewFilters(Given):
    """The filters of a saved view, named like the query parameters of the list of executions."""

    status: list[str] | None = Field(
        default=None,
        max_length=50,
        description="Only executions with one of these statuses, such as `failed`. null: with any status.",
    )
    action: Text | None = Field(
        default=None, description="Only executions of this action or workflow. null: of all."
    )
    tenant: Text | None = Field(
        default=None,
        description="Only executions of this tenant. null: of all tenants that a reader may use.",
    )
    since: Text | None = Field(
        default=None,
        description="Only executions created at this instant or later, or within this time before the list is read, "
        "such as `24h`. null: no bound.",
    )
    until: Text | None = Field(
        default=None,
        description="Only executions created before this instant, or longer ago than this, such as `1h`. null: no bound.",
    )
    event: Text | None = Field(
        default=None, description="Only executions that this event started, by its id. null: no restriction."
    )
    parent: Text | None = Field(
        default=None,
        description="Only tasks of the execution of a workflow with this id. null: no restriction.",
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

    def document(self) -> dict[str, Any]:
        """Return the filters that are set."""
        return self.model_dump(exclude_none=True)


class NewView(Given):
    """A view to be saved for the caller."""

    name: Text = Field(
        description="The name, of at most 100 characters. No other view of the caller may have it."
    )
    filters: ViewFilters = Field(description="The filters of the list. At least one is set.")
    description: Text | None = Field(
        default=None, description="The purpose of the view, in at most 500 characters. null: none is noted."
    )
    shared: bool = Field(
        default=False,
        description="True: all callers that may read the tenant of its filter see it. A view without a tenant is "
        "shown only to callers that may read all tenants of its author. This needs the scope `operate` for these "
        "tenants. False: only the caller sees it.",
    )
    replace: bool = Field(
        default=False,
        description="True: replace the caller's view of this name, if there is one, whatever its version. False: "
        "then the answer is 409.",
    )


class ChangedView(Given):
    """The changes of a saved view. Fields that are left out stay as they are."""

    version: int = Field(
        ge=1,
        le=INTEGER,
        description="The version that was read. If the view has another one, nothing is changed.",
    )
    name: Text | None = Field(default=None, description="The new name. null: it stays.")
    filters: ViewFilters | None = Field(
        default=None, description="The filters that replace all present ones. null: they stay."
    )
    description: Text | None = Field(
        default=None, description="The new description; an empty text removes it. null: it stays."
    )
    shared: bool | None = Field(
        default=None, description="True: share it. False: only its owner sees it. null: it stays as it is."
    )
