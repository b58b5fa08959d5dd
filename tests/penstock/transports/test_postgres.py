"""What only the transport on PostgreSQL has to do."""

from __future__ import annotations

from pydantic import SecretStr

from penstock.settings import Settings
from penstock.transports.postgres import PostgresTransport
from tests.penstock.transports.traffic import QUEUE, bodies, message, receive


async def test_what_is_published_right_before_a_close_wakes_who_waits_for_it(database: str) -> None:
    settings = Settings(database_url=SecretStr(database), poll_interval=3600)
    waiting = PostgresTransport(settings)
    await waiting.open()
    subscription = await waiting.subscribe(QUEUE, 10)
    try:
        for n in range(20):
            passing = PostgresTransport(settings)
            await passing.open()
            await passing.publish([message(str(n))])
            await passing.close()
            assert bodies(await receive(subscription, 1, ack=True)) == [str(n)]
    finally:
        await waiting.close()
