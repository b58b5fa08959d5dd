"""The models of routes of work."""

from __future__ import annotations

from pydantic import Field

from penstock_api.models.model import Answer


class Route(Answer):
    """A route, with what names it, and the number of live workers that serve it."""

    route: str
    named_by: list[str]
    workers: int
    meant: str | None = Field(description="The route that was probably meant.")
    amiss: bool = Field(description="Nobody serves it, or nothing goes there.")


class RouteRule(Answer):
    pattern: str
    route: str


class PassedOver(RouteRule):
    why: str


class RouteChoice(Answer):
    """The route of a namespace, and the reason for it."""

    namespace: str
    route: str
    named: bool = Field(description="Its task or its action names the route, so that no rule is asked.")
    rule: str | None = Field(description="The pattern of the rule that decides.")
    passed_over: list[PassedOver] = Field(description="Rules that come before, and why they do not fit.")
