"""The consequences of ended executions (`ends`): their workflows advance, and their callbacks start. A workflow is
locked and opened (`open_workflows`), what the engine asks for is read (`read_facts`), it decides (`penstock.engine`),
and what it decided is written (`write`); `turns` is that line.

Not here: what is decided, which is the engine's; and statements, which are in `penstock.store.workflows`.
"""
