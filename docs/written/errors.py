"""docs/reference/errors.md: each class of error, what it means, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from penstock import errors

HEAD = """# Errors

This page is written by `docs/written` from `penstock.errors`. Every error has a `message` that says what is wrong, and mostly a `hint`
that says what to do next; commands print both and end with exit code 1, the [HTTP API](../api.md) sends both as a problem whose `type`
ends with the name of the class. All of them are `penstock.PenstockError`s.

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

What an action raises ends its attempt as `failed`, with the name of the class as `error.type`; the [retry policy](actions.md#retry) decides
whether another attempt follows. These steer instead: `Retry`, `NonRetryable`, `Defer`, `AskInquiry` ([Python](python.md)).
"""


def classes() -> Iterator[type[errors.PenstockError]]:
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.PenstockError):
            yield one


def page() -> str:
    rows = (
        f"| `{one.__name__}` | {_base(one)} | {' '.join(inspect.cleandoc(one.__doc__ or '').split())} |\n"
        for one in classes()
    )
    return HEAD + "".join(rows) + FOOT


def _base(one: type) -> str:
    name = one.__bases__[0].__name__
    return "" if name in ("Exception", "PenstockError") else f"`{name}`"
