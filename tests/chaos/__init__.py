"""Chaos on the real stack: processes, servers and the network between them are broken under load, and at the end a
ledger says what became of everything that was submitted. `make chaos`."""
