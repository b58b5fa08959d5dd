"""docs/reference/actions.md: the options of an action."""

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

This page is written by `docs/written` from the models that check actions.

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

The parameters of the action are the parameters of the function, and are checked against its annotations. A parameter with a default is
optional. A default that is a list, dict, set, dataclass or model is copied for each execution. An `async def` function runs in the
event loop of the worker, and a `def` function in a thread. In YAML, write the same options beside `function`, `command`, `url` or
`image` ([packs](packs.md)).

A result is stored as JSON: a dataclass with all its fields, a pydantic model with its aliases, an enum as its value, a datetime
as ISO 8601. Parameters and payloads from Python are converted in the same way. A value that JSON cannot represent is
[refused](errors/ResultNotStorable.md).

## Options of an action

`ref` or `pack` sets the name of the action, and `description` its purpose. The other options are:

'''
SHORT = """
Short forms: `timeout` means `timeouts.attempt`, and `on_worker_loss` and `max_recoveries` mean the options of `recovery` with these names.
An unknown option is refused, with a suggestion.

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
    text += "## `options` of task executors\n\n[Task executors](../task-executors.md) explains these options. `async` and `thread` have no options.\n\n"
    for name, model in EXECUTORS:
        text += f"### {name}\n\n{table(model)}\n"
    return text.rstrip() + "\n"
