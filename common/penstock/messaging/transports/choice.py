"""The choice of a transport: RabbitMQ if the settings name a broker, otherwise PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from penstock.extras import needed
from penstock.messaging.supervision import Supervisor
from penstock.messaging.transports import Transport
from penstock.store.session.database import Database


def make_transport(
    database: Database, *, role: str, supervisor: Supervisor | None = None, process: UUID | None = None
) -> Transport:
    """Return the transport that the settings of the database require, not opened yet. `process` is the id under which
    this process sends heartbeats, or None. The tasks that keep its connections are parts of `supervisor`."""
    settings = database.settings
    if settings.broker_url is None:
        from penstock.messaging.transports.postgres import PostgresTransport, heard_by

        return PostgresTransport(database, supervisor=supervisor, process=process, hears=heard_by(role))
    with needed():
        from penstock.messaging.transports.rabbitmq import RabbitMQTransport

    return RabbitMQTransport(
        settings.broker_url.get_secret_value(),
        prefix=settings.prefix,
        declare=settings.declare_topology,
        queue_type=settings.queue_type,
        delivery_limit=settings.delivery_limit,
        prefetch_bytes=settings.prefetch_bytes,
        client=f"penstock {role} {settings.name}",
        supervisor=supervisor,
        is_needed=role != "api",
    )
