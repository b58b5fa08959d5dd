"""The actions of a worker that calls a gateway."""

from __future__ import annotations

from dataclasses import dataclass

from penstock import Batch, DurableContext, Item, action
from penstock.language.loading import Definitions
from penstock_worker.gateway_main import _single_calls


@dataclass
class Text:
    text: str


@action(pack="gate", batch=Batch(9))
async def in_batches(items: list[Item[Text]]) -> list[int]:
    return [0] * len(items)


@action(pack="gate")
async def durable(ctx: DurableContext) -> None: ...


@action(pack="gate")
async def single(text: str) -> None: ...


def test_worker_leaves_batches_and_durable_functions_to_others() -> None:
    assert list(_single_calls(Definitions([in_batches, durable, single]))) == ["gate.single"]
