"""Short flows in surroundings that administrators of PostgreSQL and RabbitMQ are free to choose.

`postgres_settings.py` and `broker_policies.py` hold the surroundings as data. `make test` plays a few flows in combinations that
cannot hide each other. `make chaos` plays each surrounding alone.
"""
