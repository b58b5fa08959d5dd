"""Rules and expressions, tried on a payload before there is any event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from penstock.language.definitions.rule import Rule
from penstock.language.expressions import expression
from penstock.language.rules.event_rules import Match, compile_rule
from penstock.language.rules.event_rules import evaluate as evaluate_rule

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
"""Where the clock of a simulation stands at first."""

NIL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """An event, as rules see it."""

    trigger: str
    tenant: str = "public"
    id: UUID = NIL
    created_at: datetime = MIDNIGHT


def try_rule(rule: Rule, payload: Any = None, *, tenant: str = "public") -> Match:
    """Match a rule with an event that has this payload: return a match with the parameters for its action, or the
    error of its condition or templates."""
    return evaluate_rule(compile_rule(rule.body()), SimulatedEvent(rule.trigger, tenant), payload)


def evaluate(text: str, /, **names: Any) -> Any:
    """The value of an expression (`payload.amount > 100`), or of a text with templates (`"order {{ payload.id }}"`), where
    these names are there. Raises ExpressionError."""
    return expression(text if "{{" in text else f"{{{{ {text} }}}}")(names)
