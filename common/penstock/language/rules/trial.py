"""The trial of rules and expressions on a payload without an event."""

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
"""The start of a simulation's clock."""

NIL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """A simulated event, with the fields that rules see."""

    trigger: str
    tenant: str = "public"
    id: UUID = NIL
    created_at: datetime = MIDNIGHT


def try_rule(rule: Rule, payload: Any = None, *, tenant: str = "public") -> Match:
    """Match a rule with an event that has this payload. Return the match, with the parameters for its action, or with
    the error of its condition or templates."""
    return evaluate_rule(compile_rule(rule.body()), SimulatedEvent(rule.trigger, tenant), payload)


def evaluate(text: str, /, **names: Any) -> Any:
    """Return the value of an expression (`payload.amount > 100`), or of a text with templates (`"order {{ payload.id
    }}"`). `names` has the values of the names that it may use. Raises ExpressionError."""
    return expression(text if "{{" in text else f"{{{{ {text} }}}}")(names)
