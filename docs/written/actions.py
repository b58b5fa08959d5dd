"""docs/reference/actions.md: what may be said of an action."""

from __future__ import annotations

from docs.written.fields import said_of, table
from penstock.language.definitions.action import ActionOptions
from penstock.language.definitions.batch import Batch
from penstock.language.definitions.breaker import Breaker
from penstock.language.definitions.limit import Limit, Rate
from penstock.language.definitions.program_actions import (
    CommandOptions,
    DaskOptions,
    HttpOptions,
    KubernetesOptions,
    ProcessOptions,
    RayOptions,
)
from penstock.language.policies.policies import Recovery, RetryPolicy, Timeouts

HEAD = '''# Actions, retries, times

This page is written by `docs/written` from the models that check what you write.

```python
# bank.py
from penstock import Limit, action

@action(
    pack="bank",
    retry={"max_attempts": 5, "initial_delay": "1s", "max_delay": "1m", "never_on": ["ValueError"]},
    timeout="30s",
    limits=[Limit(5, by="customer")],
    on_worker_loss="fail",
)
async def pay(customer: str, order: int, currency: str = "EUR") -> str:
    """Pays an order."""
    return f"{customer} paid order {order} in {currency}"
```

```console
$ penstock run bank.pay customer=ada order=7 --wait
"ada paid order 7 in EUR"
```

The parameters are those of the function, checked by their annotations; a default makes one optional. An `async def` runs in the
worker's event loop, a `def` in a thread. A default that is a list, dict, set, dataclass or model is copied for each execution. In YAML
the same options stand beside `function`, `command`, `url` or `image` ([packs](packs.md)).

A result is what JSON keeps of it: a dataclass with all its fields, a pydantic model with its aliases, an enum as its value, a datetime
as ISO 8601. Parameters and payloads from Python are converted in the same way. What JSON cannot represent is
[refused](errors/ResultNotStorable.md).

## Options of an action

`ref`, `pack` and `description` say what it is called and for what it is; the rest is:

'''
SHORT = """
Short forms: `timeout` for `timeouts.attempt`, `on_worker_loss` and `max_recoveries` for those of `recovery`. An option that there
is not is refused, with the one that was probably meant.

"""
PARTS: tuple[tuple[str, type], ...] = (
    ("`retry`", RetryPolicy),
    ("`timeouts`", Timeouts),
    ("`recovery`", Recovery),
    ("`limits`: each a `Limit`", Limit),
    ("`rate` of a limit", Rate),
    ("`breaker`", Breaker),
    ("`batch`", Batch),
)
EXECUTORS: tuple[tuple[str, type], ...] = (
    ("command", CommandOptions),
    ("dask", DaskOptions),
    ("http", HttpOptions),
    ("kubernetes", KubernetesOptions),
    ("process", ProcessOptions),
    ("ray", RayOptions),
)


def page() -> str:
    text = HEAD + table(ActionOptions) + SHORT
    for title, model in PARTS:
        text += f"## {title}\n\n{said_of(model)}\n\n{table(model, without=('tenant',))}\n"
    text += "## `options` of task executors\n\nWhat each is: [task executors](../task-executors.md). `async` and `thread` take none.\n\n"
    for name, model in EXECUTORS:
        text += f"### {name}\n\n{table(model)}\n"
    return text.rstrip() + "\n"
