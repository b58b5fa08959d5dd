"""Real servers for tests: PostgreSQL, RabbitMQ and PgBouncer. `choose.py` says where they come from."""
