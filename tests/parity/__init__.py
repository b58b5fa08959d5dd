"""Every row of the parity table, tried from outside: the command line, the public client, files of definitions, a foreign
AMQP client, health ports, signals, and the tables that the docs name. Nothing here reaches in: what a row needs, a user has.
`make parity` runs all of them and prints a line a row."""
