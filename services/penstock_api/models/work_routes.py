"""The models of routes of work."""

from __future__ import annotations

from pydantic import Field

from penstock_api.models.model import Answer


class Route(Answer):
    """A route, with what names it, and the number of live workers that serve it."""

    route: str
    named_by: list[str] = Field(
        description="The rules, actions and tasks that name the route, each as a text such as `action "
        "shop.charge`."
    )
    workers: int
    meant: str | None = Field(
        description="The text `Did you mean 'NAME'?` with the most similar route; null: none is similar."
    )
    amiss: bool = Field(
        description="True if no live worker serves the route, or if no action names it although workers serve it."
    )


class RouteRule(Answer):
    pattern: str = Field(
        description="The pattern of the rule, such as `*::ml::*`. It selects executions by their namespace."
    )
    route: str


class PassedOver(RouteRule):
    why: str = Field(description="The reason why the rule does not match.")


class RouteChoice(Answer):
    """The route of a namespace, and the reason for it."""

    namespace: str
    route: str
    named: bool = Field(
        description="True if the task or the action names the route, so that no rule is used."
    )
    rule: str | None = Field(description="The pattern of the deciding rule; null: no rule decided.")
    passed_over: list[PassedOver] = Field(
        description="The earlier rules, with the reasons why they do not match."
    )
