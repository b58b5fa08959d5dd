"""The texts of errors in the templates of rules."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import InvalidInput
from penstock.language.rules.event_rules import compile_rule, evaluate
from penstock.language.rules.trial import play, try_rule
from penstock.language.terms.ids import new_id

FIELD = "there is no field `missing`. Available fields: note, order."


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"params": {"order": "{{ payload.missing }}"}},
            f"ExpressionError: parameter `order` = `{{{{ payload.missing }}}}`: {FIELD}",
        ),
        (
            {"labels": {"order": "{{ payload.missing }}"}},
            f"ExpressionError: label `order` = `{{{{ payload.missing }}}}`: {FIELD}",
        ),
        ({"when": "payload.missing == 1"}, f"ExpressionError: `payload.missing == 1`: {FIELD}"),
    ],
)
def test_error_names_its_template_and_the_fields_that_exist(body: dict[str, Any], error: str) -> None:
    event: Any = SimpleNamespace(
        id=new_id(), trigger="shop.placed", tenant="public", created_at=datetime.now(UTC)
    )
    match = evaluate(compile_rule({"trigger": "shop.placed", **body}), event, {"note": "", "order": 7})
    assert match.error == error


@pytest.mark.parametrize("function", [try_rule, play])
def test_trial_of_a_ref_names_the_remedy(function: Any) -> None:
    with pytest.raises(InvalidInput, match=r"takes a rule, and 'inv\.on_received' is not one") as refused:
        function("inv.on_received", [])
    assert "Pass the rule of the module" in (refused.value.hint or "")
