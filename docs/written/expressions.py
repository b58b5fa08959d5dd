"""docs/reference/expressions.md: the language of conditions and templates, with every function, each tried by a test."""

from __future__ import annotations

from typing import Any

import orjson

from docs.written.expression_examples import FILTERS, FUNCTIONS, TESTS
from penstock.language.expressions import render
from penstock.language.expressions.budget import MAX_RANGE, MAX_SOURCE, MAX_STEPS, MAX_TEXT

HEAD = f"""# Expressions and templates

This page is written by `docs/written`; every value on it was computed when it was written, and a test computes it again.

A **condition** is a bare expression (`when: payload.amount > 100`). A **template** is a text with `{{{{ }}}}` in it: alone it gives the
value itself (`"{{{{ payload.items }}}}"` is a list), within other text it becomes text (`"Order {{{{ payload.id }}}}"`). The language is
Jinja2's, in a sandbox: nothing is read from the network, the files or the clock.

| | |
|---|---|
| values | `7`, `1.5`, `"text"`, `true`, `false`, `none`, `[1, 2]`, `{{"a": 1}}` |
| parts | `payload.customer.id`, `payload["first name"]`, `items[0]`, `name[:10]` |
| reckoning | `+ - * / // % **`, `~` joins texts |
| comparing | `== != < <= > >=`, `in`, `not in`, `is` with a test, `and or not` |
| choosing | `"big" if payload.amount > 100 else "small"` |
| filters | `names \\| sort \\| first`; arguments in parentheses |
| blocks | `{{% if %}}`, `{{% for %}}`, `{{% set %}}` in templates |

**Which names there are** depends on the place: a rule sees `payload` and `event`; a schedule `scheduled_time` and
[the rest](../schedules.md#what-a-run-is-told); a task of a workflow `parameters`, `vars`, `tasks`, `item`
[and more](../workflows.md#variables-and-context). A name that is not there is an error, not an empty text; `x | default(...)` says what
to take instead.

**Bounds:** {MAX_SOURCE:,} characters of source, {MAX_STEPS:,} steps a rendering, {MAX_TEXT:,} characters of a text,
{MAX_RANGE:,} items of a range. They are counted and not timed: the same expression does the same on every machine. There are no regular
expressions, as those can take for ever: use `startswith`, `endswith`, `in`, `split`, `replace`.
"""


def page() -> str:
    text = HEAD
    for title, examples in (("Filters", FILTERS), ("Functions", FUNCTIONS), ("Tests", TESTS)):
        text += f"\n## {title}\n\n| name | example | gives |\n|---|---|---|\n"
        text += "".join(
            f"| `{_cell(name)}` | `{_cell(example)}` | `{_cell(shown(example))}` |\n"
            for name, example in examples.items()
        )
    return text


def shown(example: str) -> str:
    """Return the value of an expression as JSON."""
    value: Any = render(f"{{{{ {example} }}}}", {})
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
