"""The run of durable functions on a worker. The records of several attempts are written to the database together."""
