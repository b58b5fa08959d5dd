"""Expressions: Jinja2 in a sandbox, with values instead of text, and with a bound on the cost of each.

    parameters: {customer: "{{ trigger.payload.customer.id }}", note: "Order {{ trigger.payload.id }}"}
    when: parameters.amount > 100 and "vip" in parameters.tags

A name is looked up in the namespace that the caller gives; `a.b` is first looked up as the item `b` of the mapping
`a`. Undefined names are errors. Nothing is read from the network, the file system or the clock (a caller that wants
`now()` puts it into the namespace).
"""

from penstock.errors import ExpressionError
from penstock.language.expressions.equality import (
    Comparison,
    Equality,
    comparisons,
    equality,
    key_of,
    value_at,
)
from penstock.language.expressions.expression import Condition, Expression, condition, expression
from penstock.language.expressions.functions import TESTS
from penstock.language.expressions.lookup import MAPPING_METHODS, STR_METHODS
from penstock.language.expressions.missing import Unreadable
from penstock.language.expressions.names import NamesUsed, Path
from penstock.language.expressions.rule_comparisons import ABSENT, OPERATORS, holds, look_up
from penstock.language.expressions.secret_text import SECRETS, SecretName, SecretText
from penstock.language.expressions.template import Render, compile_template, names_used, render

__all__ = [
    "ABSENT",
    "MAPPING_METHODS",
    "OPERATORS",
    "SECRETS",
    "STR_METHODS",
    "TESTS",
    "Comparison",
    "Condition",
    "Equality",
    "Expression",
    "ExpressionError",
    "NamesUsed",
    "Path",
    "Render",
    "SecretName",
    "SecretText",
    "Unreadable",
    "comparisons",
    "compile_template",
    "condition",
    "equality",
    "expression",
    "holds",
    "key_of",
    "look_up",
    "names_used",
    "render",
    "value_at",
]
