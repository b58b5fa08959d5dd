"""Workflows in the database: lock and open them (`lock`), read what the engine asks for (`read`), write what it decided
(`write`). What is decided is `penstock.engine`."""
