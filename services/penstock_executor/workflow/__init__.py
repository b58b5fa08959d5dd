"""Workflows advance: locked and opened (`open_workflows`), what the engine asks for is read (`read_facts`), it decides
(`penstock.engine`), and what it decided is written (`write`). `advance` is that line. SQL is in `penstock.store.workflows`.
"""
