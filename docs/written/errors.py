"""docs/reference/errors.md: each class of error, what it means, and what to do; and a page of each in docs/reference/errors/."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from penstock import errors
from penstock.cli.explain_texts import TEXTS, Text
from penstock.cli.reported_errors import REPORTED

HEAD = """# Errors

This page is written by `docs/written` from `penstock.errors`. Every error has a `message` with the fault, and most have a
`hint` with the next step. Commands print both, name the `penstock explain` command with further help, and end with exit code 1. The
[HTTP API](../api.md) sends both as a problem whose `type` ends with the name of the class. All classes are derived from
`penstock.PenstockError`.

```python
from penstock import Client, PenstockError

async with Client.connect() as client:
    try:
        await client.start("shop.chrage", {"order": 7})
    except PenstockError as error:
        print(type(error).__name__)  # NotFound
```

| error | is a | what it means, and what to do |
|---|---|---|
"""
FOOT = """
## In an action

An exception that an action raises ends its attempt as `failed`, with the name of its class as `error.type`. The
[retry policy](actions.md#retry) decides whether another attempt follows. Four exceptions control what happens next instead: `Retry`,
`NonRetryable`, `Defer` and `AskInquiry` ([Python](python.md)).

Task executors and workflows also report failures under a name of the following table. `penstock explain` explains each of them, for
example `penstock explain HttpStatus`.

| `error.type` | what it means | what to do |
|---|---|---|
"""


def classes() -> Iterator[type[errors.PenstockError]]:
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.PenstockError):
            yield one


def page() -> str:
    rows = (
        f"| [`{one.__name__}`](errors/{one.__name__}.md) | {_base(one)} | {_meaning(one)} |\n"
        for one in classes()
    )
    reported = (f"| `{name}` | {text.meaning} {text.why} | {text.do} |\n" for name, text in REPORTED.items())
    return HEAD + "".join(rows) + FOOT + "".join(reported)


def _meaning(one: type) -> str:
    return " ".join(inspect.cleandoc(one.__doc__ or "").split())


def page_of(one: type[errors.PenstockError]) -> str:
    """Return the page of an error: its meaning, its cause, its remedy and an example."""
    text = TEXTS[one.__name__]
    above = _base(one)
    kind = f"A kind of [{above}]({above.strip('`')}.md). " if above else ""
    return (
        f"# {one.__name__}\n\n{kind}{_meaning(one)}\n\n## Why\n\n{text.why}\n\n## What to do\n\n{text.do}\n\n"
        f"## Example\n\n{_example(text)}\n[All errors](../errors.md)\n"
    )


def _example(text: Text) -> str:
    shown = f"```python\n{text.code}\n```\n\n" if text.code else ""
    said = text.message or said_by(raised_by(text.code))
    return f"{shown}It says:\n\n```text\n{said}\n```\n"


def raised_by(code: str) -> errors.PenstockError:
    """Return the error that this Python raises. Raises AssertionError if it raises none."""
    try:
        exec(code, {"__name__": "example"})
    except errors.PenstockError as error:
        return error
    raise AssertionError(f"nothing was raised:\n{code}")


def said_by(error: errors.PenstockError) -> str:
    return error.message + (f"\nhint:  {error.hint}" if error.hint else "")


PAGES: Mapping[str, Callable[[], str]] = {
    f"errors/{one.__name__}.md": partial(page_of, one) for one in classes()
}
"""By where they are in docs/reference."""


def _base(one: type) -> str:
    name = one.__bases__[0].__name__
    return "" if name in ("Exception", "PenstockError") else f"`{name}`"
