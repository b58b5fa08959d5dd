"""Work and events under policies of RabbitMQ: nothing that was accepted fails or is lost, and `doctor` names the policy."""

from __future__ import annotations

import pytest

from tests.servers.rabbitmq import RabbitMQ
from tests.surroundings import policy_flow
from tests.surroundings.broker_policies import COMBINED


@pytest.mark.parametrize("name", COMBINED)
async def test_policy_of_the_broker_ends_no_work(
    database: str, vhost: str, rabbitmq_server: RabbitMQ, name: str
) -> None:
    await policy_flow.play(database, vhost, rabbitmq_server, name)
