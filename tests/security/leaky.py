"""An action for every door through which a secret could leave: run as a file by the test that plants one."""

from __future__ import annotations

import base64
import html
import json
import logging
import sys
import threading
import urllib.parse
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

from penstock import AskInquiry, DurableContext, Secret, Trigger, action

log = logging.getLogger("leaky")


def forms(key: str) -> Iterator[str]:
    encoded = key.encode()
    yield from (key, repr(key), ascii(key), json.dumps(key), json.dumps(json.dumps(key)), repr({"a": [key]}))
    yield json.dumps({"a": key}, ensure_ascii=False)
    yield from (urllib.parse.quote(key), urllib.parse.quote_plus(key), urllib.parse.quote(key, safe=""))
    yield from (base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(encoded).decode())
    yield from (
        base64.b64encode(b"a:" + encoded + b"@x").decode(),
        base64.b64encode(b"user" + encoded).decode(),
    )
    yield from (html.escape(key), repr(encoded), repr(repr(key)))
    yield from key.splitlines()


def spread(key: str) -> None:
    for form in forms(key):
        print(form)
        print("pieces", form, end=" ", file=sys.stderr)
        log.warning("with %s", form)
        log.warning(form, extra={"key": form})
    logging.getLogger("other").error("an error", exc_info=ValueError(key))
    sys.stdout.write(key[:20])
    sys.stdout.write(key[20:] + "\n")
    warnings.warn(key, stacklevel=1)

    # What no run is known of goes to the worker's own log.
    def outside() -> None:
        print("outside", key, repr(key))
        log.error("outside %r %s", key, base64.b64encode(key.encode()).decode())
        raise RuntimeError(key)

    for _ in range(2):
        thread = threading.Thread(target=outside)
        thread.start()
        thread.join()


@action(pack="leaky")
async def returned(key: str) -> Any:
    spread(key)
    return {"all": list(forms(key)), **dict.fromkeys(forms(key), 1)}


@action(pack="leaky")
def raised(key: str) -> None:
    spread(key)
    try:
        raise KeyError(key)
    except KeyError as error:
        raise RuntimeError(" | ".join(forms(key))) from error


@action(pack="leaky", executor="process")
def apart(key: str) -> Any:
    for form in forms(key):
        print(form)
    raise RuntimeError(" | ".join(forms(key)))


@action(pack="leaky")
async def asking(key: str) -> None:
    raise AskInquiry(" ".join(forms(key)), assignee="ada")


@action(pack="leaky")
async def child(key: str, more: list[str]) -> list[str]:
    return [key, *more]


@action(pack="leaky")
async def in_steps(ctx: DurableContext, key: str) -> Any:
    await ctx.step("made", lambda: list(forms(key)))
    await ctx.run(child, key=key, more=list(forms(key)))

    def refuse() -> None:
        raise RuntimeError(" | ".join(forms(key)))

    await ctx.step("refused", refuse)


@action(pack="leaky")
async def marked(key: Annotated[str, Secret]) -> None:
    spread(key)
    raise RuntimeError(" | ".join(forms(key)))


came = Trigger(
    "leaky.came", schema={"type": "object", "properties": {"key": {"type": "string", "secret": True}}}
)
ALL = (returned, raised, apart, asking, child, in_steps, marked, came)
