"""docs/reference/expressions.md: the language of conditions and templates, with every function, each tried by a test."""

from __future__ import annotations

from typing import Any

import orjson

from docs.written.expression_examples import FILTERS, FUNCTIONS, TESTS
from penstock.language.expressions import render
from penstock.language.expressions.budget import MAX_RANGE, MAX_SOURCE, MAX_STEPS, MAX_TEXT

HEAD = f"""# Expressions and templates

This page is written by `docs/written`. Every value in the tables was computed by Penstock, and a test checks it.

A **condition** is a bare expression (`when: payload.amount > 100`). A **template** is a text with `{{{{ }}}}` in it. If
the text is a single expression, the result is its value (`"{{{{ payload.items }}}}"` is a list). Otherwise the result is a text
(`"Order {{{{ payload.id }}}}"`). The language is that of Jinja2, in a sandbox: an expression cannot read the network, files or the clock.

| | |
|---|---|
| values | `7`, `1.5`, `"text"`, `true`, `false`, `none`, `[1, 2]`, `{{"a": 1}}` |
| parts | `payload.customer.id`, `payload["first name"]`, `items[0]`, `name[:10]` |
| arithmetic | `+ - * / // % **`, `~` joins texts |
| comparison | `== != < <= > >=`, `in`, `not in`, `is` with a test, `and or not` |
| choice | `"big" if payload.amount > 100 else "small"` |
| filters | `names \\| sort \\| first`; arguments in parentheses |
| blocks | `{{% if %}}`, `{{% for %}}`, `{{% set %}}` in templates |

**The available names** depend on the place. A rule has `payload` and `event`. A schedule has `scheduled_time` and
[others](../schedules.md#the-context-of-a-run). A task of a workflow has `parameters`, `vars`, `tasks`, `item`
[and others](../workflows.md#variables-and-context). An unknown name is an error, and not an empty text. Use `x | default(...)` to give a
value for a missing name.

**Bounds:** {MAX_SOURCE:,} characters of source, {MAX_STEPS:,} steps a rendering, {MAX_TEXT:,} characters of a text,
{MAX_RANGE:,} items of a range. The bounds count steps, not time, so an expression has the same result on every machine. Regular
expressions are not available, since some of them take too long. Use `startswith`, `endswith`, `in`, `split` and `replace`.
"""


def page() -> str:
    text = HEAD
    for title, examples in (("Filters", FILTERS), ("Functions", FUNCTIONS), ("Tests", TESTS)):
        text += f"\n## {title}\n\n| name | example | result |\n|---|---|---|\n"
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
